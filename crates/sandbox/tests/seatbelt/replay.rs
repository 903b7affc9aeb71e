//! Production profiles of others and published denials, replayed against ours: every difference was reviewed, and has its
//! reason beside it. A change of our profile that moves a line has to move its entry, too.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sandbox::{Request, Stdio};

use crate::evaluator::{End, Question};
use crate::support::{Mac, PROJECT, policy, request, scratch};

struct Entry {
    run: &'static str,
    operation: &'static str,
    object: String,
    allowed_by: Vec<&'static str>,
    is_allowed: bool,
    reason: &'static str,
}

fn entries() -> Vec<Entry> {
    let lines = include_str!("replay.tsv").lines();
    let entry = |line: &'static str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [run, operation, object, allowed_by, ours, reason] = fields[..] else {
            panic!("not six fields: {line}");
        };
        let own = [("PROJECT/", format!("{PROJECT}/")), ("HOME/", scratch("home/"))];
        let own = own.into_iter().chain([("TMP/", scratch("tmp/"))]);
        let object = own.fold(object.to_owned(), |object, (name, path)| {
            match object.strip_prefix("unix:").unwrap_or(&object).starts_with(name) {
                true => object.replacen(name, &path, 1),
                false => object,
            }
        });
        let is_allowed = match ours {
            "yes" => true,
            "no" => false,
            other => panic!("{other} is neither yes nor no: {line}"),
        };
        let allowed_by = allowed_by.split(' ').collect();
        Entry { run, operation, object, allowed_by, is_allowed, reason }
    };
    lines.filter(|line| !line.starts_with('#')).map(entry).collect()
}

fn question(operation: &str, object: &str) -> Question {
    let end = match object.split_once(':') {
        Some(("unix", path)) => Some(End::Unix(path.to_owned())),
        Some(("ip", address)) => {
            let (host, port) = address.rsplit_once(':').unwrap();
            Some(End::ip(host, port.parse().unwrap()))
        }
        _ => None,
    };
    match (operation, end, object) {
        ("network-outbound", Some(end), _) => Question::outbound(end),
        ("network-bind", Some(end), _) => Question::bind(end),
        ("network-inbound", Some(end), _) => Question::inbound(end),
        (_, _, "-") => Question::new(operation),
        (_, _, "same-sandbox") => Question::same_sandbox(operation),
        (_, _, path) if path.starts_with('/') && !operation.starts_with("ipc-") => {
            Question::path(operation, path)
        }
        (_, _, name) => Question::name(operation, name),
    }
}

/// The runs that entries ask about.
fn macs() -> BTreeMap<&'static str, Mac> {
    let usual = || {
        let rule = "registry.npmjs.org:443".parse().unwrap();
        request(policy(|f| f.write(PROJECT).allow_net(rule).listen(8080)))
    };
    let terminal =
        Request { stdio: [Stdio::Terminal, Stdio::Terminal, Stdio::Terminal], ..usual() };
    BTreeMap::from([
        ("any", Mac::of(&usual())),
        ("terminal", Mac::of(&terminal)),
        ("host", Mac::with(|f| f.write(PROJECT).network_host().system_trust())),
    ])
}

#[test]
fn every_difference_to_other_profiles_is_known_and_has_a_reason() {
    let macs = macs();
    let entries = entries();
    let mut wrong = Vec::new();
    for entry in &entries {
        let answer = macs[entry.run].asks(question(entry.operation, &entry.object));
        let shown = format!("{}: {} {}", entry.run, entry.operation, entry.object);
        if answer != entry.is_allowed {
            wrong.push(format!("{shown}: ours says {answer}"));
        }
        if entry.is_allowed == (entry.reason != "-") {
            wrong.push(format!("{shown}: a reason belongs to a difference, and to nothing else"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let keys: BTreeSet<_> = entries.iter().map(|e| (e.run, e.operation, &e.object)).collect();
    assert_eq!(keys.len(), entries.len(), "an entry stands twice");
}

/// The figures, which `--nocapture` shows; and that no source was left out.
#[test]
fn every_profile_was_replayed() {
    let entries = entries();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for entry in &entries {
        let names = entry.allowed_by.iter();
        let names: BTreeSet<&str> =
            names.map(|name| if name.starts_with("log:") { "log" } else { name }).collect();
        for name in names {
            let count = counts.entry(name).or_default();
            count.0 += 1;
            count.1 += usize::from(!entry.is_allowed);
        }
    }
    for name in ["bazel", "chromium", "codex", "gemini", "log", "mxc", "nix", "nono", "srt"] {
        assert!(counts.get(name).is_some_and(|(compared, _)| *compared > 5), "{name}: {counts:?}");
    }
    let differences = entries.iter().filter(|entry| !entry.is_allowed).count();
    println!("{} operations compared, {differences} differences", entries.len());
    let page = include_str!("../../../../docs/security/macos.md");
    let allowed = entries.len() - differences;
    for figure in [
        format!("holds {} operations", entries.len()),
        format!("allows {allowed} of them"),
        format!("the other {differences} has"),
    ] {
        assert!(page.contains(&figure), "docs/security/macos.md does not say: {figure}");
    }
    for (name, (compared, refused)) in counts {
        println!("  {name}: allows {compared}, of which ours refuses {refused}");
    }
}
