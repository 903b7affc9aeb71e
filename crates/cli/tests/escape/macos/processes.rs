//! Other processes are beyond reach.

use crate::support::{NO_PROCESS, Run, allowed, refused};
use crate::{require, shared_attacks};

shared_attacks! { "seatbelt", processes:
    programs_may_have_children;
}

#[test]
fn host_processes_cannot_be_touched() {
    require!("seatbelt");
    let victim = Run::bare().probe(&["sleep", "600"]).spawn();
    let pid = victim.pid().to_string();
    for signal in ["0", "18"] {
        let words = ["kill", &pid, signal];
        refused(Run::new().probe(&words), Run::bare().probe(&words), NO_PROCESS);
    }
}

#[test]
fn host_processes_are_not_listed() {
    require!("seatbelt");
    let victim = Run::bare().env("CANARY", "seen-by-ps").probe(&["sleep", "600"]).spawn();
    let pid = victim.pid().to_string();
    let list = ["/bin/ps", "-Axww", "-o", "pid=,command="];
    let bare = Run::bare().command(&list).run();
    assert!(bare.text().lines().any(|line| line.trim_start().starts_with(&pid)), "{bare}");
    let inside = Run::new().command(&list).run();
    assert!(!inside.text().lines().any(|line| line.trim_start().starts_with(&pid)), "{inside}");
}

#[test]
fn signal_to_everyone_stays_inside() {
    require!("seatbelt");
    let victim = Run::bare().probe(&["sleep", "600"]).spawn();
    Run::new().shell("kill -9 -1; echo alive").run().has_no_panic();
    allowed(Run::new().probe(&["cwd"]));
    allowed(Run::bare().probe(&["kill", &victim.pid().to_string(), "0"]));
}

/// launchd and LaunchServices would start a program outside of every sandbox.
#[test]
fn nobody_outside_starts_a_program_for_us() {
    require!("seatbelt");
    for words in [
        &["/usr/bin/open", "-g", "-a", "TextEdit"][..],
        &["/usr/bin/osascript", "-e", "tell application \"Finder\" to get name"],
        &["/bin/launchctl", "submit", "-l", "mcp.escape.test", "--", "/usr/bin/true"],
    ] {
        let finished = Run::new().command(words).run();
        assert_ne!(finished.code, 0, "{words:?}\n{finished}");
    }
}
