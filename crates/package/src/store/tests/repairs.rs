//! What was damaged in the store is seen, and put right by the next pull.

use super::*;

type Damage<'a> = &'a dyn Fn(&Store, &Digest);

/// Takes the same bundle in again, as a pull does.
fn pulled(store: &Store, scratch: &Scratch) -> Result<Digest> {
    let names = ["acme/test@1.0.0".to_owned()];
    store.add_bundle(
        &bundle(scratch, "one"),
        Under::Names { names: &names, source: &source() },
        None,
    )
}

#[test]
fn a_pull_puts_right_what_is_damaged() {
    let damages: [(&str, Damage<'_>); 9] = [
        ("root/ is missing", &|store, digest| {
            fs::remove_dir_all(store.unpacked_path(digest).join("root")).unwrap();
        }),
        ("root/ is a file", &|store, digest| {
            let root = store.unpacked_path(digest).join("root");
            fs::remove_dir_all(&root).unwrap();
            fs::write(root, "x").unwrap();
        }),
        ("all files are missing", &|store, digest| {
            fs::remove_dir_all(store.unpacked_path(digest)).unwrap();
        }),
        ("a file was changed", &|store, digest| {
            let path = store.unpacked_path(digest).join("root/bin/run");
            fs::remove_file(&path).unwrap();
            fs::write(path, "two").unwrap();
        }),
        ("a file was added", &|store, digest| {
            fs::write(store.unpacked_path(digest).join("root/new"), "x").unwrap();
        }),
        ("the bundle is damaged", &|store, digest| {
            let bundle = store.manifest(digest).unwrap().bundle().unwrap().digest;
            fs::write(store.blob_path(&bundle), "damaged").unwrap();
        }),
        ("the bundle is missing", &|store, digest| {
            let bundle = store.manifest(digest).unwrap().bundle().unwrap().digest;
            fs::remove_file(store.blob_path(&bundle)).unwrap();
        }),
        ("the manifest is damaged", &|store, digest| {
            fs::write(store.blob_path(digest), "{}").unwrap();
        }),
        ("bundle and files are damaged", &|store, digest| {
            let bundle = store.manifest(digest).unwrap().bundle().unwrap().digest;
            fs::write(store.blob_path(&bundle), "damaged").unwrap();
            fs::remove_dir_all(store.unpacked_path(digest).join("root")).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let scratch = Scratch::new();
        let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
        store.verify(&digest).unwrap();
        damage(&store, &digest);
        let error = store.verify(&digest).err().unwrap_or_else(|| panic!("{what} is not seen"));
        assert!(!error.hint().is_empty() || what.contains("missing"), "{what}: {error}");
        assert_eq!(pulled(&store, &scratch).unwrap(), digest, "{what}");
        store.verify(&digest).unwrap_or_else(|error| panic!("{what}: {error}"));
        let ready = store.ready(&digest).unwrap();
        assert_eq!(fs::read(ready.root.join("bin/run")).unwrap(), b"one", "{what}");
    }
}

/// The bundle is there and its digest says what it is, so no registry is asked for the files.
#[test]
fn files_that_are_missing_are_unpacked_by_the_next_run() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    fs::remove_dir_all(store.unpacked_path(&digest).join("root")).unwrap();
    assert!(store.hold(&digest).unwrap().is_as_recorded());
    store.verify(&digest).unwrap();
}

#[test]
fn what_runs_is_not_put_right_under_its_hands() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let running = store.hold(&digest).unwrap();
    fs::write(running.root.join("new"), "x").unwrap();
    let error = pulled(&store, &scratch).unwrap_err().to_string();
    assert!(error.contains("is running"), "{error}");
    assert!(running.root.join("new").exists());
    drop(running);
    pulled(&store, &scratch).unwrap();
    store.verify(&digest).unwrap();
}

#[test]
fn what_was_made_from_it_is_made_again_where_it_is_damaged() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let made =
        store.add_bundle(&bundle(&scratch, "made"), Under::Derived { from: digest }, None).unwrap();
    pulled(&store, &scratch).unwrap();
    assert_eq!(store.derived(&digest).unwrap(), Some(made));
    fs::write(store.unpacked_path(&made).join("root/new"), "x").unwrap();
    assert!(store.verify(&digest).is_err());
    pulled(&store, &scratch).unwrap();
    assert_eq!(store.derived(&digest).unwrap(), None);
    store.verify(&digest).unwrap();
}

/// A restored backup, or a layer of an image: other inodes, and nowhere to write the new ones down.
#[test]
fn a_store_that_cannot_be_written_is_compared_and_taken() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let root = store.unpacked_path(&digest).join("root");
    let copied = |name: &str| {
        fs::copy(root.join(name), root.join("copy")).unwrap();
        fs::rename(root.join("copy"), root.join(name)).unwrap();
    };
    // For root, too: there is no directory to write into.
    fs::remove_dir_all(scratch.join("store/staging")).unwrap();
    fs::write(scratch.join("store/staging"), "").unwrap();
    let record = fs::read(root.with_file_name("record")).unwrap();
    for _ in 0..2 {
        copied("mcp.toml");
        copied("lib/x.js");
        assert!(store.hold(&digest).unwrap().is_as_recorded());
        assert!(store.ready(&digest).unwrap().is_as_recorded());
    }
    assert_eq!(fs::read(root.with_file_name("record")).unwrap(), record);
    // Other bytes are other bytes there as well.
    fs::remove_file(root.join("lib/x.js")).unwrap();
    fs::write(root.join("lib/x.js"), "y").unwrap();
    let error = store.ready(&digest).err().unwrap().to_string();
    assert!(error.contains("lib/x.js was changed"), "{error}");
}
