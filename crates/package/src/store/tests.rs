use std::fs;
use std::path::PathBuf;
use std::time::Duration;

mod repairs;
mod sources;

use super::*;
use crate::archive::Effort;
use crate::pack::{Take, pack};
use crate::reference::Reference;
use crate::scratch::Scratch;

const OURS_TOML: &str =
    "[package]\nname = 'acme/test'\nversion = '1.0.0'\n[server]\ncommand = 'bin/run'\n";

fn bundle(scratch: &Scratch, content: &str) -> PathBuf {
    let source = format!("source-{content}");
    scratch.file(format!("{source}/mcp.toml"), OURS_TOML.as_bytes());
    scratch.file(format!("{source}/bin/run"), content.as_bytes());
    scratch.file(format!("{source}/lib/x.js"), b"x");
    let path = scratch.join(format!("{content}.mcpb"));
    let out = fs::File::create(&path).unwrap();
    pack(&scratch.join(source), Take::Sources, Effort::Quick, out).unwrap();
    path
}

fn reference(text: &str) -> Reference {
    text.parse().unwrap()
}

/// The registry that packages of these tests are from.
fn source() -> Source {
    "oci://registry.example/acme/test".parse().unwrap()
}

fn added(scratch: &Scratch, content: &str, names: &[&str]) -> (Store, Digest) {
    let store = Store::at(scratch.join("store"));
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let under = Under::Names { names: &names, source: &source() };
    let digest = store.add_bundle(&bundle(scratch, content), under, None).unwrap();
    (store, digest)
}

#[test]
fn what_is_added_is_found_and_ready() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    for text in ["acme/test@1.0.0", "acme/test", "acme/test@latest", &format!("acme/test@{digest}")]
    {
        assert_eq!(
            store.find(&reference(text), Some(&source())).unwrap().unwrap().digest,
            digest,
            "{text}"
        );
    }
    for text in
        ["acme/test@1.0.1", "acme/other", "npm:acme", &format!("acme/test@{}", Digest::of(b""))]
    {
        assert_eq!(store.find(&reference(text), None).unwrap(), None, "{text}");
    }
    let ready = store.ready(&digest).unwrap();
    assert_eq!(fs::read(ready.root.join("bin/run")).unwrap(), b"one");
    #[cfg(unix)]
    for name in ["bin/run", "lib/x.js"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(ready.root.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o222, 0, "{name} can be written");
    }
    // An image layout that other tools can read.
    let layout: serde_json::Value =
        serde_json::from_slice(&fs::read(scratch.join("store/oci-layout")).unwrap()).unwrap();
    assert_eq!(layout["imageLayoutVersion"], "1.0.0");
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(scratch.join("store/index.json")).unwrap()).unwrap();
    assert_eq!(index["manifests"][0]["digest"], digest.to_string());
    assert_eq!(
        index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"],
        "acme/test@1.0.0"
    );
    assert!(fs::read_dir(scratch.join("store/staging")).unwrap().next().is_none());
}

/// The tree that was packed becomes the files: the same package, whichever way it came.
#[test]
fn a_tree_is_taken_in_as_its_bundle_would_be() {
    let scratch = Scratch::new();
    let (store, unpacked) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let names = ["acme/test@1.0.0".to_owned()];
    let other = Store::at(scratch.join("other"));
    let tree = scratch.join("source-one");
    let under = Under::Names { names: &names, source: &source() };
    let adopted = other.add_tree(&tree, under, None).unwrap();
    assert_eq!(adopted, unpacked);
    assert_eq!(tree.exists(), cfg!(not(unix)), "it was moved");
    other.verify(&adopted).unwrap();
    let (ready, reference) = (other.ready(&adopted).unwrap(), store.ready(&unpacked).unwrap());
    assert!(ready.is_as_recorded());
    for name in ["mcp.toml", "bin/run", "lib/x.js"] {
        let (one, same) = (ready.root.join(name), reference.root.join(name));
        assert_eq!(fs::read(&one).unwrap(), fs::read(&same).unwrap(), "{name}");
        let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions();
        assert_eq!(mode(&one), mode(&same), "{name}");
    }
}

