//! The process that changes files and sends signals for the command: who it is, who reaches it, and what becomes
//! of a run without it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::plain;
use crate::require;
use crate::support::{Live, Run, eventually, is_root, patience, sys};

/// The only process of that name below the launcher.
fn deputy_of(live: &Live) -> u32 {
    let found = || {
        let list = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", live.pid()));
        let children = list.unwrap_or_default();
        let of_name = |pid: &&str| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name.trim() == "mcp-syscalls")
        };
        children.split_whitespace().find(of_name).map(|pid| pid.parse::<u32>().unwrap())
    };
    assert!(eventually(patience(), || found().is_some()), "the launcher has no syscall_proxy");
    found().unwrap()
}

/// The process that says where it is.
fn command_of(live: &Live) -> u32 {
    let said = live.text();
    let line = said.lines().find_map(|line| line.strip_prefix("begun "));
    line.unwrap_or_else(|| panic!("never begun: {said}")).parse().unwrap()
}

fn field(status: &str, name: &str) -> Vec<String> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let line = line.unwrap_or_else(|| panic!("no {name} in {status}"));
    line.split_whitespace().map(str::to_owned).collect()
}

/// Says its process number, and lives until its input ends.
fn waiting(script: &str) -> Run {
    plain().shell(&format!("{script}; echo begun $$; read line; echo ended")).open_input()
}

#[test]
fn is_the_user_that_the_command_is_and_has_no_privilege() {
    require!("plain");
    let mut live = waiting(":").spawn();
    live.await_output("begun");
    let status = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let syscall_proxy = status(deputy_of(&live));
    let launcher = status(live.pid());
    let uids = field(&syscall_proxy, "Uid");
    assert!(uids.iter().all(|uid| *uid == uids[0]), "{syscall_proxy}");
    assert!(
        field(&syscall_proxy, "Gid").iter().all(|gid| *gid == field(&syscall_proxy, "Gid")[0]),
        "{syscall_proxy}"
    );
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(field(&syscall_proxy, set), ["0000000000000000"], "{syscall_proxy}");
    }
    assert_eq!(field(&syscall_proxy, "NoNewPrivs"), ["1"], "{syscall_proxy}");
    // The files of a process that is not dumpable are not its user's.
    let own_files = |pid: u32| {
        let files = std::fs::metadata(format!("/proc/{pid}/environ")).unwrap();
        files.uid().to_string() == uids[0]
    };
    assert!(!own_files(deputy_of(&live)) && own_files(command_of(&live)));
    if is_root() {
        // The launcher is root, and the syscall_proxy is not, in no way.
        assert_eq!(field(&launcher, "Uid")[0], "0");
        assert_ne!(field(&launcher, "CapEff"), ["0000000000000000"]);
        assert!(
            !uids.contains(&"0".to_owned()) && field(&syscall_proxy, "Groups").is_empty(),
            "{syscall_proxy}"
        );
    }
    drop(live.stdin());
    live.wait().code_is(0);
}

/// It is of the same user, but neither traced nor signalled nor looked into.
#[test]
fn is_out_of_the_commands_reach() {
    require!("plain");
    let script = "for p in /proc/[0-9]*; do \
                  [ \"$(cat $p/comm 2>/dev/null)\" = mcp-syscalls ] || continue; \
                  n=${p#/proc/}; echo found; \
                  kill -9 $n 2>/dev/null && echo killed; kill -STOP $n 2>/dev/null && echo stopped; \
                  [ -n \"$(head -c9 $p/environ 2>/dev/null)\" ] && echo environ; ls $p/fd >/dev/null 2>&1 && echo fd; \
                  head -c1 $p/mem >/dev/null 2>&1 && echo mem; [ -n \"$(cat $p/maps 2>/dev/null)\" ] && echo maps; \
                  ls $p/root/ >/dev/null 2>&1 && echo root; ls $p/cwd/ >/dev/null 2>&1 && echo cwd; \
                  { echo 1000 > $p/oom_score_adj; } 2>/dev/null && echo oom; \
                  done; cd $HOME; touch f; chmod 640 f && stat -c %a f";
    // As root all of these tests are one user, and the limit counts its processes.
    let finished = plain().flag("--max-pids=2000").shell(script).run();
    let text = finished.text();
    // Other tests have deputies of their own; of one that has just ended the files are there, and empty.
    let lines: Vec<&str> = text.lines().filter(|line| *line != "found").collect();
    assert_eq!(lines, ["640"], "{finished}");
    assert!(text.contains("found"), "{finished}");
}

