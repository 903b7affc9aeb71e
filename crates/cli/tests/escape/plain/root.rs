//! Started by root, or by sudo: nothing that root may do is done for the command.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{bare, plain};
use crate::require;
use crate::support::{
    Preparation, Run, Scratch, allowed, blocked, eventually, has_program, patience,
};

const USER: u32 = 12_345;
const GROUP: u32 = 12_346;
/// A group of root's, and not of the user's.
const OTHER: u32 = 12_347;

/// As sudo starts it, with supplementary groups that are root's alone.
fn sudo() -> Run {
    with_groups(plain()).env("SUDO_UID", USER.to_string()).env("SUDO_GID", GROUP.to_string())
}

fn with_groups(run: Run) -> Run {
    run.prepare(Preparation::Groups(&[0, OTHER]))
}

struct Owned {
    mode: u32,
    owner: (u32, u32),
}

fn give(path: &Path, Owned { mode, owner }: Owned) {
    chown(path, Some(owner.0), Some(owner.1)).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory of the user's with a file in it, which others may reach.
fn project(scratch: &Scratch) -> (PathBuf, PathBuf) {
    give(scratch.path(), Owned { mode: 0o755, owner: (0, 0) });
    let file = scratch.file("project/file", "text");
    let dir = scratch.join("project");
    give(&dir, Owned { mode: 0o755, owner: (USER, GROUP) });
    give(&file, Owned { mode: 0o644, owner: (USER, GROUP) });
    (dir, file)
}

/// With capabilities on a program, the user who executes it is root.
#[test]
fn no_program_gets_capabilities() {
    require!("plain", "root");
    let scratch = Scratch::new();
    let (dir, file) = project(&scratch);
    let words = ["set-capability", file.to_str().unwrap()];
    for run in [sudo(), with_groups(plain())] {
        blocked(run.write(&dir).probe(&words), &["EPERM", "EACCES"]);
    }
    let control = bare().probe(&words).run();
    let outcome = control.last("control");
    assert!(outcome.ok || outcome.errno() == "EOPNOTSUPP", "{control}");
}

/// Only users' own attributes and access control lists are changed; all others are the system's.
#[test]
fn attributes_of_the_system_are_not_the_commands() {
    require!("plain", "root");
    let scratch = Scratch::new();
    let (dir, file) = project(&scratch);
    let path = file.to_str().unwrap();
    for name in [
        "trusted.mcp",
        "security.mcp",
        "security.ima",
        "system.mcp",
        "mcp",
        "trusted.overlay.opaque",
    ] {
        for act in ["setxattr", "fsetxattr", "removexattr"] {
            blocked(sudo().write(&dir).probe(&[act, path, name]), &["EPERM"]);
        }
    }
    // Root alone may; and the user's own are the command's to change.
    for (run, name) in [(bare(), "trusted.mcp"), (sudo().write(&dir), "user.mcp")] {
        let finished = run.probe(&["setxattr", path, name]).run();
        let outcome = finished.last(name);
        assert!(outcome.ok || outcome.errno() == "EOPNOTSUPP", "{finished}");
    }
    // Not so that another name begins like one of them.
    for name in ["system.posix_acl_accessx", "userx", "system.posix_acl"] {
        blocked(sudo().write(&dir).probe(&["setxattr", path, name]), &["EPERM"]);
    }
}

#[test]
fn groups_of_root_are_not_the_commands() {
    require!("plain", "root");
    let scratch = Scratch::new();
    let (dir, file) = project(&scratch);
    let path = file.to_str().unwrap();
    for group in ["0", &OTHER.to_string()] {
        blocked(sudo().write(&dir).probe(&["chown", path, "-1", group]), &["EPERM"]);
        blocked(sudo().write(&dir).probe(&["fchown", path, "-1", group]), &["EPERM"]);
    }
    allowed(sudo().write(&dir).probe(&["chown", path, "-1", &GROUP.to_string()]));
    // A file that root's group may write, by an attribute that every user who may write it may set.
    let shared = scratch.file("project/shared", "");
    let words = ["setxattr", shared.to_str().unwrap(), "user.mcp"];
    give(&shared, Owned { mode: 0o660, owner: (0, OTHER) });
    blocked(sudo().write(&dir).probe(&words), &["EACCES", "EPERM", "EOPNOTSUPP"]);
    give(&shared, Owned { mode: 0o660, owner: (0, GROUP) });
    let control = sudo().write(&dir).probe(&words).run();
    let outcome = control.last("control");
    assert!(outcome.ok || outcome.errno() == "EOPNOTSUPP", "{control}");
}

/// A path is followed with the user's rights: what is behind a closed directory stays there.
#[test]
fn directories_of_root_are_not_passed() {
    require!("plain", "root");
    let scratch = Scratch::new();
    let (dir, _) = project(&scratch);
    let own = scratch.file("project/closed/own", "");
    let closed = scratch.join("project/closed");
    give(&own, Owned { mode: 0o644, owner: (USER, GROUP) });
    let words = ["chmod", own.to_str().unwrap(), "600"];
    for owner in [(0, 0), (0, OTHER)] {
        give(&closed, Owned { mode: 0o770, owner });
        blocked(sudo().write(&dir).probe(&words), &["EACCES"]);
    }
    give(&closed, Owned { mode: 0o770, owner: (0, GROUP) });
    allowed(sudo().write(&dir).probe(&words));
}

/// A process of the user's in a mount namespace of its own: what has the name of a granted place there is another file.
#[test]
fn a_name_in_another_mount_namespace_is_another_name() {
    require!("plain", "root");
    if !["unshare", "setpriv", "mount"].into_iter().all(has_program) {
        return;
    }
    let scratch = Scratch::new();
    let (dir, file) = project(&scratch);
    let secret = scratch.file("secret/file", "secret");
    give(&secret, Owned { mode: 0o644, owner: (USER, GROUP) });
    let script = format!(
        "mount --bind {} {} && exec setpriv --reuid {USER} --regid {GROUP} --clear-groups sleep 600",
        scratch.join("secret").display(),
        dir.display()
    );
    let mut other = Command::new("unshare").args(["-m", "sh", "-c", &script]).spawn().unwrap();
    let command = format!("/proc/{}/comm", other.id());
    let is_there = || std::fs::read_to_string(&command).is_ok_and(|name| name == "sleep\n");
    assert!(eventually(patience(), is_there), "the other process never came");
    let through = format!("/proc/{}/root{}", other.id(), file.display());
    // The names of both are the same.
    let read = std::fs::read_to_string(&through).unwrap();
    let attack = sudo().write(&dir).probe(&["chmod", &through, "600"]).run();
    let control = sudo().write(&dir).probe(&["chmod", file.to_str().unwrap(), "600"]).run();
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(read, "secret");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&secret), 0o644, "{attack}");
    assert!(!attack.last("attack").ok, "{attack}");
    assert!(control.last("control").ok && mode(&file) == 0o600, "{control}");
}

/// Another file system inside of a granted place is granted with it.
#[test]
fn a_mount_inside_of_a_writable_place_is_writable() {
    require!("plain", "root");
    if !["unshare", "mount"].into_iter().all(has_program) {
        return;
    }
    let scratch = Scratch::new();
    let (dir, _) = project(&scratch);
    let inner = scratch.dir("project/inner");
    let script = format!(
        "mount -t tmpfs none {0} && touch {0}/file && chown -R {USER}:{GROUP} {0} && exec \"$@\"",
        inner.display()
    );
    let around = ["unshare", "-m", "sh", "-c", &script, "sh"].map(Into::into);
    let file = inner.join("file");
    let path = file.to_str().unwrap();
    let run = || sudo().around(around.clone());
    allowed(run().write(&dir).probe(&["chmod", path, "600"]));
    blocked(run().read(&dir).probe(&["chmod", path, "600"]), &["EPERM"]);
}
