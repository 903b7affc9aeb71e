//! What this machine can do, so that a skipped test says why.

use std::path::Path;
use std::sync::OnceLock;

use super::{Run, sys};

/// Root of the machine. Uid 0 of a user namespace that has not every id, as in a rootless container, is an ordinary
/// user.
pub fn is_root() -> bool {
    sys::euid() == 0 && !is_rootless()
}

pub fn is_rootless() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    sys::euid() == 0 && map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"]
}

/// Whether the machine has a feature. Prints `SKIP: reason` when not, and panics when
/// `MCP_REQUIRE` names it.
#[track_caller]
pub fn available(feature: &str) -> bool {
    let missing = match feature {
        "userns" => user_namespaces(),
        "plain" => landlock(1, "where there are no user namespaces"),
        "root" => (!is_root()).then(|| "this test must be started by root".to_owned()),
        "not-rootless" => {
            is_rootless().then(|| "uid 0 of a user namespace with few ids".to_owned())
        }
        "ordinary-user" => is_root().then(|| "root's stand-in owns nothing of root's".to_owned()),
        "cgroup" => cgroup(),
        "no-cgroup" => cgroup().is_none().then(|| "there are cgroups here".to_owned()),
        "ptrace" => yama(),
        "keyring" => keyring(),
        "landlock" => landlock(2, "to move files between directories"),
        "landlock-scopes" => landlock(6, "to keep signals and abstract sockets inside"),
        "landlock-sockets" => landlock(9, "to refuse unix sockets by path"),
        "mount-attributes" => mount_attributes(),
        "mapped-tmpfs" if !is_root() => None,
        "mapped-tmpfs" => kernel(6, 3, "for root's stand-in to own what is root's on a tmpfs"),
        "overlay" => overlay(),
        "nproc" => kernel(5, 14, "for RLIMIT_NPROC to count in a user namespace alone"),
        "ipv6" => std::net::TcpListener::bind("[::1]:0").err().map(|error| error.to_string()),
        other => panic!("no feature is named {other}"),
    };
    let Some(reason) = missing else { return true };
    skip(feature, reason);
    false
}

/// Says why a test cannot try something here, for what is known only in its middle. The caller
/// returns then.
#[track_caller]
pub fn skip(feature: &str, reason: impl std::fmt::Display) {
    let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == feature),
        "MCP_REQUIRE={required}, but {feature} is missing: {reason}"
    );
    println!("SKIP: {feature}: {reason}");
}

/// Whether a program is installed; skips in its name where it is not.
#[track_caller]
pub fn has_program(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !found {
        skip(program, "is not installed");
    }
    found
}

/// In user namespaces, and as root over trees with mapped owners.
fn overlay() -> Option<String> {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    match known.lines().any(|line| line.ends_with("\toverlay")) {
        true if is_root() => kernel(5, 19, "for an overlay over trees with mapped owners"),
        true => kernel(5, 11, "for an overlay in a user namespace"),
        false => Some("this kernel has no overlayfs".to_owned()),
    }
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

/// Whether limits on a whole tree can be had: a place in cgroup v2 that we may write and that has
/// the controllers, a user manager to ask for one, or root.
pub fn cgroup() -> Option<String> {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (mounts, own) = (text("/proc/self/mountinfo"), text("/proc/self/cgroup"));
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let Some(mount) = mount.and_then(|line| line.split(' ').nth(4)) else {
        return Some("cgroup v2 is not mounted".to_owned());
    };
    let has_memory = |dir: &Path, file: &str| {
        text(&dir.join(file).to_string_lossy()).split_whitespace().any(|word| word == "memory")
    };
    let Some(own) = own.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return Some("we are in no cgroup of version 2".to_owned());
    };
    let own = Path::new(mount).join(own);
    if !has_memory(Path::new(mount), "cgroup.controllers") {
        return Some("cgroup v2 has no memory controller".to_owned());
    }
    let manager = std::env::var("XDG_RUNTIME_DIR").unwrap_or_default() + "/systemd/private";
    let may_write = |dir: &Path| sys::may_write(&dir.join("cgroup.procs"));
    let parent = own.parent().filter(|parent| parent.starts_with(mount));
    let beside =
        parent.is_some_and(|dir| may_write(dir) && has_memory(dir, "cgroup.subtree_control"));
    let found = is_root() || beside || Path::new(&manager).exists();
    (!found).then(|| format!("{} is not delegated, and no user manager runs", own.display()))
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

fn kernel(major: u32, minor: u32, what_for: &str) -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let release = release.trim();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|it| it.parse().unwrap());
    let here: (u32, u32) = (numbers.next().unwrap(), numbers.next().unwrap());
    let needed = (major, minor);
    (here < needed).then(|| format!("{release} here, {major}.{minor} is needed {what_for}"))
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
