//! The network, other processes, and what programs share without a path.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use super::{bare, plain};
use crate::require;
use crate::support::{
    FORBIDDEN, Live, NO_PROCESS, Scratch, UNREACHABLE, allowed, blocked, eventually, is_root,
    is_rootless, mcp_path, patience, probe_path, refused,
};

#[test]
fn no_socket_can_be_made() {
    require!("plain");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let words = ["connect", &address];
    refused(plain().probe(&words), bare().probe(&words), UNREACHABLE);
    for words in [
        &["udp-send", &address][..],
        &["fastopen", &address],
        &["listen", "0"],
        &["net-ifaces"],
        &["socket", "2", "1", "6"],
        &["socket", "10", "2", "17"],
        &["socket", "16", "3", "0"],
    ] {
        blocked(plain().probe(words), UNREACHABLE);
    }
    allowed(plain().flag("--network").arg("host").probe(&words));
}

/// D-Bus and docker.sock are ways out: a unix socket is refused with the host's network too.
#[test]
fn unix_sockets_of_the_host_are_out_of_reach() {
    require!("plain");
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let words = ["unix-connect", path.to_str().unwrap()];
    let denied = [UNREACHABLE, &["ENOENT"]].concat();
    for run in [
        plain(),
        plain().read(scratch.path()),
        plain().flag("--network").arg("host"),
        plain().flag("--network").arg("host").read(scratch.path()),
    ] {
        blocked(run.probe(&words), &denied);
    }
    allowed(bare().probe(&words));
}

#[test]
fn pairs_of_sockets_are_for_talking_to_oneself() {
    require!("plain");
    for (kind, is_allowed) in [("1", true), ("5", true), ("2", false), ("3", false)] {
        let run = plain().probe(&["socketpair", kind]).run();
        assert_eq!(run.last("socketpair").ok, is_allowed, "{kind}: {run}");
        allowed(bare().probe(&["socketpair", kind]));
    }
}

/// A process outside, in the same place.
fn victim() -> (Live, String) {
    let victim = bare().env("CANARY", "seen").probe(&["sleep", "600"]).spawn();
    let pid = victim.pid().to_string();
    let ready = eventually(patience(), || {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains("CANARY")
            && !String::from_utf8_lossy(&line).contains("without")
    });
    assert!(ready, "the victim never started");
    (victim, pid)
}

/// An act upon a process that stands beside the one that acts: a user namespace between the two would
/// refuse much of it already.
fn beside(inside: bool, act: &str) -> (String, String) {
    let (mcp, probe) = (mcp_path(), probe_path());
    let (mcp, probe) = (mcp.display(), probe.display());
    let launcher = if inside { format!("{mcp} run --quiet --") } else { String::new() };
    let script = format!(
        "CANARY=seen {probe} sleep 600 </dev/null & v=$!; \
         while [ \"$(cat /proc/$v/comm)\" = sh ]; do sleep 0.02; done; {launcher} {probe} {}; kill -9 $v",
        act.replace("PID", "$v")
    );
    let finished = bare().command(&["sh", "-c", &script]).run();
    let text = finished.text();
    let outcome: serde_json::Value =
        serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap_or_default();
    let errno = outcome["errno"].as_str().unwrap_or(if outcome["ok"] == true { "ok" } else { "?" });
    (errno.to_owned(), finished.to_string())
}

#[test]
fn processes_outside_cannot_be_touched() {
    require!("plain", "ptrace");
    for act in [
        "kill PID 0",
        "environ PID",
        "read /proc/PID/fd/0",
        "proc-root PID",
        "proc-cwd PID",
        "mem PID",
        "prlimit PID",
        "slow-down PID",
        "pin PID",
        "ptrace PID",
        "vm-read PID",
        "pidfd-getfd PID 0",
    ] {
        let (outside, shown) = beside(false, act);
        assert_eq!(outside, "ok", "{act}: {shown}");
        let (inside, shown) = beside(true, act);
        assert!(NO_PROCESS.contains(&inside.as_str()), "{act}: {shown}");
    }
}

