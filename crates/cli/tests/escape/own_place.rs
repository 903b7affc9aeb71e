//! Host name, session, keyrings and namespaces of the sandbox's own.

use crate::require;
use crate::support::{ABSENT, Run, allowed, probe_path};

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

#[test]
fn message_queues_and_shared_memory_are_its_own() {
    require!("userns");
    let (bare, inside) = ("cat /proc/sysvipc/shm /proc/sysvipc/msg", Run::new());
    let listing = inside.shell(bare).run();
    // Headers only: whatever segments the host has are not shown.
    assert_eq!(listing.text().lines().count(), 2, "{listing}");
}
