//! Reads and writes outside the grants.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::require;
use crate::support::{ABSENT, READ_ONLY, Run, Scratch, allowed, blocked, refused};

fn read(path: &Path) -> Run {
    Run::new().probe(&["read".as_ref(), path.as_os_str()])
}

fn read_bare(path: &Path) -> Run {
    Run::bare().probe(&["read".as_ref(), path.as_os_str()])
}

#[test]
fn file_outside_every_grant_is_not_there() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    assert_eq!(allowed(read(&secret).read(&secret)).detail, "canary");
    blocked(read(&secret), ABSENT);
}

#[test]
fn keys_in_the_users_home_are_not_there() {
    require!("seatbelt");
    let home = Scratch::new();
    let key = home.file(".ssh/id_rsa", "PRIVATE KEY");
    refused(read(&key).env("HOME", home.path()), read_bare(&key), ABSENT);
    let by_tilde = ["sh", "-c", "cat ~/.ssh/id_rsa"];
    Run::bare().env("HOME", home.path()).command(&by_tilde).run().code_is(0);
    let inside = Run::new().env("HOME", home.path()).command(&by_tilde).run();
    assert_ne!(inside.code, 0, "{inside}");
    assert!(!inside.text().contains("PRIVATE"), "{inside}");
}

#[test]
fn symlink_in_a_grant_does_not_lead_out() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let secret = scratch.file("outside/secret", "canary");
    let grant = scratch.dir("grant");
    let (link, relative) = (grant.join("link"), grant.join("relative"));
    symlink(&secret, &link).unwrap();
    symlink("../outside/secret", &relative).unwrap();
    for link in [&link, &relative] {
        refused(read(link).read(&grant), read(link).read(&grant).read(&secret), ABSENT);
        blocked(read(link).write(&grant), ABSENT);
    }
}

#[test]
fn symlink_made_inside_does_not_lead_out() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let grant = scratch.dir("grant");
    let link = grant.join("link");
    let run = Run::new().write(&grant);
    let run = run.probe(&["symlink".as_ref(), secret.as_os_str(), link.as_os_str()]);
    blocked(run.probe(&["read".as_ref(), link.as_os_str()]), ABSENT);
    assert_eq!(fs::read_link(&link).unwrap(), secret);
    allowed(read_bare(&link));
}

#[test]
fn dot_dot_does_not_lead_out() {
    require!("seatbelt");
    let scratch = Scratch::new();
    scratch.file("secret", "canary");
    let grant = scratch.dir("grant");
    let path = grant.join("../secret");
    refused(read(&path).read(&grant), read_bare(&path), ABSENT);
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
fn hard_link_does_not_bring_a_file_in() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let outside = scratch.file("outside", "canary");
    let shown = scratch.file("read-only/file", "canary");
    let grant = scratch.dir("grant");
    let act = |run: Run, file: &Path| {
        run.probe(&["hardlink".as_ref(), file.as_os_str(), grant.join("link").as_os_str()])
    };
    blocked(act(Run::new().write(&grant), &outside), ABSENT);
    let read_only = shown.parent().unwrap();
    blocked(act(Run::new().write(&grant).read(read_only), &shown), READ_ONLY);
    allowed(act(Run::bare(), &outside));
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
fn read_grant_keeps_its_modes_and_names() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let file = scratch.file("grant/file", "original");
    let grant = file.parent().unwrap();
    let (file, new) = (file.to_str().unwrap(), grant.join("new"));
    let new = new.to_str().unwrap();
    for words in [&["chmod", file, "777"][..], &["rename", file, new], &["symlink", "x", new]] {
        blocked(Run::new().read(grant).probe(words), READ_ONLY);
    }
    allowed(Run::new().write(grant).probe(&["chmod", file, "700"]));
    allowed(Run::new().write(grant).probe(&["rename", file, new]));
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
