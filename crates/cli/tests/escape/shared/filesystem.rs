//! Reads and writes outside the grants. The same attack on every system; the caller has checked that the boundary is there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{ABSENT, READ_ONLY, Run, Scratch, allowed, blocked, refused};
pub fn read(path: &Path) -> Run {
    Run::new().probe(&["read".as_ref(), path.as_os_str()])
}

pub fn read_bare(path: &Path) -> Run {
    Run::bare().probe(&["read".as_ref(), path.as_os_str()])
}

pub fn file_outside_every_grant_is_not_there() {
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let granted = allowed(read(&secret).read(&secret));
    assert_eq!(granted.detail, "canary");
    blocked(read(&secret), ABSENT);
}

pub fn keys_in_the_users_home_are_not_there() {
    let home = Scratch::new();
    let key = home.file(".ssh/id_rsa", "PRIVATE KEY");
    refused(read(&key).env("HOME", home.path()), read_bare(&key), ABSENT);
    let by_tilde = ["sh", "-c", "cat ~/.ssh/id_rsa"];
    Run::bare().env("HOME", home.path()).command(&by_tilde).run().code_is(0);
    let inside = Run::new().env("HOME", home.path()).command(&by_tilde).run();
    assert_ne!(inside.code, 0, "{inside}");
    assert!(!inside.text().contains("PRIVATE"), "{inside}");
}

pub fn symlink_in_a_grant_does_not_lead_out() {
    let scratch = Scratch::new();
    let secret = scratch.file("outside/secret", "canary");
    let grant = scratch.dir("grant");
    let link = grant.join("link");
    symlink(&secret, &link).unwrap();
    let relative = grant.join("relative");
    symlink("../outside/secret", &relative).unwrap();
    for link in [&link, &relative] {
        refused(read(link).read(&grant), read(link).read(&grant).read(&secret), ABSENT);
        blocked(read(link).write(&grant), ABSENT);
    }
}

pub fn symlink_made_inside_does_not_lead_out() {
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let grant = scratch.dir("grant");
    let link = grant.join("link");
    let act = |run: Run| {
        run.probe(&["symlink".as_ref(), secret.as_os_str(), link.as_os_str()])
            .probe(&["read".as_ref(), link.as_os_str()])
    };
    blocked(act(Run::new().write(&grant)), ABSENT);
    assert_eq!(fs::read_link(&link).unwrap(), secret);
    allowed(read_bare(&link));
}

pub fn dot_dot_does_not_lead_out() {
    let scratch = Scratch::new();
    scratch.file("secret", "canary");
    let grant = scratch.dir("grant");
    let path = grant.join("../secret");
    refused(read(&path).read(&grant), read_bare(&path), ABSENT);
    let relative = Path::new("../secret");
    refused(read(relative).read(&grant).cwd(&grant), read_bare(relative).cwd(&grant), ABSENT);
}

pub fn hard_link_does_not_bring_a_file_in() {
    let scratch = Scratch::new();
    let outside = scratch.file("outside", "canary");
    let shown = scratch.file("read-only/file", "canary");
    let grant = scratch.dir("grant");
    let act = |run: Run, file: &Path| {
        run.probe(&["hardlink".as_ref(), file.as_os_str(), grant.join("link").as_os_str()])
    };
    blocked(act(Run::new().write(&grant), &outside), ABSENT);
    let read_only = shown.parent().unwrap();
    blocked(
        act(Run::new().write(&grant).read(read_only), &shown),
        &["EXDEV", "EPERM", "EACCES", "EROFS"],
    );
    allowed(act(Run::bare(), &outside));
}

pub fn read_grant_keeps_its_modes_and_names() {
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
