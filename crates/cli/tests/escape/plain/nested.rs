//! A sandbox in a sandbox: what is inside has the walls of both.

use super::plain;
use crate::require;
use crate::support::{ABSENT, Run, Scratch, blocked, mcp_path, probe_path};

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
