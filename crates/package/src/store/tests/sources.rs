//! Names belong to a source, grants to a source, a name and a digest.

use std::collections::BTreeSet;

use super::*;
use crate::error::Kind;

fn source_of(text: &str) -> Source {
    let source: Source = text.parse().unwrap();
    assert_eq!(source.to_string(), text);
    source
}

const A: &str = "oci://a.example/acme/test";
const B: &str = "oci://b.example/acme/test";
const FILE: &str = "file:/tmp/evil.mcpb";

#[test]
fn a_name_is_one_sources_and_no_others() {
    for (first, second) in [
        (A, B),
        (A, FILE),
        (FILE, A),
        (A, "oci://a.example/prefix/acme/test"),
        (A, "public:https://registry.example"),
        ("npm:https://a.example/", "npm:https://b.example/"),
        ("npm:https://a.example/", "pypi:https://a.example/"),
    ] {
        let scratch = Scratch::new();
        let store = Store::at(scratch.join("store"));
        let add = |content: &str, name: &str, source: &str| {
            let under = Under::Names { names: &[name.to_owned()], source: &source_of(source) };
            store.add_bundle(&bundle(&scratch, content), under, None)
        };
        let one = add("one", "acme/test@1.0.0", first).unwrap();
        // Neither the version that is there, nor one that would be the latest, nor the same bytes.
        for (content, name) in [
            ("two", "acme/test@1.0.0"),
            ("two", "acme/test@2.0.0"),
            ("two", "acme/test@latest"),
            ("one", "acme/test@1.0.0"),
        ] {
            let error = add(content, name, second).unwrap_err();
            assert_eq!(error.kind(), Kind::Untrusted);
            let text = error.to_string();
            for word in [first, second, "mcp remove acme/test@1.0.0"] {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
        let find = |source: &str| store.find(&reference("acme/test"), Some(&source_of(source)));
        assert_eq!(find(first).unwrap().unwrap().digest, one);
        assert!(find(second).unwrap_err().to_string().contains("is not taken for"));
        // The controls: another name, another version of the first source, and the name once it is free.
        add("two", "acme/other@1.0.0", second).unwrap();
        add("two", "acme/test@2.0.0", first).unwrap();
        for version in ["1.0.0", "2.0.0"] {
            let name = reference(&format!("acme/test@{version}"));
            store.remove(&store.get(&name).unwrap()).unwrap();
        }
        add("two", "acme/test@1.0.0", second).unwrap();
    }
}

#[test]
fn one_version_of_two_files_is_refused_and_a_file_that_was_made_anew_is_not() {
    let scratch = Scratch::new();
    let store = Store::at(scratch.join("store"));
    let add = |content: &str, path: &str| {
        let names = ["acme/test@1.0.0".to_owned()];
        let under = Under::Names { names: &names, source: &Source::File(path.to_owned()) };
        store.add_bundle(&bundle(&scratch, content), under, None)
    };
    add("one", "/good.mcpb").unwrap();
    let error = add("two", "/evil.mcpb").unwrap_err().to_string();
    assert!(error.contains("mcp run /evil.mcpb"), "{error}");
    add("one", "/copy.mcpb").unwrap();
    add("two", "/copy.mcpb").unwrap();
}

#[test]
fn what_was_made_from_a_package_has_no_name() {
    let scratch = Scratch::new();
    let (store, one) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let made =
        store.add_bundle(&bundle(&scratch, "made"), Under::Derived { from: one }, None).unwrap();
    assert_eq!(store.derived(&one).unwrap(), Some(made));
    assert_eq!(store.derived(&made).unwrap(), None);
    assert_eq!(store.list().unwrap().len(), 1);
    // Whatever a bundle is called, it does not become what was made from another one.
    let hex = one.hex();
    for name in [format!("uv/{}@1", &hex[..32]), format!("uv/{hex}@1"), format!("derived/{hex}@1")]
    {
        let under = Under::Names { names: &[name], source: &source_of(FILE) };
        store.add_bundle(&bundle(&scratch, "evil"), under, None).unwrap();
        assert_eq!(store.derived(&one).unwrap(), Some(made));
    }
    // It is looked at, kept, held and dropped with the package.
    store.verify(&one).unwrap();
    store.collect(Keep::default()).unwrap();
    let running = store.hold(&made).unwrap();
    let stored = store.get(&reference("acme/test@1.0.0")).unwrap();
    assert!(store.remove(&stored).unwrap_err().to_string().contains("is running"));
    drop(running);
    fs::write(store.unpacked_path(&made).join("root/new"), "x").unwrap();
    assert!(store.verify(&one).unwrap_err().to_string().contains("new was added"));
    store.remove(&stored).unwrap();
    assert_eq!(store.derived(&one).unwrap(), None);
    assert!(!store.has_blob(&made) && !store.unpacked_path(&made).exists());
}

#[test]
fn what_an_older_mcp_stored_is_listed_and_not_found() {
    let scratch = Scratch::new();
    let (store, digest) = added(&scratch, "one", &["acme/test@1.0.0"]);
    let path = scratch.join("store/index.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("dev.mcp.origin", "dev.mcp.source")).unwrap();
    let name = reference("acme/test@1.0.0");
    for from in [None, Some(source())] {
        assert_eq!(store.find(&name, from.as_ref()).unwrap(), None);
    }
    assert_eq!(store.list().unwrap()[0].source, None);
    assert_eq!(store.get(&name).unwrap().digest, digest);
    // It changes nothing for the others, and is found once it was fetched.
    added(&scratch, "one", &["acme/test@1.0.0"]);
    assert_eq!(store.find(&name, Some(&source())).unwrap().unwrap().digest, digest);
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_grant_is_for_one_source_one_name_and_one_digest() {
    let scratch = Scratch::new();
    let store = Store::at(scratch.join("store"));
    let (a, b) = (source_of(A), source_of(B));
    let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
    let holder = |source, package, digest| Holder { source, package, digest };
    let granted = BTreeSet::from(["read /x".to_owned()]);
    store.grants().remember(&holder(&a, "acme/test", one), granted.clone()).unwrap();
    assert_eq!(store.grants().find(&holder(&a, "acme/test", one)), granted);
    let (longer, shorter) = (source_of(&format!("{A}acme")), source_of("oci://a.example/acme/tes"));
    for other in [
        holder(&a, "acme/test", two),
        holder(&b, "acme/test", one),
        holder(&a, "acme/other", one),
        holder(&longer, "/test", one),
        holder(&shorter, "tacme/test", one),
    ] {
        assert_eq!(store.grants().find(&other), BTreeSet::new(), "{other:?}");
    }
    // Known for the next question, and no grant.
    assert_eq!(store.grants().of_others(&holder(&a, "acme/test", two)), granted);
    assert_eq!(store.grants().of_others(&holder(&b, "acme/test", two)), BTreeSet::new());
    let more = BTreeSet::from(["read /y".to_owned()]);
    store.grants().remember(&holder(&a, "acme/test", two), more.clone()).unwrap();
    assert_eq!(store.grants().find(&holder(&a, "acme/test", one)), granted);
    assert_eq!(store.grants().find(&holder(&a, "acme/test", two)), more);
}
