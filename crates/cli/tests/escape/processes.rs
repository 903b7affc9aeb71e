//! Other processes: the host's are not there, and init is beyond reach.

use crate::support::{
    FORBIDDEN, Live, NO_PROCESS, Run, allowed, blocked, eventually, patience, refused,
};
use crate::{require, shared_attacks};

shared_attacks! { "userns", processes:
    programs_may_have_children;
}

/// A process on the host, started by the test.
fn victim() -> (Live, String) {
    let victim = Run::bare().env("CANARY", "seen").probe(&["sleep", "600"]).spawn();
    let pid = victim.pid().to_string();
    let environ = format!("/proc/{pid}/environ");
    let ready = eventually(patience(), || {
        std::fs::read_to_string(&environ).unwrap_or_default().contains("CANARY")
    });
    assert!(ready, "the victim never started");
    (victim, pid)
}

#[test]
fn host_processes_are_not_listed() {
    require!("userns");
    let (_victim, pid) = victim();
    assert!(allowed(Run::bare().probe(&["proc-list"])).lines().contains(&pid.as_str()));
    let inside = allowed(Run::new().probe(&["proc-list"]));
    assert!(inside.lines().len() <= 3, "{inside:?}");
    assert!(!inside.lines().contains(&pid.as_str()), "{inside:?}");
}

#[test]
fn host_processes_cannot_be_touched() {
    require!("userns");
    let (_victim, pid) = victim();
    for words in [
        &["kill", &pid, "0"][..],
        &["environ", &pid],
        &["cmdline", &pid],
        &["proc-fd", &pid],
        &["proc-root", &pid],
        &["proc-cwd", &pid],
        &["prlimit", &pid],
    ] {
        refused(Run::new().probe(words), Run::bare().probe(words), NO_PROCESS);
    }
}

#[test]
fn host_processes_cannot_be_traced() {
    require!("userns", "ptrace");
    let (_victim, pid) = victim();
    for words in
        [&["ptrace", &pid][..], &["vm-read", &pid], &["mem", &pid], &["pidfd-getfd", &pid, "0"]]
    {
        refused(Run::new().probe(words), Run::bare().probe(words), NO_PROCESS);
    }
}

#[test]
fn signal_to_everyone_stays_inside() {
    require!("userns");
    let (victim, _) = victim();
    let everyone = Run::new().shell("kill -9 -1; echo alive").run();
    everyone.has_no_panic();
    // The sweep must not have reached the host: a second run and the victim still work.
    allowed(Run::new().probe(&["cwd"]));
    allowed(Run::bare().probe(&["kill", &victim.pid().to_string(), "0"]));
}

#[test]
fn init_cannot_be_killed_or_stopped() {
    require!("userns");
    for signal in ["9", "19"] {
        let finished = Run::new()
            .probe(&["kill", "1", signal])
            .probe(&["sleep", "0.2"])
            .probe(&["fork", "2"])
            .probe(&["exit", "5"])
            .run();
        finished.code_is(5);
        assert!(finished.act("fork").ok, "{finished}");
    }
}

#[test]
fn init_cannot_be_looked_into() {
    require!("userns");
    for act in ["environ", "mem", "proc-fd", "proc-root", "proc-cwd"] {
        refused(
            Run::new().probe(&[act, "1"]),
            Run::new().probe(&[act, "self"]),
            &["EACCES", "EPERM", "ENOENT", "ESRCH"],
        );
    }
    for words in [&["ptrace", "1"][..], &["vm-read", "1"], &["pidfd-getfd", "1", "0"]] {
        blocked(Run::new().probe(words), FORBIDDEN);
    }
}

#[test]
fn orphans_are_reaped() {
    require!("userns");
    let finished = Run::new()
        .probe(&["daemonize", "0.05"])
        .probe(&["daemonize", "0.05"])
        .probe(&["await-processes", "3"])
        .run();
    assert!(finished.last("await-processes").ok, "zombies stay: {finished}");
}

/// Its limits, priority and processors are its own: with fewer open files it would give up, and the run with it.
#[test]
fn init_can_be_neither_limited_nor_slowed() {
    require!("userns");
    const BEST_EFFORT: &str = "16388";
    let call = |number: i64| number.to_string();
    let (priority, io) = (call(libc::SYS_setpriority), call(libc::SYS_ioprio_set));
    for (words, own) in [
        (&["limit-files", "1", "1"][..], &["limit-files", "0", "64"][..]),
        (&["prlimit", "1"], &["prlimit", "0"]),
        (&["slow-down", "1"], &["slow-down", "0"]),
        (&["pin", "1"], &["pin", "0"]),
        (&["syscall", &priority, "1", "1", "19"], &["syscall", &priority, "0", "0", "19"]),
        (&["syscall", &priority, "2", "0", "19"], &["syscall", &priority, "0", "0", "19"]),
        (&["syscall", &io, "1", "1", BEST_EFFORT], &["syscall", &io, "1", "0", BEST_EFFORT]),
        (&["syscall", &io, "2", "1", BEST_EFFORT], &["syscall", &io, "1", "0", BEST_EFFORT]),
        (&["syscall", &io, "3", "0", BEST_EFFORT], &["syscall", &io, "1", "0", BEST_EFFORT]),
    ] {
        blocked(Run::new().probe(words), &["EPERM"]);
        allowed(Run::new().probe(own));
    }
    // Nor from init's own group, which the command can join.
    let join = ["syscall", &call(libc::SYS_setpgid), "0", "1"];
    let finished = Run::new().probe(&join).probe(&["syscall", &priority, "1", "0", "19"]).run();
    assert_eq!(finished.last("setpriority").errno(), "EPERM", "{finished}");
}
