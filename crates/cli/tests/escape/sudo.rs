//! `sudo mcp run`: what the user who called sudo owns is worked on as theirs, what root owns as root's.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use crate::require;
use crate::support::{PLAIN, Run, Scratch, allowed, blocked};

const USER: u32 = 12_345;
const GROUP: u32 = 12_346;

fn sudo(run: Run) -> Run {
    run.env("SUDO_UID", USER.to_string()).env("SUDO_GID", GROUP.to_string())
}

/// A directory that is open to its owner alone, with a file in it.
fn private(scratch: &Scratch, name: &str, owner: (u32, u32)) -> std::path::PathBuf {
    let file = scratch.file(format!("{name}/file"), "text");
    let dir = scratch.join(name);
    for path in [&file, &dir] {
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        chown(path, Some(owner.0), Some(owner.1)).unwrap();
    }
    dir
}

#[test]
fn files_of_the_caller_of_sudo_stay_theirs() {
    require!("userns", "root");
    let scratch = Scratch::new();
    let theirs = private(&scratch, "theirs", (USER, GROUP));
    let roots = private(&scratch, "roots", (0, 0));
    for (dir, owner) in [(&theirs, (USER, GROUP)), (&roots, (0, 0))] {
        let new = dir.join("new");
        let file = dir.join("file");
        let run = || sudo(Run::new()).write(dir);
        let read = allowed(run().probe(&["read", file.to_str().unwrap()]));
        assert_eq!(read.detail, "text");
        allowed(run().probe(&["create", new.to_str().unwrap()]));
        let metadata = std::fs::metadata(&new).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), owner, "{}", new.display());
    }
    // Without sudo, root's stand-in is a user whom they do not know.
    let file = theirs.join("file");
    blocked(Run::new().read(&theirs).probe(&["read", file.to_str().unwrap()]), &["EACCES"]);
    // The command is neither of the two.
    let uid = allowed(sudo(Run::new()).probe(&["uid"]));
    assert_eq!(uid.detail.trim(), "1000 1000 1000");
}

#[test]
fn without_namespaces_the_command_is_who_called_sudo() {
    require!("plain", "root");
    let scratch = Scratch::new();
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let theirs = private(&scratch, "theirs", (USER, GROUP));
    let new = theirs.join("new");
    let run = || sudo(Run::new().on(PLAIN));
    allowed(run().write(&theirs).probe(&["create", new.to_str().unwrap()]));
    let metadata = std::fs::metadata(&new).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (USER, GROUP));
    allowed(run().write(&theirs).probe(&["chmod", new.to_str().unwrap(), "600"]));
    let uid = allowed(run().probe(&["uid"]));
    assert_eq!(uid.detail.trim(), format!("{USER} {USER} {USER}"));
    // What was not granted stays closed to them, theirs or not.
    let file = theirs.join("file");
    blocked(run().probe(&["read", file.to_str().unwrap()]), &["EACCES"]);
}

#[test]
fn odd_words_of_sudo_are_nobody_s() {
    require!("userns", "root");
    for (uid, gid) in [("0", "0"), ("-1", "5"), ("4294967295", "5"), ("x", "5"), ("1000", "")] {
        let run = Run::new().env("SUDO_UID", uid).env("SUDO_GID", gid);
        assert_eq!(allowed(run.probe(&["uid"])).detail.trim(), "1000 1000 1000");
    }
}
