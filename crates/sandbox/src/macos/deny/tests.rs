//! Where paths lead, and what is left of a glob below a directory.

use std::path::PathBuf;

use super::*;

fn tail(glob: &str) -> Vec<Part> {
    glob::parse(Path::new(glob)).unwrap().remove(0).tail
}

fn bytes(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

#[test]
fn paths_lead_through_links() {
    let link = |at: &str, to: &str| Link { at: at.into(), to: to.into() };
    let links = [link("/Users/me/data", "../you/data"), link("/Users/you/data", "/Volumes/big")];
    for (path, real) in [
        ("/tmp", "/private/tmp"),
        ("/var/tmp/x", "/private/var/tmp/x"),
        ("/private/tmp/x", "/private/tmp/x"),
        ("/tmpx", "/tmpx"),
        ("/Users/me/data/x", "/Volumes/big/x"),
        ("/Users/me/other", "/Users/me/other"),
    ] {
        assert_eq!(resolved(Path::new(path), &links), PathBuf::from(real), "{path}");
    }
}

#[test]
fn links_in_a_circle_lead_nowhere_and_end() {
    let links =
        [Link { at: "/a".into(), to: "/b".into() }, Link { at: "/b".into(), to: "/a".into() }];
    resolved(Path::new("/a/x"), &links);
}

#[test]
fn what_is_left_of_a_glob() {
    let any = tail("**/a/b");
    assert_eq!(remaining(&any, &[]), [&any[..]]);
    assert_eq!(remaining(&any, &bytes(&["x"])), [&any[..]]);
    assert_eq!(remaining(&any, &bytes(&["x", "a"])), [&any[..], &any[2..]]);
    let anchored = tail("/r/*/c");
    assert_eq!(remaining(&anchored, &bytes(&["x"])), [&anchored[1..]]);
    assert!(remaining(&anchored, &bytes(&["x", "y"])).is_empty());
    assert!(is_whole(&any, &bytes(&["x", "a", "b"])) && !is_whole(&any, &bytes(&["a"])));
}