/// What no bundle may hold is not taken in as a tree either.
#[cfg(unix)]
#[test]
fn a_tree_with_a_link_that_leads_out_is_refused() {
    let scratch = Scratch::new();
    bundle(&scratch, "one");
    let tree = scratch.join("source-one");
    let names = ["acme/test@1.0.0".to_owned()];
    let source = source();
    let under = || Under::Names { names: &names, source: &source };
    let store = Store::at(scratch.join("store"));
    std::os::unix::fs::symlink("../../../etc/passwd", tree.join("lib/link")).unwrap();
    assert!(store.add_tree(&tree, under(), None).is_err());
    assert!(store.list().unwrap().is_empty());
    // The control: it is the link.
    fs::remove_file(tree.join("lib/link")).unwrap();
    store.add_tree(&tree, under(), None).unwrap();
}

#[test]
fn what_is_taken_in_is_what_its_digest_says() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let manifest = store.read_blob(&digest, 1 << 20).unwrap();
    let layer = store.manifest(&digest).unwrap().bundle().unwrap().digest;
    let honest = store.blob_path(&layer);
    let into = |name: &str, blob: PathBuf| {
        let names = ["acme/test@1.0.0".to_owned()];
        let blobs = [(layer, blob)];
        let under = Under::Names { names: &names, source: &source() };
        let addition =
            Addition { under, manifest: &manifest, blobs: &blobs, signature: None, tree: None };
        Store::at(scratch.join(name)).add(&addition)
    };
    let error = into("lied-to", scratch.file("other", b"other bytes")).unwrap_err().to_string();
    for digest in [layer, Digest::of(b"other bytes")] {
        assert!(error.contains(&digest.to_string()), "{error}");
    }
    assert!(!Store::at(scratch.join("lied-to")).blob_path(&layer).exists());
    let copy = scratch.file("copy", &fs::read(honest).unwrap());
    assert_eq!(into("told-the-truth", copy).unwrap(), digest);
}

#[test]
fn the_latest_is_the_highest_version() {
    let scratch = Scratch::new();
    added(&scratch, "one", &["acme/test@1.10.0"]);
    let (store, two) = added(&scratch, "two", &["acme/test@1.9.0"]);
    let latest = |store: &Store| store.find(&reference("acme/test"), None).unwrap().unwrap();
    assert_eq!(latest(&store).name, "acme/test@1.10.0");
    let names = ["acme/test@latest".to_owned()];
    let under = Under::Names { names: &names, source: &source() };
    store.add_bundle(&scratch.join("two.mcpb"), under, None).unwrap();
    assert_eq!(latest(&store).digest, two);
}

#[cfg(unix)]
#[test]
fn a_tampered_file_stops_the_start_by_name() {
    let change = |name: &str, change: &dyn Fn(&Path)| {
        let scratch = Scratch::new();
        let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
        let root = store.ready(&digest).unwrap().root;
        change(&root);
        let error = store.ready(&digest).err().expect(name).to_string();
        assert!(error.contains(name), "{error}");
        assert!(store.verify(&digest).is_err(), "{name}");
    };
    let rewrite = |path: PathBuf, content: &str| {
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        fs::set_permissions(&path, permissions).unwrap();
        fs::write(&path, content).unwrap();
    };
    // Same length, and the old times put back.
    change("bin/run was changed", &|root| {
        let path = root.join("bin/run");
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "two").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    });
    change("bin/run has another", &|root| rewrite(root.join("bin/run"), "longer"));
    change("lib/y.js was added", &|root| fs::write(root.join("lib/y.js"), "evil").unwrap());
    change("lib/x.js is missing", &|root| fs::remove_file(root.join("lib/x.js")).unwrap());
    change("lib/x.js is of another kind", &|root| {
        fs::remove_file(root.join("lib/x.js")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("lib/x.js")).unwrap();
    });
}