/// What is left open is what the report says.
#[test]
fn command_lines_outside_are_seen_and_the_report_says_so() {
    require!("plain");
    let (_victim, pid) = victim();
    allowed(plain().probe(&["cmdline", &pid]));
    let scratch = Scratch::new();
    let report = scratch.join("report");
    allowed(plain().flag("--report").arg(&report).probe(&["cwd"]));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let isolation = &report["controls"]["process_isolation"];
    assert_eq!(isolation["status"], "partial", "{report:#}");
    assert!(isolation["missing"].as_str().unwrap().contains("command lines"), "{report:#}");
}

#[test]
fn launcher_and_supervisor_cannot_be_touched() {
    require!("plain");
    let script = "p=$PPID; l=$(awk '{print $4}' /proc/$p/stat); for x in $p $l; do \
                  for s in 0 15 9 19; do kill -$s $x 2>/dev/null && echo signalled; done; \
                  cat /proc/$x/environ /proc/$x/maps >/dev/null 2>&1 && echo read; \
                  readlink /proc/$x/fd/* /proc/$x/root && echo linked; done; echo done";
    let finished = plain().shell(script).run();
    finished.code_is(0);
    assert_eq!(finished.text(), "done\n", "{finished}");
}

/// The kernel sends it, but whom to is for the one who asks to say.
#[test]
fn no_signal_by_a_descriptor_s_owner() {
    require!("plain");
    let (victim, pid) = victim();
    let attack = plain().probe(&["signal-by-owner", &pid, "9"]).run();
    // Asking for it may work; the signal does not arrive.
    attack.code_is(0);
    std::thread::sleep(std::time::Duration::from_millis(200));
    allowed(bare().probe(&["kill", &pid, "0"]));
    allowed(bare().probe(&["signal-by-owner", &pid, "9"]));
    let gone = eventually(patience(), || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    });
    assert!(gone, "the control does not work");
    drop(victim);
}

#[test]
fn signals_to_everyone_and_to_groups_stay_inside() {
    require!("plain");
    let (_victim, pid) = victim();
    let group = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let group = group.rsplit(')').next().unwrap().split_whitespace().nth(2).unwrap().to_owned();
    for target in ["-1".to_owned(), format!("-{group}"), pid.clone()] {
        let run = plain().shell(&format!("(kill -9 -- {target}) 2>/dev/null; echo alive")).run();
        run.has_no_panic();
        allowed(bare().probe(&["kill", &pid, "0"]));
    }
}

#[test]
fn signals_inside_work() {
    require!("plain");
    let script = "sleep 60 & p=$!; kill -0 $p && kill -TERM $p; wait $p; echo $?; \
                  trap 'echo caught' USR1; kill -USR1 $$; \
                  cd; (trap 'exit 3' TERM; echo > up; sleep 60 & wait) & \
                  until [ -e up ]; do sleep 0.02; done; kill $!; wait $!; echo $?; \
                  timeout 0.2 sleep 60; echo $?";
    let finished = plain().shell(script).run();
    assert_eq!(finished.text(), "143\ncaught\n3\n124\n", "{finished}");
}

#[test]
fn nothing_is_shared_without_a_path() {
    require!("plain");
    let key = format!("{}", 0x6d63_0000u32 + std::process::id() % 0xffff);
    let name = format!("mcp-{}", std::process::id());
    for words in [&["shared-memory", &key][..], &["message-queue", &name]] {
        refused(plain().probe(words), bare().probe(words), FORBIDDEN);
    }
    let scratch = Scratch::new();
    let file = scratch.file("file", "");
    let words = ["watch", file.to_str().unwrap()];
    refused(plain().read(&file).probe(&words), bare().probe(&words), &["EACCES", "EPERM"]);
}

