//! Packing, and comparing a tree with the archive it came from.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::pack::{Take, pack};

fn packed(directory: &Path, take: Take) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(directory, take, Effort::Thorough, &mut bytes).unwrap();
    bytes
}

#[test]
fn packing_is_deterministic_and_unpacks_to_the_same() {
    let (one, two) = (Scratch::new(), Scratch::new());
    for (scratch, names) in [(&one, ["b", "a/x", "a/y"]), (&two, ["a/y", "b", "a/x"])] {
        for name in names {
            scratch.file(name, name.as_bytes());
        }
        scratch.dir("empty");
        scratch.file(".env", b"SECRET=1");
        scratch.file(".git/config", b"");
    }
    let bytes = packed(one.path(), Take::Sources);
    assert_eq!(bytes, packed(two.path(), Take::Sources));
    assert_eq!(unpack(&bytes).unwrap(), ["a", "a/x", "a/y", "b", "empty"].map(PathBuf::from));
    assert!(
        unpack(&packed(one.path(), Take::Everything)).unwrap().contains(&PathBuf::from(".env"))
    );
    // Another content is another bundle.
    fs::write(two.join("b"), "other").unwrap();
    assert_ne!(bytes, packed(two.path(), Take::Sources));
}

#[test]
fn a_changed_tree_is_told_from_its_archive() {
    let source = Scratch::new();
    source.file("a/x", b"one");
    source.file("b", b"two");
    let bytes = packed(source.path(), Take::Sources);
    let compare = |change: &dyn Fn(&Path)| {
        let scratch = Scratch::new();
        let archive = scratch.file("archive", &bytes);
        let root = scratch.dir("root");
        read_path(&archive, &ArchiveLimits::DEFAULT, &mut Unpack::into(&root).unwrap()).unwrap();
        change(&root);
        let mut compare = Compare::with(&root);
        read_path(&archive, &ArchiveLimits::DEFAULT, &mut compare).unwrap();
        compare.finish().unwrap()
    };
    assert!(compare(&|_| {}).is_empty());
    let replace = |path: PathBuf, text: &str| {
        fs::remove_file(&path).unwrap();
        fs::write(path, text).unwrap();
    };
    assert_eq!(compare(&|root| replace(root.join("a/x"), "eno")), ["a/x was changed"]);
    assert_eq!(compare(&|root| replace(root.join("b"), "longer")), ["b has another length"]);
    assert_eq!(compare(&|root| fs::remove_file(root.join("b")).unwrap()), ["b is missing"]);
    assert_eq!(compare(&|root| fs::write(root.join("a/new"), "").unwrap()), ["a/new was added"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn trees_survive_packing(files in proptest::collection::btree_map("[a-d]{1,2}(/[e-h]{1,2}){0,2}", "\\PC{0,20}", 1..8)) {
        let source = Scratch::new();
        let mut kept = Vec::new();
        for (name, content) in &files {
            // A name that is a file cannot be a directory too.
            let clashes = files.keys().any(|other| other.starts_with(&format!("{name}/")));
            if !clashes {
                source.file(name, content.as_bytes());
                kept.push(PathBuf::from(name));
            }
        }
        let (scratch, _) = unpack_with(&packed(source.path(), Take::Everything).clone(), &ArchiveLimits::DEFAULT).unwrap();
        for name in kept {
            prop_assert_eq!(fs::read(scratch.join("box/root").join(&name)).unwrap(), fs::read(source.join(&name)).unwrap());
        }
    }
}
