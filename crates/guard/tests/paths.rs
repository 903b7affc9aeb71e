//! The path gate against real trees of links, against a model, and against a thread that swaps
//! links while it works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use mcp_guard::paths::{Absolute, Gate, Intent, Why};
use proptest::prelude::*;

/// A directory of our own that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gate-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path.canonicalize().unwrap())
    }

    fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `root` with some files, and `outside` with a secret.
fn world() -> (Scratch, Gate) {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.join("root/sub/deep")).unwrap();
    fs::create_dir_all(scratch.join("outside")).unwrap();
    fs::write(scratch.join("root/a.txt"), "a").unwrap();
    fs::write(scratch.join("root/.env"), "secret").unwrap();
    fs::write(scratch.join("root/sub/b.txt"), "b").unwrap();
    fs::write(scratch.join("outside/secret"), "secret").unwrap();
    let gate = Gate::builder(scratch.join("root")).deny("**/.env").build().unwrap();
    (scratch, gate)
}

fn read(gate: &Gate, path: &str) -> Result<String, Why> {
    let mut opened = gate.resolve(path, Intent::Read).map_err(|refusal| refusal.why)?;
    let mut text = String::new();
    opened.file.read_to_string(&mut text).unwrap();
    Ok(text)
}

#[test]
fn inside_is_opened() {
    let (scratch, gate) = world();
    symlink("sub/b.txt", scratch.join("root/link")).unwrap();
    symlink("../a.txt", scratch.join("root/sub/up")).unwrap();
    symlink(scratch.join("root/sub"), scratch.join("root/absolute")).unwrap();
    symlink("link", scratch.join("root/chain")).unwrap();
    for (path, expected) in [
        ("a.txt", "a"),
        ("./a.txt", "a"),
        ("sub/b.txt", "b"),
        ("sub//b.txt", "b"),
        ("link", "b"),
        ("sub/up", "a"),
        ("absolute/b.txt", "b"),
        ("chain", "b"),
        ("absolute/up", "a"),
    ] {
        assert_eq!(read(&gate, path).unwrap(), expected, "{path}");
    }
    let absolute = scratch.join("root/sub/b.txt");
    assert_eq!(read(&gate, absolute.to_str().unwrap()).unwrap(), "b");
    let opened = gate.resolve("chain", Intent::Read).unwrap();
    assert_eq!(opened.path, scratch.join("root/sub/b.txt"));
    assert!(gate.resolve(".", Intent::List).is_ok());
    assert!(gate.resolve("sub", Intent::List).is_ok());
    assert!(gate.resolve("sub/", Intent::List).is_ok());
}

#[test]
fn outside_is_not() {
    let (scratch, gate) = world();
    let root = |name: &str| scratch.join("root").join(name);
    symlink("../outside/secret", root("out")).unwrap();
    symlink(scratch.join("outside/secret"), root("out-absolute")).unwrap();
    symlink("..", root("parent")).unwrap();
    symlink("sub/../../outside", root("sneaky")).unwrap();
    symlink("/", root("slash")).unwrap();
    symlink("/proc/self/root", root("magic")).unwrap();
    symlink("out", root("chain-out")).unwrap();
    symlink("loop-b", root("loop-a")).unwrap();
    symlink("loop-a", root("loop-b")).unwrap();
    for path in [
        "out",
        "out-absolute",
        "parent/outside/secret",
        "sneaky/secret",
        "slash/etc/passwd",
        "magic/etc/passwd",
        "chain-out",
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "parent/root/a.txt",
    ] {
        let why = read(&gate, path).unwrap_err();
        assert!(matches!(why, Why::Outside), "{path}: {why:?}");
    }
    assert!(matches!(read(&gate, "loop-a").unwrap_err(), Why::TooManyLinks));
    for path in ["../outside/secret", "sub/../a.txt", "a\nb", "", "a\u{202e}", r"\\x\y", "~/x"] {
        assert!(matches!(read(&gate, path).unwrap_err(), Why::Form(_)), "{path}");
    }
    // Positive control: without the gate, the same links lead there.
    assert_eq!(fs::read_to_string(root("chain-out")).unwrap(), "secret");
}

#[test]
fn denied_names_stay_closed_by_every_way() {
    let (scratch, gate) = world();
    symlink(".env", scratch.join("root/plain")).unwrap();
    fs::create_dir(scratch.join("root/x")).unwrap();
    symlink("../.env", scratch.join("root/x/y")).unwrap();
    symlink("a.txt", scratch.join("root/sub/.env")).unwrap();
    for path in [".env", "plain", "x/y", "sub/.env", ".ENV", "new/.env"] {
        assert!(
            matches!(read(&gate, path).unwrap_err(), Why::Denied { .. } | Why::System(_)),
            "{path}"
        );
    }
    for path in [".env", "plain", "x/y", "sub/.env", ".ENV"] {
        let why = gate.resolve(path, Intent::Write).unwrap_err().why;
        assert!(matches!(why, Why::Denied { .. }), "{path}: {why:?}");
    }
    let gate = Gate::builder(scratch.join("root")).deny("sub").build().unwrap();
    assert!(matches!(read(&gate, "sub/b.txt").unwrap_err(), Why::Denied { .. }));
    let gate = Gate::builder(scratch.join("root")).build().unwrap();
    assert_eq!(read(&gate, "plain").unwrap(), "secret", "control");
}

