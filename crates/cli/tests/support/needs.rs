//! What this machine can do, so that a skipped test says why.

use std::sync::OnceLock;

use super::{Run, sys};

pub fn is_root() -> bool {
    sys::euid() == 0
}

/// Whether the machine has a feature. Prints `SKIP: reason` when not, and panics when
/// `MCP_REQUIRE` names it.
#[track_caller]
pub fn available(feature: &str) -> bool {
    let missing = match feature {
        "userns" => user_namespaces(),
        "plain" => landlock(1, "where there are no user namespaces"),
        "root" => (!is_root()).then(|| "this test must be started by root".to_owned()),
        "ptrace" => yama(),
        "keyring" => keyring(),
        "landlock" => landlock(2, "to move files between directories"),
        "landlock-scopes" => landlock(6, "to keep signals and abstract sockets inside"),
        "landlock-sockets" => landlock(9, "to refuse unix sockets by path"),
        "mount-attributes" => mount_attributes(),
        "ipv6" => std::net::TcpListener::bind("[::1]:0").err().map(|error| error.to_string()),
        other => panic!("no feature is named {other}"),
    };
    let Some(reason) = missing else { return true };
    let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == feature),
        "MCP_REQUIRE={required}, but {feature} is missing: {reason}"
    );
    println!("SKIP: {feature}: {reason}");
    false
}

pub fn user_namespaces() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING
        .get_or_init(|| {
            let finished = Run::bare().probe(&["unshare", "user,mnt,pid,net,ipc,uts,cgroup"]).run();
            let outcome = finished.last("unshare");
            (!outcome.ok).then(|| format!("unshare: {}", outcome.detail))
        })
        .clone()
}

/// With Yama an ordinary user cannot look into processes that are not its children.
fn yama() -> Option<String> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let scope = scope.trim();
    let free = ["", "0"].contains(&scope) || (scope == "1" && is_root());
    (!free).then(|| format!("kernel.yama.ptrace_scope is {scope}"))
}

/// The version of Landlock that the kernel offers; 0 for none.
pub fn landlock_abi() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let call = libc::SYS_landlock_create_ruleset.to_string();
        let finished = Run::bare().probe(&["syscall", &call, "0", "0", "1"]).run();
        let outcome = finished.last("syscall");
        if outcome.ok { outcome.detail.parse().unwrap() } else { 0 }
    })
}

fn landlock(needed: u32, what_for: &str) -> Option<String> {
    let version = landlock_abi();
    (version < needed).then(|| format!("version {version} here, {needed} is needed {what_for}"))
}

/// Before Linux 5.12 a file on standard input is copied to a pipe instead of mounted read-only.
fn mount_attributes() -> Option<String> {
    let call = libc::SYS_mount_setattr.to_string();
    let finished = Run::bare().probe(&["syscall", &call, "-1"]).run();
    let errno = finished.last("mount_setattr").errno().to_owned();
    (errno == "ENOSYS").then(|| "the kernel has no mount_setattr".to_owned())
}

fn keyring() -> Option<String> {
    let finished = Run::bare().probe(&["join-session"]).run();
    let outcome = finished.last("join-session");
    (!outcome.ok).then(|| outcome.detail.clone())
}