/// By what the kernel says to the same call outside: that it works, or that its arguments mean nothing.
#[test]
fn calls_upon_others_are_refused() {
    require!("plain");
    // A class of its own, in the middle.
    const BEST_EFFORT: u64 = 2 << 13 | 4;
    for (call, words, outside) in [
        (libc::SYS_setpriority, "0 PID 19".to_owned(), &["ok"][..]),
        (libc::SYS_ioprio_set, format!("1 PID {BEST_EFFORT}"), &["ok"]),
        (libc::SYS_sched_setparam, "PID 0".to_owned(), &["EINVAL"]),
        (libc::SYS_sched_setscheduler, "PID 0 0".to_owned(), &["EINVAL"]),
        (libc::SYS_sched_setattr, "PID 0 0".to_owned(), &["EINVAL"]),
        (libc::SYS_shmget, "0x6d637001 0 0".to_owned(), &["ENOENT"]),
        (libc::SYS_shmat, "0x7fffffff 0 0".to_owned(), &["EINVAL"]),
        (libc::SYS_semget, "0x6d637001 0 0".to_owned(), &["ENOENT"]),
        (libc::SYS_msgget, "0x6d637001 0".to_owned(), &["ENOENT"]),
    ] {
        let act = format!("syscall {call} {words}");
        let (found, shown) = beside(false, &act);
        assert!(outside.contains(&found.as_str()), "{act}: {shown}");
        let (found, shown) = beside(true, &act);
        assert!(["EPERM", "ENOSYS"].contains(&found.as_str()), "{act}: {shown}");
    }
    // Of all processes of a user: outside it would be just that.
    for (call, words) in [
        (libc::SYS_setpriority, "2 0 0".to_owned()),
        (libc::SYS_ioprio_set, format!("3 0 {BEST_EFFORT}")),
    ] {
        let (found, shown) = beside(true, &format!("syscall {call} {words}"));
        assert_eq!(found, "EPERM", "{shown}");
    }
    // Of itself it may.
    for (call, words) in [
        (libc::SYS_setpriority, "0 0 19".to_owned()),
        (libc::SYS_ioprio_set, format!("1 0 {BEST_EFFORT}")),
    ] {
        let (found, shown) = beside(true, &format!("syscall {call} {words}"));
        assert_eq!(found, "ok", "{shown}");
    }
    // setxattrat, getxattrat, listxattrat, removexattrat, file_getattr and file_setattr, where the kernel has them.
    for call in [463, 464, 465, 466, 468, 469] {
        let act = format!("syscall {call} 9999 0 0 0 0");
        if beside(false, &act).0 != "ENOSYS" {
            let (found, shown) = beside(true, &act);
            assert_eq!(found, "ENOSYS", "{act}: {shown}");
        }
    }
}

#[test]
fn privileges_are_gone() {
    require!("plain");
    let outcome = allowed(plain().probe(&["uid"]));
    // Root of a rootless container has no other id, and is an ordinary user.
    let has_root = outcome.detail.split_whitespace().any(|id| id == "0");
    assert_eq!(has_root, is_rootless(), "{outcome:?}");
    if is_root() {
        let groups = allowed(plain().probe(&["gids"]));
        assert!(!groups.detail.split_whitespace().any(|id| id == "0"), "{groups:?}");
    }
    assert_eq!(allowed(plain().probe(&["nnp"])).detail.trim(), "1");
    let caps = allowed(plain().probe(&["caps"]));
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(caps.field(set), ["0000000000000000"], "{caps:?}");
    }
    for words in [&["unshare", "user"][..], &["unshare", "mnt"], &["chroot", "/usr"]] {
        blocked(plain().probe(words), FORBIDDEN);
    }
}

/// The caller's environment is in no memory that can be read.
#[test]
fn environment_of_the_launcher_is_not_seen() {
    require!("plain");
    let script = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c MCP_CANARY_X";
    let finished = plain().env("MCP_CANARY_X", "1").shell(script).run();
    assert_eq!(finished.text(), "0\n", "{finished}");
    let control = bare().env("MCP_CANARY_X", "1").command(&["sh", "-c", script]).run();
    assert_ne!(control.text(), "0\n", "{control}");
}
