//! `mcp` as the helper of a program that uses the library. This one, run by libtest, has threads
//! and never calls `dispatch`.
#![cfg(target_os = "linux")]

use std::path::PathBuf;

use mcp_sandbox::{Control, Error, Sandbox};

fn mcp() -> PathBuf {
    std::env::var_os("MCP_BIN").map_or_else(|| env!("CARGO_BIN_EXE_mcp").into(), PathBuf::from)
}

/// `None` where no sandbox can be started; said, and a failure where it is required.
fn sandbox(program: &str) -> Option<Sandbox> {
    if let Err(Error::Setup(failure)) = Sandbox::new("true").helper(mcp()).status()
        && failure.step.contains("namespace")
    {
        let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name.trim() == "userns"), "{failure}");
        println!("SKIP: userns: {failure}");
        return None;
    }
    let mut sandbox = Sandbox::new(program);
    sandbox.helper(mcp());
    Some(sandbox)
}

#[test]
fn mcp_is_a_helper() {
    let Some(mut sandbox) = sandbox("sh") else { return };
    let output =
        sandbox.args(["-c", "echo $TOKEN; exit 4"]).secret("TOKEN", "hunter2").output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.outcome.code()), (&b"hunter2\n"[..], Some(4)));
    let report = output.outcome.report.unwrap();
    assert!(report.controls[&Control::Filesystem].is_enforced(), "{report:?}");
}

#[test]
fn errors_of_the_helper_are_the_callers() {
    let Some(mut sandbox) = sandbox("no-such-program") else { return };
    let error = sandbox.spawn().unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
}

#[test]
fn without_a_helper_nothing_is_started_twice() {
    let error = Sandbox::new("true").spawn().unwrap_err();
    assert!(error.to_string().contains("dispatch() was not called"), "{error}");
}
