//! Resource limits. The same attack on every system; the caller has checked that the boundary is there.

use crate::support::{Run, Scratch, allowed};
pub fn limited(flag: &str, value: &str) -> Run {
    Run::new().flag(flag).arg(value)
}

/// Asserts that the run was killed for its memory and that we said so.
#[track_caller]
pub fn killed_for_memory(run: Run) {
    let finished = run.run();
    assert_eq!(finished.code, 137, "{finished}");
    let said = finished.stderr.lines().any(|line| line.starts_with("mcp: killed: memory limit"));
    assert!(said, "{finished}");
}

pub fn limits_cannot_be_raised() {
    let run = || limited("--max-fds", "50");
    run().shell("ulimit -n 40 && test $(ulimit -n) = 40").run().code_is(0);
    let raised = run().shell("ulimit -n 60").run();
    assert_ne!(raised.code, 0, "{raised}");
}

pub fn open_files() {
    let act = |run: Run| run.probe(&["open-files", "100"]);
    allowed(act(Run::new()));
    let finished = act(limited("--max-fds", "50")).run();
    let outcome = finished.last("open-files");
    assert_eq!(outcome.errno(), "EMFILE", "{finished}");
    assert!(outcome.detail.parse::<u32>().unwrap() < 50, "{finished}");
}

pub fn file_size() {
    let scratch = Scratch::new();
    let file = scratch.dir("grant").join("file");
    let act = |run: Run| {
        let run = run.write(file.parent().unwrap());
        run.probe(&["write-big".as_ref(), file.as_os_str(), "2097152".as_ref()])
    };
    allowed(act(Run::new()));
    let finished = act(limited("--max-file-size", "1M")).run();
    let outcome = finished.last("write-big");
    assert_eq!((outcome.errno(), outcome.detail.as_str()), ("EFBIG", "1048576"), "{finished}");
}

pub fn processor_time() {
    allowed(limited("--max-cpu-time", "5s").probe(&["spin", "0.1"]));
    let finished = limited("--max-cpu-time", "1s").probe(&["spin", "30"]).run();
    assert!([128 + libc::SIGXCPU, 137].contains(&finished.code), "{finished}");
}

pub fn memory_of_many_processes() {
    let act = |limit: &str, hold: &str| {
        limited("--max-memory", limit).probe(&["fork-alloc", "8", "20971520", hold])
    };
    allowed(act("512M", "500"));
    killed_for_memory(act("64M", "30000"));
}
