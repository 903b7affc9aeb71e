//! Deny rules inside grants.

use crate::require;
use crate::support::{ABSENT, READ_ONLY, Run, Scratch, allowed, blocked, refused};

#[test]
fn denied_file_is_closed() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let secret = scratch.file("grant/deep/.env", "canary");
    let open = scratch.file("grant/deep/env", "open");
    let grant = scratch.join("grant");
    let run = || Run::new().write(&grant).deny("**/.env");
    let read = |run: Run| run.probe(&["read".as_ref(), secret.as_os_str()]);
    refused(read(run()), read(Run::new().write(&grant)), ABSENT);
    allowed(run().probe(&["read".as_ref(), open.as_os_str()]));
    for act in ["write", "unlink", "stat"] {
        blocked(run().probe(&[act.as_ref(), secret.as_os_str()]), ABSENT);
    }
}

#[test]
fn denied_in_any_case() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let secret = scratch.file("grant/Secret", "canary");
    let grant = scratch.join("grant");
    let other = grant.join("sECRET");
    let read = |run: Run| run.probe(&["read".as_ref(), other.as_os_str()]);
    if std::fs::read(&other).is_err() {
        println!("SKIP: control: this volume tells cases apart");
        return;
    }
    refused(read(Run::new().read(&grant).deny("**/secret")), read(Run::new().read(&grant)), ABSENT);
    assert!(secret.exists());
}

#[test]
fn what_comes_to_match_later_is_closed() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let grant = scratch.dir("grant");
    let (plain, denied) = (grant.join("plain"), grant.join(".env"));
    let words = ["create".as_ref(), denied.as_os_str()];
    refused(
        Run::new().write(&grant).deny("**/.env").probe(&words),
        Run::bare().probe(&words),
        READ_ONLY,
    );
    std::fs::remove_file(&denied).unwrap();
    let create = Run::new().write(&grant).deny("**/.env");
    let create = create.probe(&["create".as_ref(), plain.as_os_str()]);
    blocked(create.probe(&["rename".as_ref(), plain.as_os_str(), denied.as_os_str()]), READ_ONLY);
}

#[test]
fn directories_above_a_denied_path_stay() {
    require!("seatbelt");
    let scratch = Scratch::new();
    scratch.file("grant/repository/.git/hooks/x", "canary");
    let grant = scratch.join("grant");
    let run = || Run::new().write(&grant).deny("**/.git/hooks");
    let rename = |run: Run, from: &str, to: &str| {
        let (from, to) = (grant.join(from), grant.join(to));
        run.probe(&["rename".as_ref(), from.as_os_str(), to.as_os_str()])
    };
    blocked(rename(run(), "repository/.git", "repository/g"), READ_ONLY);
    allowed(rename(run(), "repository", "renamed"));
}