#[test]
fn writing_and_creating() {
    let (scratch, gate) = world();
    let mut opened = gate.resolve("sub/new.txt", Intent::Write).unwrap();
    opened.file.write_all(b"new").unwrap();
    assert_eq!(fs::read_to_string(scratch.join("root/sub/new.txt")).unwrap(), "new");
    assert!(gate.resolve("sub/new.txt", Intent::Create).is_err());
    assert!(gate.resolve("other.txt", Intent::Create).is_ok());
    assert!(gate.resolve("missing/new.txt", Intent::Write).is_err());
    assert!(gate.resolve("missing.txt", Intent::Read).is_err());
    assert!(!scratch.join("root/missing.txt").exists());
    // A link to nothing yet: made where it leads, if that is inside.
    symlink("sub/made", scratch.join("root/dangling")).unwrap();
    assert!(gate.resolve("dangling", Intent::Write).is_ok());
    assert!(scratch.join("root/sub/made").exists());
    symlink("../outside/made", scratch.join("root/dangling-out")).unwrap();
    assert!(gate.resolve("dangling-out", Intent::Write).is_err());
    assert!(!scratch.join("outside/made").exists());
    assert!(matches!(gate.resolve("sub", Intent::Write).unwrap_err().why, Why::NotA(_)));
    assert!(matches!(gate.resolve("a.txt", Intent::List).unwrap_err().why, Why::NotA(_)));
    assert!(gate.resolve("a.txt/", Intent::Read).is_err());
    assert!(gate.resolve("a.txt/b", Intent::Read).is_err());
}

#[test]
fn special_files_are_refused_without_waiting() {
    let (scratch, gate) = world();
    let _socket = std::os::unix::net::UnixListener::bind(scratch.join("root/socket")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(scratch.join("root/pipe")).status();
    assert!(matches!(read(&gate, "socket").unwrap_err(), Why::Special));
    if made.is_ok_and(|status| status.success()) {
        assert!(matches!(read(&gate, "pipe").unwrap_err(), Why::Special));
        assert!(matches!(gate.resolve("pipe", Intent::Write).unwrap_err().why, Why::Special));
    } else {
        println!("SKIP: no mkfifo");
    }
    let gate = Gate::builder("/dev").build().unwrap();
    assert!(matches!(read(&gate, "null").unwrap_err(), Why::Special));
}

#[test]
fn several_roots_and_absolute_paths() {
    let (scratch, _) = world();
    let (root, outside) = (scratch.join("root"), scratch.join("outside"));
    let secret = outside.join("secret");
    let secret = secret.to_str().unwrap();
    symlink(&outside, root.join("other")).unwrap();
    let gate = |absolute| Gate::builder(&root).absolute(absolute).build().unwrap();
    assert!(matches!(read(&gate(Absolute::InRoots), secret).unwrap_err(), Why::Outside));
    assert!(matches!(read(&gate(Absolute::Refused), secret).unwrap_err(), Why::Form(_)));
    assert!(read(&gate(Absolute::Refused), root.join("a.txt").to_str().unwrap()).is_err());
    assert_eq!(read(&gate(Absolute::Anywhere), secret).unwrap(), "secret");
    assert_eq!(read(&gate(Absolute::Anywhere), "other/secret").unwrap(), "secret");
    let both = Gate::builder(&root).root(&outside).build().unwrap();
    assert_eq!(read(&both, secret).unwrap(), "secret");
    assert_eq!(read(&both, "other/secret").unwrap(), "secret");
    assert!(read(&both, scratch.join("root/../outside/secret").to_str().unwrap()).is_err());
    let near = format!("{}x/secret", outside.display());
    assert!(matches!(read(&both, &near).unwrap_err(), Why::Outside));
}

/// A tree in memory: names to files, directories and links.
#[derive(Debug, Clone)]
enum Node {
    File,
    Directory(BTreeMap<String, Node>),
    Link(String),
}

const NAMES: [&str; 4] = ["a", "b", "c", "deny"];
const TARGETS: [&str; 12] = [
    "a",
    "b",
    "c",
    "a/b",
    "../a",
    "..",
    ".",
    "../..",
    "../../outside/f",
    "b/../c",
    "deny",
    "ROOT/a",
];

fn tree(depth: u32) -> BoxedStrategy<BTreeMap<String, Node>> {
    let leaf = prop_oneof![
        Just(Node::File),
        proptest::sample::select(&TARGETS[..]).prop_map(|target| Node::Link(target.to_owned())),
    ];
    let node = match depth {
        0 => leaf.boxed(),
        depth => prop_oneof![2 => leaf, 1 => tree(depth - 1).prop_map(Node::Directory)].boxed(),
    };
    proptest::collection::btree_map(proptest::sample::select(&NAMES[..]), node, 0..4)
        .prop_map(|map| map.into_iter().map(|(name, node)| (name.to_owned(), node)).collect())
        .boxed()
}

fn build(at: &Path, root: &Path, nodes: &BTreeMap<String, Node>) {
    for (name, node) in nodes {
        let path = at.join(name);
        match node {
            Node::File => fs::write(&path, path.to_str().unwrap()).unwrap(),
            Node::Directory(inner) => {
                fs::create_dir(&path).unwrap();
                build(&path, root, inner);
            }
            Node::Link(target) => {
                symlink(target.replace("ROOT", root.to_str().unwrap()), &path).unwrap();
            }
        }
    }
}

/// Where a path leads by the model: the names of a file below the root, if it may be opened.
fn model(tree: &BTreeMap<String, Node>, path: &[String]) -> Option<Vec<String>> {
    let mut left: Vec<String> = path.iter().rev().cloned().collect();
    let mut at: Vec<String> = Vec::new();
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == ".." {
            at.pop()?;
            continue;
        }
        if name == "." {
            continue;
        }
        at.push(name.clone());
        if name == "deny" {
            return None;
        }
        match lookup(tree, &at)? {
            Node::File => return left.is_empty().then_some(at),
            Node::Directory(_) => {}
            Node::Link(target) => {
                links += 1;
                if links > 40 {
                    return None;
                }
                at.pop();
                let target = match target.strip_prefix("ROOT/") {
                    Some(rest) => {
                        at.clear();
                        rest
                    }
                    None => target,
                };
                left.extend(target.split('/').rev().map(str::to_owned));
            }
        }
    }
    None
}

