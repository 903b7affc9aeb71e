//! Host name, session, keyrings and namespaces of the sandbox's own.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::require;
use crate::support::{ABSENT, Run, Scratch, allowed, probe_path};

#[test]
fn host_name_is_its_own() {
    require!("userns");
    let bare = allowed(Run::bare().probe(&["hostname"])).detail;
    assert_eq!(allowed(Run::new().probe(&["hostname"])).detail, "mcp");
    assert_eq!(allowed(Run::bare().probe(&["hostname"])).detail, bare);
}

#[test]
fn session_is_its_own() {
    require!("userns");
    let field = |text: &str, name: &str| -> i64 {
        let word = text.split(' ').find_map(|word| word.strip_prefix(name)).unwrap();
        word.parse().unwrap()
    };
    let inside = allowed(Run::new().probe(&["session"])).detail;
    // A session or group from outside the pid namespace shows as 0.
    assert_ne!(field(&inside, "sid="), 0, "{inside}");
    assert_ne!(field(&inside, "pgid="), 0, "{inside}");
    assert_eq!(field(&inside, "tpgid="), -1, "{inside}");
}

#[test]
fn there_is_no_terminal_without_one() {
    require!("userns");
    let finished = Run::new().probe(&["tty"]).run();
    let outcome = finished.last("tty");
    let expected = [ABSENT, &["ENXIO", "EIO"]].concat();
    assert!(!outcome.ok && expected.contains(&outcome.errno()), "{finished}");
}

#[test]
fn every_namespace_is_its_own() {
    require!("userns");
    let kinds = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
    let script = format!("for n in {}; do readlink /proc/self/ns/$n; done", kinds.join(" "));
    let (bare, inside) = (Run::bare().shell(&script).run(), Run::new().shell(&script).run());
    let (bare, inside) = (bare.text(), inside.text());
    assert_eq!((bare.lines().count(), inside.lines().count()), (7, 7), "{bare}\n{inside}");
    for (outside, inside) in bare.lines().zip(inside.lines()) {
        assert_ne!(outside, inside);
    }
}

#[test]
fn keys_of_the_session_are_out_of_reach() {
    require!("userns", "keyring");
    let name = format!("mcp-escape-{}", std::process::id());
    let with_key = |run: Run| {
        let mut words = vec!["exec".into()];
        words.extend(run.words());
        Run::bare().probe(&["join-session"]).probe(&["add-key", &name, "canary"]).probe(&words)
    };
    let act = |run: Run| with_key(run.command(&[probe_path()]).command(&["keyctl-read", &name]));
    assert_eq!(allowed(act(Run::bare())).detail, "canary");
    let inside = act(Run::new()).run();
    let outcome = inside.last("keyctl-read");
    assert!(outcome.act == "keyctl-read" && !outcome.ok, "{inside}");
}

/// Users of its own, whose quotas no other test uses. Two, since the kernel frees the keys of an ended run later.
#[test]
fn a_user_without_room_for_keys_has_runs_and_a_report_that_says_so() {
    require!("userns", "keyring", "root", "not-rootless");
    let scratch = Scratch::new();
    std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).unwrap();
    let process_isolation = |uid: &str, keys: usize| {
        let user = format!("--reuid={uid}");
        let user = ["setpriv", &user, "--regid=54322", "--clear-groups", "--"].map(Into::into);
        let report = scratch.join(format!("{keys}.json"));
        let inside = Run::new().flag("--no-log").flag("--report").arg(&report);
        let inside = inside.command(&[probe_path()]).command(&["keyctl-read"]);
        let mut words = vec!["exec".into()];
        words.extend(inside.words());
        let mut run = Run::bare().around(user).cwd(scratch.path());
        run = run.env("HOME", scratch.path()).probe(&["join-session"]);
        for number in 0..keys {
            run = run.probe(&["add-key", &format!("mcp-escape-{number}"), "x"]);
        }
        let finished = run.probe(&words).run();
        let outcome = finished.last("keyctl-read");
        assert!(outcome.act == "keyctl-read" && outcome.errno() == "EPERM", "{finished}");
        let text = std::fs::read_to_string(&report).unwrap_or_else(|e| panic!("{e}\n{finished}"));
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        report["controls"]["process_isolation"].clone()
    };
    assert_eq!(process_isolation("54322", 0)["status"], "enforced");
    let maximum = std::fs::read_to_string("/proc/sys/kernel/keys/maxkeys").unwrap();
    let short = process_isolation("54323", maximum.trim().parse().unwrap());
    assert_eq!(short["status"], "partial", "{short:#}");
    assert!(short.to_string().contains("session keyring is kept"), "{short:#}");
}

#[test]
fn message_queues_and_shared_memory_are_its_own() {
    require!("userns");
    let (bare, inside) = ("cat /proc/sysvipc/shm /proc/sysvipc/msg", Run::new());
    let listing = inside.shell(bare).run();
    // Headers only: whatever segments the host has are not shown.
    assert_eq!(listing.text().lines().count(), 2, "{listing}");
}
