//! Whose directories `mcp` makes: never root's in another user's home.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use crate::require;
use crate::support::{is_root, mcp_path};
use crate::user::{Said, User, text};

const SOMEBODY: u32 = 4711;

/// What is owned by root below a directory.
fn of_root(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        if metadata.uid() == 0 {
            found.push(entry.path());
        }
        if metadata.is_dir() {
            found.extend(of_root(&entry.path()));
        }
    }
    found
}

/// In a mount namespace whose /root is this: the machine's own is not for tests.
fn as_root(user: &User, home: &Path, words: &str) -> Said {
    let script = format!(
        "mount --make-rprivate / && mount --bind {} /root && exec {} {words}",
        text(&user.path("root")),
        mcp_path().display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]);
    let mut command = user.place(command);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env_remove(name);
    }
    command.env("HOME", home).output().unwrap().into()
}

/// As `sudo` without -H and `su -m` do it.
#[test]
fn root_with_the_home_of_a_user_leaves_nothing_of_its_own_there() {
    require!("userns");
    if !is_root() {
        println!("SKIP: root: only root can have somebody else's home");
        return;
    }
    let user = User::new();
    let bundle = user.stored("1.0.0", "");
    user.scratch.dir("root");
    let theirs = user.scratch.dir("home-of-somebody");
    chown(&theirs, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    let words = format!("pull {}", text(&bundle));
    for words in [words.as_str(), "run acme/test -- getenv HOME", "run --home kept -- true"] {
        as_root(&user, &theirs, words).ok();
        assert_eq!(of_root(&theirs), [] as [std::path::PathBuf; 0], "{words}");
    }
    for made in
        [".local/share/mcp/store", ".local/share/mcp/homes/kept", ".local/state/mcp/log.jsonl"]
    {
        assert!(user.path("root").join(made).exists(), "{made}");
    }
    // Nor by a link of theirs to a place of root's, which would make it write wherever they like.
    let ours = user.scratch.dir("ours");
    fs::create_dir_all(theirs.join(".local/share")).unwrap();
    symlink(&ours, theirs.join(".local/share/mcp")).unwrap();
    for path in [".local", ".local/share"] {
        chown(theirs.join(path), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
    std::os::unix::fs::lchown(theirs.join(".local/share/mcp"), Some(SOMEBODY), Some(SOMEBODY))
        .unwrap();
    as_root(&user, &theirs, "run acme/test -- getenv HOME").ok();
    assert!(fs::read_dir(&ours).unwrap().next().is_none());
    // The control: in a home of its own it is made there.
    let own = user.scratch.dir("home-of-root");
    as_root(&user, &own, &format!("pull {}", text(&bundle))).ok();
    assert!(own.join(".local/share/mcp/store/index.json").exists());
}

/// A user namespace with one mapped id: root there owns its home, and what is above it belongs to nobody.
#[test]
fn root_of_a_user_namespace_keeps_its_home() {
    require!("userns");
    let user = User::new();
    let bundle = user.stored("1.0.0", "");
    let mut command = Command::new("unshare");
    command.args(["-r", "--"]).arg(mcp_path()).args(["pull", text(&bundle)]);
    let mut command = user.place(command);
    command.env_remove("XDG_DATA_HOME");
    let said: Said = command.output().unwrap().into();
    said.ok();
    assert!(user.path("home/.local/share/mcp/store/index.json").exists());
}
