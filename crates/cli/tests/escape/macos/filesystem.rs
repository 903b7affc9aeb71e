//! Reads and writes outside the grants.

use std::fs;
use std::path::Path;

use crate::shared::filesystem::{read, read_bare};
use crate::support::{ABSENT, READ_ONLY, Run, Scratch, allowed, blocked, refused};
use crate::{require, shared_attacks};

shared_attacks! { "seatbelt", filesystem:
    file_outside_every_grant_is_not_there;
    keys_in_the_users_home_are_not_there;
    symlink_in_a_grant_does_not_lead_out;
    symlink_made_inside_does_not_lead_out;
    dot_dot_does_not_lead_out;
    hard_link_does_not_bring_a_file_in;
    read_grant_keeps_its_modes_and_names;
}

/// By its other name on the data volume.
#[test]
fn the_other_name_of_a_file_does_not_lead_to_it() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let other = Path::new("/System/Volumes/Data").join(secret.strip_prefix("/").unwrap());
    if fs::metadata(&other).is_err() {
        println!("SKIP: control: {} is not there", other.display());
        return;
    }
    refused(read(&other), read_bare(&other), ABSENT);
}

#[test]
fn read_grant_cannot_be_written() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let file = scratch.file("grant/file", "original");
    let grant = file.parent().unwrap();
    for (name, target) in [
        ("write", file.clone()),
        ("create", grant.join("new")),
        ("mkdir", grant.join("dir")),
        ("unlink", file.clone()),
    ] {
        let act = |run: Run| run.probe(&[name.as_ref(), target.as_os_str()]);
        blocked(act(Run::new().read(grant)), READ_ONLY);
        allowed(act(Run::new().write(grant)));
    }
}

#[test]
fn system_is_read_only() {
    require!("seatbelt");
    let name = format!("mcp-escape-test-{}", std::process::id());
    allowed(Run::new().flag("--cwd").arg("/tmp").probe(&["create", &name]));
    for dir in
        ["/", "/private/etc", "/usr/local", "/private/tmp", "/private/var/tmp", "/Users/Shared"]
    {
        let path = format!("{}/{name}", dir.trim_end_matches('/'));
        blocked(Run::new().probe(&["create", &path]), READ_ONLY);
        assert!(!Path::new(&path).exists(), "{path} was made on the host");
    }
    allowed(Run::new().probe(&["write", "/dev/null"]));
}

#[test]
fn system_is_there_and_secrets_of_it_are_not() {
    require!("seatbelt");
    for dir in ["/usr/bin", "/bin", "/usr/lib"] {
        assert!(!allowed(Run::new().probe(&["list", dir])).detail.is_empty(), "{dir}");
    }
    for path in ["/private/var/log", "/Library/Keychains", "/Users", "/Applications", "/Volumes"] {
        let words = ["list", path];
        refused(Run::new().probe(&words), Run::bare().probe(&words), ABSENT);
    }
}

#[test]
fn tmp_is_private() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let host = scratch.file("host", "canary");
    refused(read(&host), read_bare(&host), ABSENT);
    let tmp = allowed(Run::new().probe(&["getenv", "TMPDIR"])).detail;
    assert!(tmp.contains("/mcp-"), "{tmp}");
    assert!(!Path::new(&tmp).exists(), "{tmp} is left behind");
}

#[test]
fn home_is_ephemeral_unless_named() {
    require!("seatbelt");
    let home = Scratch::new();
    let run = || Run::new().env("HOME", home.path()).flag("--cwd").arg("/home/mcp");
    let inside = allowed(run().probe(&["getenv", "HOME"])).detail;
    assert!(!Path::new(&inside).starts_with(home.path()), "{inside}");
    assert!(!Path::new(&inside).exists(), "{inside} is left behind");
    allowed(run().probe(&["create", "note"]));
    blocked(run().probe(&["read", "note"]), ABSENT);
    let named = || run().flag("--home").arg("server-a");
    allowed(named().probe(&["create", "note"]));
    allowed(named().probe(&["read", "note"]));
    blocked(run().flag("--home").arg("server-b").probe(&["read", "note"]), ABSENT);
}
