//! What public reports say breaks programs under Seatbelt, or broke the sandboxes of others, as questions to our
//! profiles. Where a report has a number, it is named.

use std::path::PathBuf;

use mcp_sandbox::Request;
use mcp_sandbox::macos::{self, MacFacts};

use crate::evaluator::Question;
use crate::support::{Mac, PROJECT, plan, policy, profile, request, scratch};

/// libsandbox is reported to abort on a profile with other characters, comments included.
#[test]
fn profiles_are_ascii_whatever_is_granted() {
    let odd = "/Users/me/Grüße – 日本語/\u{1f980}";
    let requests = [
        request(policy(|f| f)),
        request(policy(|f| f.write(odd).read("/Users/ü").deny("**/*.schlüssel").no_subprocess())),
        request(policy(|f| f.network_host().system_trust())),
        request(policy(|f| f.listen(8080).allow_unix("/tmp/ß.sock"))),
        request(policy(|f| f.allow_net("api.example.com:443".parse().unwrap()).deny("**/ø/*"))),
        Request { program: PathBuf::from(format!("{odd}/node")), ..request(policy(|f| f)) },
    ];
    for request in requests {
        let plan = plan(&request);
        let profile = profile(&plan);
        let foreign: Vec<&str> = profile.text.lines().filter(|line| !line.is_ascii()).collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        assert!(profile.text.is_ascii());
        assert!(profile.parameters.iter().all(|parameter| parameter.name.is_ascii()));
    }
    // The control: the name did get into the profile, as a parameter.
    let mac = Mac::with(|f| f.write(odd));
    assert!(mac.writes(&format!("{odd}/x")) && !mac.writes("/Users/me/Grusse/x"));
}

/// microsoft/mxc 749 and 754: under the order that was measured an unfiltered deny would stop nothing.
#[test]
fn no_subprocess_holds_under_both_orders_of_rules() {
    let mac = Mac::with(|f| f.no_subprocess().write(PROJECT).read("/Users/me/tools"));
    for program in ["/bin/sh", "/usr/bin/env", "/Users/me/tools/x", "/Users/me/project/x"] {
        assert!(!mac.may("process-exec", program), "{program}");
    }
    let free = Mac::with(|f| f.write(PROJECT).read("/Users/me/tools"));
    for program in ["/bin/sh", "/usr/bin/env", "/Users/me/tools/x", "/Users/me/project/x"] {
        assert!(free.may("process-exec", program), "the control: {program}");
    }
}

/// Python of python.org and of Homebrew executes Python.app in its own place.
#[test]
fn a_framework_python_runs_without_subprocesses() {
    for version in [
        "/Library/Frameworks/Python.framework/Versions/3.13",
        "/opt/homebrew/Cellar/python@3.12/3.12.7/Frameworks/Python.framework/Versions/3.12",
    ] {
        let program = format!("{version}/bin/python3");
        let request =
            Request { program: program.clone().into(), ..request(policy(|f| f.no_subprocess())) };
        let mac = Mac::of(&request);
        assert!(mac.executes(&program));
        assert!(mac.executes(&format!("{version}/Resources/Python.app/Contents/MacOS/Python")));
        assert!(!mac.may("process-exec", &format!("{version}/bin/pip3")));
    }
    let plain =
        Request { program: "/opt/x/bin/python3".into(), ..request(policy(|f| f.no_subprocess())) };
    let mac = Mac::of(&plain);
    assert!(!mac.may("process-exec", "/opt/x/Resources/Python.app/Contents/MacOS/Python"));
}

/// `node server.js > log`: Node calls fstat() on its output.
#[test]
fn files_behind_descriptors_have_metadata_and_nothing_else() {
    let log = "/Users/me/logs/server.log";
    let facts = MacFacts { redirected: vec![log.into()], ..MacFacts::usual() };
    let plan = macos::plan(&request(policy(|f| f)), &facts);
    let mac = Mac::under(profile(&plan));
    assert!(mac.may("file-read-metadata", log));
    assert!(!mac.may("file-read-data", log) && !mac.changes(log));
    assert!(!mac.may("file-read-metadata", "/Users/me/logs/other.log"));
    assert!(!Mac::with(|f| f).may("file-read-metadata", log), "the control");
}

