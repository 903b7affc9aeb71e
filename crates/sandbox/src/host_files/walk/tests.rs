use super::*;
use crate::unix::fixture::Fixture;

fn walked(path: &Path) -> (PathBuf, Vec<(PathBuf, PathBuf)>) {
    let Walked { real, links } = walk(path).unwrap();
    (real, links.into_iter().map(|link| (link.at, link.to)).collect())
}

fn errno(path: &Path) -> Option<i32> {
    walk(path).unwrap_err().raw_os_error()
}

#[test]
fn a_plain_path_is_itself() {
    let f = Fixture::new();
    let file = f.file("a/file", "");
    assert_eq!(walked(&file), (file, vec![]));
    assert_eq!(walked(Path::new("/")), ("/".into(), vec![]));
}

#[test]
fn every_link_of_a_chain_is_kept_in_order() {
    let f = Fixture::new();
    let real = f.file("real/file", "");
    let second = f.link("second", "real");
    let first = f.link("first", &second);
    assert_eq!(
        walked(&first.join("file")),
        (real, vec![(first, second.clone()), (second, "real".into())])
    );
}

#[test]
fn absolute_and_relative_links_meet_in_one_place() {
    let f = Fixture::new();
    let real = f.file("deep/down/file", "");
    let absolute = f.link("x/absolute", &real);
    let relative = f.link("x/relative", "../deep/./down//file");
    assert_eq!(walked(&absolute).0, real);
    assert_eq!(walked(&relative), (real, vec![(relative, PathBuf::from("../deep/./down//file"))]));
}

#[test]
fn dot_dot_leaves_the_target_of_a_link_not_its_name() {
    let f = Fixture::new();
    let there = f.file("far/away/file", "");
    f.directory("far/away/inner");
    let link = f.link("near", "far/away/inner");
    f.file("file", "the wrong one");
    assert_eq!(walked(&link.join("../file")).0, there);
    assert_eq!(walked(&f.path("far/../far/away/file")), (there, vec![]));
    assert_eq!(walked(Path::new("/../..")).0, Path::new("/"));
}

#[cfg(target_os = "linux")]
#[test]
fn loops_and_forty_one_links_end_as_in_the_kernel() {
    let f = Fixture::new();
    f.link("a", "b");
    assert_eq!(errno(&f.link("b", "a")), Some(libc::ELOOP));
    assert_eq!(errno(&f.link("self", "self/below")), Some(libc::ELOOP));
    let end = f.file("0", "");
    for number in 1..=41 {
        f.link(number.to_string(), (number - 1).to_string());
    }
    assert_eq!(walked(&f.path("40")).0, end);
    assert!(fs::metadata(f.path("40")).is_ok());
    for over in ["41", "self"] {
        let kernel = fs::metadata(f.path(over)).unwrap_err().raw_os_error();
        assert_eq!(errno(&f.path(over)), kernel);
    }
}

#[test]
fn what_is_not_there_says_so() {
    let f = Fixture::new();
    let file = f.file("file", "");
    assert_eq!(errno(&f.path("missing")), Some(libc::ENOENT));
    assert_eq!(errno(&f.link("dangling", "nowhere")), Some(libc::ENOENT));
    assert_eq!(errno(&file.join("below")), Some(libc::ENOTDIR));
    assert_eq!(errno(&file.join("../file")), Some(libc::ENOTDIR));
}

#[cfg(target_os = "linux")]
#[test]
fn names_need_not_be_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let f = Fixture::new();
    let name = OsString::from_vec(b"\xff\xfe".to_vec());
    let real = f.file(Path::new("d").join(&name), "");
    let link = f.link("link", Path::new("d").join(&name));
    assert_eq!(walked(&link).0, real);
}