fn lookup<'a>(tree: &'a BTreeMap<String, Node>, at: &[String]) -> Option<&'a Node> {
    let (first, rest) = at.split_first()?;
    let node = tree.get(first)?;
    match (node, rest) {
        (node, []) => Some(node),
        (Node::Directory(inner), rest) => lookup(inner, rest),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gate_agrees_with_the_model(
        tree in tree(3),
        paths in proptest::collection::vec(proptest::collection::vec(proptest::sample::select(&NAMES[..]), 1..5), 1..12),
    ) {
        let scratch = Scratch::new();
        let root = scratch.join("root");
        fs::create_dir(&root).unwrap();
        fs::create_dir(scratch.join("outside")).unwrap();
        fs::write(scratch.join("outside/f"), "secret").unwrap();
        build(&root, &root, &tree);
        let gate = Gate::builder(&root).deny("deny").build().unwrap();
        for path in paths {
            let names: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
            let expected = model(&tree, &names);
            let opened = gate.resolve(&names.join("/"), Intent::Read);
            match (expected, opened) {
                (Some(names), Ok(mut opened)) => {
                    let place = root.join(names.join("/"));
                    prop_assert_eq!(&opened.path, &place);
                    let mut text = String::new();
                    opened.file.read_to_string(&mut text).unwrap();
                    prop_assert_eq!(text, place.to_str().unwrap());
                }
                (None, Err(_)) => {}
                (expected, got) => prop_assert!(false, "{:?}: {:?} but {:?}", path, expected, got),
            }
        }
    }
}

struct StopsAtTheEnd<'a>(&'a AtomicBool);

impl Drop for StopsAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One thread makes `spot` now a directory, now a link out, now a file, now a link to a denied
/// one, while the gate opens through it. Never may the secret come out.
#[test]
fn swapped_links_never_lead_out() {
    let (scratch, gate) = world();
    fs::write(scratch.join("outside/b.txt"), "secret").unwrap();
    let stop = AtomicBool::new(false);
    let (mut opened, mut refused, mut leaked) = (0u32, 0u32, 0u32);
    std::thread::scope(|scope| {
        // Also when an assertion fails: the other thread would be waited for.
        let _stops = StopsAtTheEnd(&stop);
        scope.spawn(|| {
            let (spot, spare) = (scratch.join("root/spot"), scratch.join("root/spare"));
            let places = ["sub", "../outside", "sub", ".env", "/", "sub"];
            for target in places.iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let _ = fs::remove_file(&spare);
                symlink(target, &spare).unwrap();
                fs::rename(&spare, &spot).unwrap();
            }
        });
        let end = std::time::Instant::now() + std::time::Duration::from_millis(700);
        while std::time::Instant::now() < end {
            for path in ["spot/b.txt", "spot"] {
                match read(&gate, path) {
                    Ok(text) => {
                        opened += 1;
                        assert_eq!(text, "b", "{path}");
                    }
                    Err(_) => refused += 1,
                }
            }
            // Control: whoever just opens it does get the secret.
            let plain = fs::read_to_string(scratch.join("root/spot/b.txt"));
            leaked += u32::from(plain.is_ok_and(|text| text == "secret"));
            if let Ok(opened) = gate.resolve("spot/written", Intent::Write) {
                assert!(opened.path.starts_with(scratch.join("root/sub")), "{:?}", opened.path);
            }
        }
    });
    println!("{opened} opened, {refused} refused; {leaked} leaked without the gate");
    assert!(leaked > 0, "the link out was never met");
    assert!(opened > 0 && refused > 0, "the race was not run: {opened} opened, {refused} refused");
    assert!(!scratch.join("outside/written").exists());
}