#[test]
fn a_copy_with_other_times_is_compared_and_taken() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let ready = store.ready(&digest).unwrap();
    let root = &ready.root;
    let record = root.with_file_name("record");
    let before = fs::read(&record).unwrap();
    // As a restored backup would have it: the same bytes in another inode.
    fs::copy(root.join("lib/x.js"), root.join("lib/new")).unwrap();
    fs::rename(root.join("lib/new"), root.join("lib/x.js")).unwrap();
    assert!(!ready.is_as_recorded());
    assert!(!store.hold(&digest).unwrap().is_as_recorded());
    store.ready(&digest).unwrap();
    assert!(store.hold(&digest).unwrap().is_as_recorded());
    assert_ne!(fs::read(&record).unwrap(), before);
}

#[test]
fn a_damaged_blob_is_refused_with_both_digests() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let bundle = store.manifest(&digest).unwrap().bundle().unwrap().digest;
    let mut bytes = fs::read(store.blob_path(&bundle)).unwrap();
    bytes[40] ^= 1;
    fs::write(store.blob_path(&bundle), &bytes).unwrap();
    let error = store.verify(&digest).unwrap_err().to_string();
    assert!(
        error.contains(&bundle.to_string()) && error.contains(&Digest::of(&bytes).to_string()),
        "{error}"
    );
    fs::remove_dir_all(store.unpacked_path(&digest)).unwrap();
    assert!(store.ready(&digest).is_err());
    fs::write(store.blob_path(&digest), "{}").unwrap();
    assert!(store.manifest(&digest).unwrap_err().to_string().contains(&digest.to_string()));
}

/// A bundle that is sound and another one, and a file that is not unpacked: only digests tell.
#[test]
fn other_sound_blobs_are_refused_with_both_digests() {
    let scratch = Scratch::new();
    let store = Store::at(scratch.join("store"));
    let names = ["acme/test@1.0.0".to_owned()];
    let one = bundle(&scratch, "one");
    let digest = store
        .add_bundle(&one, Under::Names { names: &names, source: &source() }, Some("{}"))
        .unwrap();
    let layers = store.manifest(&digest).unwrap().layers;
    let other = fs::read(bundle(&scratch, "two")).unwrap();
    let told = |error: Error, layer: &Descriptor, bytes: &[u8]| {
        let error = error.to_string();
        let digests = [layer.digest, Digest::of(bytes)];
        assert!(digests.iter().all(|digest| error.contains(&digest.to_string())), "{error}");
    };
    for (layer, bytes) in layers.iter().zip([&other[..], b"[]"]) {
        let honest = fs::read(store.blob_path(&layer.digest)).unwrap();
        store.verify(&digest).unwrap();
        fs::write(store.blob_path(&layer.digest), bytes).unwrap();
        told(store.verify(&digest).unwrap_err(), layer, bytes);
        let _ = fs::remove_dir_all(store.unpacked_path(&digest));
        told(store.ready(&digest).err().unwrap(), layer, bytes);
        fs::write(store.blob_path(&layer.digest), honest).unwrap();
        store.ready(&digest).unwrap();
    }
}

#[test]
fn what_a_crash_left_is_swept_and_harmless() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    // Killed while unpacking: a staging directory whose lock no process holds.
    scratch.file("store/staging/dead/lock", b"");
    scratch.file("store/staging/dead/root/half", b"");
    // Killed while it was removed: its lock went first.
    scratch.file("store/staging/removed/root/half", b"");
    // Being made this moment.
    scratch.file("store/staging/.made/root/half", b"");
    let live = store.staging().unwrap();
    // Killed before unpacking was done: the blobs are there, the files are not.
    fs::remove_dir_all(store.unpacked_path(&digest)).unwrap();
    store.ready(&digest).unwrap();
    store.collect(Keep::default()).unwrap();
    assert!(!scratch.join("store/staging/dead").exists());
    assert_eq!(scratch.join("store/staging/removed").exists(), cfg!(windows));
    assert!(scratch.join("store/staging/.made").exists());
    assert!(live.path().exists());
    // Unpacked in part, by whatever means.
    fs::remove_file(store.unpacked_path(&digest).join("record")).unwrap();
    store.ready(&digest).unwrap();
}