/// The path of a unix socket has 103 bytes; a real TMPDIR of a user has 49 with its slash.
#[test]
fn sockets_of_python_managers_fit_below_tmpdir() {
    let user = "/private/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T";
    let facts = MacFacts { scratch: format!("{user}/mcp-0123456789").into(), ..MacFacts::usual() };
    let plan = macos::plan(&request(policy(|f| f)), &facts);
    let set = plan.steps.iter().find_map(|planned| match &planned.step {
        macos::Step::Environment { set } => set.iter().find(|(name, _)| name == "TMPDIR"),
        _ => None,
    });
    let (_, tmpdir) = set.unwrap();
    assert!(tmpdir.starts_with("/var/folders/"), "{tmpdir}");
    assert!(format!("{tmpdir}/pymp-abcdefgh/listener-abcdefgh").len() <= 103, "{tmpdir}");
}

/// `--write /private/var/folders/zz`: the run's own directory lies below, and what the self-check has to be refused at.
#[test]
fn a_grant_above_tmpdir_opens_neither_canary_nor_the_checks_file() {
    let user = "/private/var/folders/zz/user/T";
    let facts = MacFacts { scratch: format!("{user}/mcp-run").into(), ..MacFacts::usual() };
    let granted = policy(|f| f.write("/private/var/folders/zz"));
    let mac = Mac::under(profile(&macos::plan(&request(granted), &facts)));
    for closed in [facts.canary(), facts.created()] {
        let closed = closed.to_str().unwrap();
        assert!(!mac.may("file-read-data", closed) && !mac.changes(closed), "{closed}");
    }
    for open in [format!("{user}/mcp-run/tmp/x"), format!("{user}/other")] {
        assert!(mac.writes(&open), "the control: {open}");
    }
}

#[test]
fn what_programs_ask_about_interfaces_and_proxies_comes_with_a_network() {
    let routes = || Question::name("sysctl-read", "net.routetable.0.0.3.0");
    let configd = "com.apple.SystemConfiguration.configd";
    let rule = || "api.example.com:443".parse().unwrap();
    for mac in [Mac::with(|f| f.network_host()), Mac::with(|f| f.allow_net(rule()))] {
        assert!(mac.asks(routes()) && mac.looks_up(configd));
    }
    let without = Mac::with(|f| f);
    assert!(!without.asks(routes()) && !without.looks_up(configd));
}

/// Lines of `must_allow.tsv`: programs, operation, path or name. PROJECT, HOME and TMP stand for the run's own.
fn corpus() -> Vec<(&'static str, &'static str, &'static str)> {
    let lines = include_str!("must_allow.tsv").lines();
    let entries = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    entries
        .map(|line| {
            let mut fields = line.split('\t');
            let (programs, operation, at) = (fields.next(), fields.next(), fields.next());
            let (Some(programs), Some(operation), Some(at)) = (programs, operation, at) else {
                panic!("not three fields: {line}");
            };
            assert_eq!(fields.next(), None, "{line}");
            (programs, operation, at)
        })
        .collect()
}

/// What node, python, git, cargo, npm, go, java, shells and compilers were seen to need, asked of an ordinary run with a
/// project to write to and an allowlist.
#[test]
fn what_programs_must_be_allowed() {
    let mac = Mac::with(|f| {
        f.write(PROJECT).allow_net("registry.npmjs.org:443".parse().unwrap()).listen(8080)
    });
    let entries = corpus();
    assert!(entries.len() >= 300, "{} entries", entries.len());
    let mut refused = Vec::new();
    for (programs, operation, at) in &entries {
        let at = at.replacen("PROJECT", PROJECT, 1).replacen("HOME", &scratch("home"), 1).replacen(
            "TMP",
            &scratch("tmp"),
            1,
        );
        let question = match (*operation, at.as_str()) {
            (operation, "-") => Question::new(operation),
            (operation, "same-sandbox") => Question::same_sandbox(operation),
            (operation, path) if path.starts_with('/') && !operation.starts_with("ipc-") => {
                Question::path(operation, path)
            }
            (operation, name) => Question::name(operation, name),
        };
        if !mac.asks(question) {
            refused.push(format!("{programs}: {operation} {at}"));
        }
    }
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
    let mut unique: Vec<_> = entries.iter().map(|(_, operation, at)| (operation, at)).collect();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), entries.len(), "an entry stands twice");
}
