//! One thing missing: the rest is as it was, and what takes its place is said.

use std::net::TcpListener;

use crate::require;
use crate::support::{
    Ground, NO_PROCESS, PLAIN, Run, Scratch, UNREACHABLE, allowed, blocked, is_root, refused,
};

fn on(what: &'static str) -> Run {
    Run::new().on(Ground::Without(what))
}

fn control(run: Run, control: &str) -> serde_json::Value {
    let scratch = Scratch::new();
    let report = scratch.join("report");
    allowed(run.flag("--report").arg(&report).probe(&["cwd"]));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    report["controls"][control].clone()
}

#[test]
fn without_network_namespaces_sockets_are_refused() {
    require!("userns", "landlock");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let words = ["connect", &address];
    let bare = Run::bare().on(Ground::Without("net")).probe(&words);
    refused(on("net").probe(&words), bare, UNREACHABLE);
    blocked(on("net").probe(&["socket", "1", "1", "0"]), UNREACHABLE);
    // Or lead to the launcher's proxy, where something is allowed.
    let allow = || on("net").allow_net(&address);
    allowed(allow().probe(&words));
    assert!(allowed(allow().probe(&["connect", "127.18.0.53:3128"])).ok);
    blocked(allow().probe(&["connect", "127.0.0.1:9"]), UNREACHABLE);
    blocked(allow().probe(&["socket", "2", "2", "0"]), UNREACHABLE);
    blocked(allow().probe(&["offer", "0"]), UNREACHABLE);
    assert_eq!(control(allow(), "network")["status"], "enforced");
    // Everything else is that of an ordinary run.
    assert_eq!(allowed(on("net").probe(&["hostname"])).detail, "mcp");
    assert_eq!(control(on("net"), "network")["status"], "enforced");
    assert_eq!(control(on("net"), "filesystem")["status"], filesystem());
}

/// Root of a container cannot have its files appear as its stand-in's.
fn filesystem() -> &'static str {
    if is_root() { "partial" } else { "enforced" }
}

#[test]
fn without_pid_namespaces_it_is_as_without_any() {
    require!("userns", "landlock");
    allowed(on("pid").probe(&["cwd"]));
    assert_eq!(control(on("pid"), "tree_kill")["status"], "partial");
    assert_eq!(control(on("pid"), "process_isolation")["status"], "partial");
}

#[test]
fn with_a_masked_proc_the_host_s_is_shown_and_closed() {
    require!("userns", "landlock");
    let victim = Run::bare().env("CANARY", "seen").probe(&["sleep", "600"]).spawn();
    let pid = victim.pid().to_string();
    allowed(on("proc").probe(&["read", "/proc/self/status"]));
    assert_eq!(allowed(on("proc").probe(&["hostname"])).detail, "mcp");
    for act in ["environ", "proc-root", "proc-cwd", "mem"] {
        blocked(on("proc").probe(&[act, &pid]), NO_PROCESS);
    }
    allowed(on("proc").probe(&["cmdline", &pid]));
    blocked(on("proc").probe(&["write", "/proc/self/comm", "x"]), &["EROFS", "EACCES"]);
    assert_eq!(control(on("proc"), "filesystem")["status"], filesystem());
    let isolation = control(on("proc"), "process_isolation");
    assert_eq!(isolation["status"], "partial");
    assert!(isolation["missing"].as_str().unwrap().contains("command lines"), "{isolation}");
}

#[test]
fn a_gap_is_settled_as_the_user_said() {
    require!("plain");
    let strict = Run::new()
        .on(PLAIN)
        .flag("--strict")
        .flag("--max-memory")
        .arg("none")
        .probe(&["cwd"])
        .run();
    strict.code_is(125);
    assert!(strict.stderr.contains("user namespaces"), "{strict}");
    let allow = || Run::new().on(PLAIN).flag("--allow-net").arg("udp://1.1.1.1:53");
    let denied = allow().probe(&["cwd"]).run();
    denied.code_is(125);
    assert!(denied.stderr.contains("network"), "{denied}");
    allow().flag("--fallback").arg("warn").probe(&["cwd"]).run().code_is(0);
    let scratch = Scratch::new();
    scratch.file("data/.env", "secret");
    let deny = || Run::new().on(PLAIN).read(scratch.join("data")).deny("**/.env");
    let denied = deny().probe(&["cwd"]).run();
    denied.code_is(125);
    assert!(denied.stderr.contains("deny"), "{denied}");
    Run::new().on(PLAIN).deny("**/.env").probe(&["cwd"]).run().code_is(0);
}

#[test]
fn input_is_not_lost_on_the_way_to_the_second_plan() {
    require!("plain");
    let finished = Run::new().on(PLAIN).input("all of it").command(&["cat"]).run();
    assert_eq!(finished.text(), "all of it", "{finished}");
}
