//! New processes and programs, and who belongs to a run.

use mcp_sandbox::macos::MacFacts;

use crate::evaluator::Question;
use crate::support::{Mac, policy, request};

#[test]
fn without_subprocesses_only_the_program_itself_and_mcp() {
    let mac = Mac::with(|f| f.no_subprocess().read("/Users/me/tools"));
    assert!(!mac.asks(Question::new("process-fork")));
    for program in ["/bin/sh", "/usr/bin/env", "/Users/me/tools/x", "/usr/lib/dyld"] {
        assert!(!mac.may("process-exec", program), "{program}");
        assert!(!mac.may("process-exec-interpreter", program), "{program}");
    }
    assert!(mac.executes("/opt/homebrew/Cellar/node/22/bin/node"));
    assert!(mac.executes("/usr/local/bin/mcp"));
}

#[test]
fn a_program_behind_a_link_is_the_one_that_is_executed() {
    let mut request = request(policy(|f| f.no_subprocess()));
    request.program = "/opt/homebrew/bin/node".into();
    let to = "../Cellar/node/22/bin/node".into();
    request.links = vec![mcp_sandbox::Link { at: "/opt/homebrew/bin/node".into(), to }];
    let mac = Mac::of(&request);
    assert!(mac.executes("/opt/homebrew/Cellar/node/22/bin/node"));
    assert!(mac.may("file-read-metadata", "/opt/homebrew/bin/node"), "the link itself");
    assert!(!mac.may("process-exec", "/opt/homebrew/Cellar/python/3/bin/python3"));
}

#[test]
fn a_denied_program_is_not_executed() {
    let mac = Mac::with(|f| f.write("/Users/me/project").deny("**/*.sh"));
    assert!(mac.executes("/Users/me/project/a.py"));
    assert!(!mac.may("process-exec", "/Users/me/project/a.sh"));
    assert!(!mac.may("file-map-executable", "/Users/me/project/a.sh"));
}

#[test]
fn a_run_is_known_by_its_own_name_only() {
    let mac = Mac::with(|f| f);
    let nonce = MacFacts::usual().nonce;
    assert!(mac.looks_up(&format!("mcp.run.{nonce}")));
    assert!(!mac.looks_up("mcp.run.other"));
}