#[test]
fn ends_with_the_run_and_with_the_launcher() {
    require!("plain");
    for killed in [false, true] {
        let mut live = waiting(":").spawn();
        live.await_output("begun");
        let syscall_proxy = deputy_of(&live);
        let place = format!("/proc/{syscall_proxy}/comm");
        match killed {
            true => live.signal(libc::SIGKILL),
            false => drop(live.stdin()),
        }
        let gone = || std::fs::read_to_string(&place).map_or(true, |name| name != "mcp-syscalls\n");
        assert!(eventually(patience(), gone), "still there after the end (killed: {killed})");
    }
}

/// To kill it makes nothing possible: what it had to answer for is refused, and the run goes on.
#[test]
fn without_it_files_are_not_changed() {
    require!("plain");
    let script = "cd $HOME; touch f; chmod 600 f; stat -c %a f; echo begun; read line; \
                  chmod 640 f 2>/dev/null || echo refused; stat -c %a f";
    let mut live = plain().shell(script).open_input().spawn();
    live.await_output("begun");
    sys::kill(deputy_of(&live), libc::SIGKILL);
    drop(live.stdin());
    let finished = live.wait();
    assert_eq!(finished.text(), "600\nbegun\nrefused\n600\n", "{finished}");
}

/// One that is killed while calls wait for it: they are refused, and no caller waits for ever.
#[test]
fn its_end_ends_all_waiting() {
    require!("plain");
    let script = "cd $HOME; touch f; echo begun; read line; \
                  for i in 1 2 3; do (chmod 640 f 2>/dev/null || echo refused) & done; echo asked; wait";
    let mut live = plain().shell(script).open_input().spawn();
    live.await_output("begun");
    let syscall_proxy = deputy_of(&live);
    sys::kill(syscall_proxy, libc::SIGSTOP);
    drop(live.stdin());
    live.await_output("asked");
    let waits = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.starts_with("Name:\tchmod\n") && status.contains("State:\tS")
    };
    let all_wait = || live.descendants().iter().filter(|pid| waits(pid)).count() == 3;
    assert!(eventually(patience(), all_wait), "they do not ask");
    sys::kill(syscall_proxy, libc::SIGKILL);
    let finished = live.wait();
    assert_eq!(finished.text().matches("refused").count(), 3, "{finished}");
}

/// It may have to wait for a file (a network file system that is away): the launcher does not, and its clock runs.
#[test]
fn one_that_waits_does_not_stop_the_clock() {
    require!("plain");
    let run = |script: &str| {
        let run = plain().flag("--timeout").arg("2s").flag("--grace").arg("100ms");
        run.flag("--max-pids").arg("2000").shell(script).open_input()
    };
    let mut live = run("cd $HOME; touch f; echo begun; read line; \
                        i=0; while [ $i -lt 200 ]; do chmod 640 f & i=$((i+1)); done; wait; echo done")
    .spawn();
    live.await_output("begun");
    let syscall_proxy = deputy_of(&live);
    sys::kill(syscall_proxy, libc::SIGSTOP);
    drop(live.stdin());
    let finished = live.wait();
    finished.code_is(124);
    assert!(!finished.text().contains("done"), "{finished}");
    assert!(!Path::new(&format!("/proc/{syscall_proxy}/fd/0")).exists());
}

/// Many at once are answered, all of them.
#[test]
fn answers_many_at_once() {
    require!("plain");
    let script = "cd $HOME; i=0; while [ $i -lt 150 ]; do touch f$i; i=$((i+1)); done; \
                  i=0; while [ $i -lt 150 ]; do (chmod 640 f$i; touch -d @9 f$i) & i=$((i+1)); done; wait; \
                  stat -c %a:%Y f* | sort | uniq -c";
    // Where the launcher connects for the command, another thread of it hands the calls on.
    for run in [plain(), plain().allow_net("api.test")] {
        let finished = run.flag("--max-pids").arg("600").shell(script).run();
        let told = finished.text();
        assert_eq!(told.split_whitespace().collect::<Vec<_>>(), ["150", "640:9"], "{finished}");
    }
}
