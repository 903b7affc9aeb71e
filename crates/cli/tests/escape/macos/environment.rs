//! Only named variables arrive, and secrets are nowhere else.

use std::process::Command;

use crate::require;
use crate::support::{Run, allowed};

const CANARY: &str = "canary-2f6b1d";

fn launcher_with_secret() -> Run {
    Run::new().env("MCP_TEST_SECRET", CANARY)
}

#[test]
fn unnamed_variables_do_not_get_in() {
    require!("seatbelt");
    let names = allowed(launcher_with_secret().env("DYLD_PRINT_LIBRARIES", "1").probe(&["env"]));
    for name in ["MCP_TEST_SECRET", "DYLD_PRINT_LIBRARIES", "SSH_AUTH_SOCK"] {
        assert!(!names.lines().contains(&name), "{names:?}");
    }
}

#[test]
fn named_variables_get_in() {
    require!("seatbelt");
    let value = |run: Run, name: &str| allowed(run.probe(&["getenv", name])).detail;
    let run = || launcher_with_secret().flag("--env");
    assert_eq!(value(run().arg("MCP_TEST_SECRET"), "MCP_TEST_SECRET"), CANARY);
    assert_eq!(value(run().arg("NEW=a=b c"), "NEW"), "a=b c");
}

#[test]
fn secrets_are_not_on_any_command_line() {
    require!("seatbelt");
    let run = launcher_with_secret().flag("--secret").arg("TOKEN=env:MCP_TEST_SECRET");
    let live = run.shell("echo ready; sleep 30").spawn();
    live.await_output("ready");
    let list = Command::new("/bin/ps").args(["-Axww", "-o", "command="]).output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("TOKEN=env:"), "{list}");
    assert!(!list.contains(CANARY), "{list}");
    live.signal(libc::SIGKILL);
}
