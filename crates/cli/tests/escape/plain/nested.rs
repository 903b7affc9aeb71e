//! A sandbox in a sandbox: what is inside has the walls of both.

use super::plain;
use crate::require;
use crate::support::{ABSENT, FORBIDDEN, Run, Scratch, allowed, blocked, mcp_path, probe_path};

fn inner(run: Run, flags: &[&str], words: &[&str]) -> Run {
    let (mcp, probe) = (mcp_path(), probe_path());
    let mut command: Vec<&str> = vec![mcp.to_str().unwrap(), "run"];
    command.extend(flags);
    command.extend(["--", probe.to_str().unwrap()]);
    command.extend(words);
    run.read(&mcp).read(&probe).command(&command)
}

#[test]
fn the_inner_one_runs_and_has_fewer_rights() {
    require!("plain");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "text");
    let secret = secret.to_str().unwrap();
    for outer in [Run::new(), plain()] {
        let finished = inner(outer, &["--quiet"], &["cwd"]).run();
        finished.code_is(0);
        assert!(finished.last("cwd").ok, "{finished}");
    }
    // Granted to the outer one only.
    for outer in [Run::new(), plain()] {
        let attack = inner(outer.read(scratch.path()), &["--quiet"], &["read", secret]);
        blocked(attack, ABSENT);
    }
    for outer in [Run::new(), plain()] {
        let run = inner(
            outer.read(scratch.path()),
            &["--quiet", "--read", scratch.path().to_str().unwrap()],
            &["read", secret],
        );
        let finished = run.run();
        assert_eq!(finished.last("read").detail, "text", "{finished}");
    }
}

/// A task can have one listener, and around this one the outer sandbox listens.
#[test]
fn an_inner_one_that_cannot_ask_says_who_can() {
    require!("plain");
    let refused = inner(plain(), &["--no-subprocess"], &["cwd"]).run();
    refused.code_is(125);
    let remedy = "give --no-subprocess to the outer sandbox";
    assert!(refused.stderr.contains(remedy), "{refused}");
}

/// With namespaces of its own the outer sandbox has no need to listen.
#[test]
fn an_inner_one_that_can_ask_has_no_processes() {
    require!("plain", "userns");
    if std::env::var_os("MCP_TEST_WATCH").is_some() {
        println!("SKIP: in learning mode the outer sandbox listens");
        return;
    }
    let no_forks = |words: &[&str]| inner(Run::new(), &["--quiet", "--no-subprocess"], words);
    allowed(no_forks(&["cwd"]));
    blocked(no_forks(&["fork", "1"]), FORBIDDEN);
    allowed(inner(Run::new(), &["--quiet"], &["fork", "1"]));
}