#[test]
fn collecting_and_removing_leave_what_is_needed() {
    let scratch = Scratch::new();
    let (store, one) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let (_, two) = added(&scratch, "two", &["acme/test@2.0.0", "acme/test@latest"]);
    assert_eq!(store.collect(Keep::default()).unwrap().removed, []);
    let stored = store.get(&reference("acme/test@1.0.0")).unwrap();
    let running = store.ready(&one).unwrap();
    assert!(store.remove(&stored).unwrap_err().to_string().contains("is running"));
    let old = Keep { younger_than: Some(Duration::ZERO), bytes: None };
    let collected = store.collect(old).unwrap();
    assert_eq!(collected.in_use, std::slice::from_ref(&stored));
    assert_eq!(collected.removed.len(), 2);
    assert!(!store.has_blob(&two) && !store.unpacked_path(&two).exists());
    assert!(store.ready(&one).is_ok());
    drop(running);
    let collected = store.remove(&stored).unwrap();
    assert!(collected.bytes > 0);
    assert!(store.list().unwrap().is_empty());
    assert!(!store.has_blob(&one));
    let (_, three) = added(&scratch, "three", &["acme/test@3.0.0"]);
    let small = Keep { younger_than: None, bytes: Some(1) };
    assert_eq!(store.collect(small).unwrap().removed[0].digest, three);
}

#[test]
fn a_broken_bundle_leaves_nothing() {
    let scratch = Scratch::new();
    let store = Store::at(scratch.join("store"));
    let mut bytes = fs::read(bundle(&scratch, "one")).unwrap();
    let at = bytes.windows(3).position(|w| w == b"one").unwrap();
    bytes[at] = b'x';
    let broken = scratch.file("broken.mcpb", &bytes);
    let names = ["acme/test@1.0.0".to_owned()];
    let under = Under::Names { names: &names, source: &source() };
    assert!(store.add_bundle(&broken, under, None).is_err());
    assert!(store.list().unwrap().is_empty());
    assert!(fs::read_dir(scratch.join("store/staging")).unwrap().next().is_none());
    assert!(fs::read_dir(scratch.join("store/unpacked")).unwrap().next().is_none());
}

/// A maker that was stopped between making the lock's file and locking it loses nothing to a sweep.
#[test]
fn a_directory_that_is_being_made_is_not_swept() {
    let scratch = Scratch::new();
    let store = Store::at(scratch.join("store"));
    let staging = store.staging().unwrap();
    let within = staging.path().parent().unwrap().to_owned();
    let (hidden, dead) = (within.join(".1-1-1"), within.join("1-1-2"));
    for path in [&hidden, &dead] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("lock"), "").unwrap();
    }
    drop(store.staging().unwrap());
    assert!(hidden.exists(), "a directory that is being made was swept");
    assert!(!dead.exists(), "a directory whose lock is free was kept");
}

#[test]
fn many_processes_at_once_are_one_after_the_other() {
    let scratch = Scratch::new();
    let path = bundle(&scratch, "one");
    let root = scratch.join("store");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (path, root) = (&path, &root);
            scope.spawn(move || {
                let store = Store::at(root);
                let name = format!("acme/test@1.0.{number}");
                let under = Under::Names { names: &[name], source: &source() };
                let digest = store.add_bundle(path, under, None).unwrap();
                store.ready(&digest).unwrap();
            });
        }
    });
    assert_eq!(Store::at(&root).list().unwrap().len(), 8);
}
