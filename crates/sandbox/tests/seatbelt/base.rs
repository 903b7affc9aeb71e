//! The base rules by themselves: complete in what they close, and each with its reason.

use crate::evaluator::{Node, Question, parse};
use crate::support::{Mac, plan, policy, profile, request};

fn text() -> String {
    profile(&plan(&request(policy(|f| f)))).text.clone()
}

#[test]
fn denies_by_default_and_by_name_what_default_leaves_open() {
    let mac = Mac::with(|f| f);
    for operation in [
        "process-info-pidinfo",
        "process-info-listpids",
        "nvram-get",
        "iokit-get-properties",
        "iokit-open",
    ] {
        assert!(!mac.asks(Question::other_process(operation)), "{operation}");
    }
    assert!(!mac.may("file-map-executable", "/Users/me/x.dylib"));
    assert!(mac.may("file-map-executable", "/usr/lib/libSystem.B.dylib"));
    assert!(mac.asks(Question::new("dynamic-code-generation")), "Node could not start");
}

#[test]
fn every_rule_says_why() {
    let text = text();
    let mut paragraph_has_comment = false;
    for line in text.lines() {
        match line.trim_start() {
            "" => paragraph_has_comment = false,
            line if line.starts_with(';') => paragraph_has_comment = true,
            line if line.starts_with("(allow") || line.starts_with("(deny") => {
                assert!(paragraph_has_comment, "no reason: {line}");
            }
            _ => {}
        }
    }
}

/// A rule without a filter is about everything: these, and no others. None of them denies an operation that a rule
/// with a filter allows elsewhere, since it would not override it.
#[test]
fn rules_about_everything_are_few() {
    let mut without: Vec<String> = Vec::new();
    for node in parse(&text()).unwrap() {
        let Node::List(nodes) = node else { panic!("{node:?}") };
        if nodes.iter().any(|node| matches!(node, Node::List(_))) {
            continue;
        }
        let words = nodes.iter().filter_map(|node| match node {
            Node::Symbol(word) => Some(word.as_str()),
            _ => None,
        });
        without.push(words.collect::<Vec<_>>().join(" "));
    }
    assert_eq!(
        without,
        [
            "version 1",
            "deny file-map-executable",
            "deny iokit-get-properties",
            "deny nvram*",
            "deny process-info*",
            "allow dynamic-code-generation",
            "allow pseudo-tty",
            "allow mach-host*",
            "allow process-fork",
        ]
    );
}

#[test]
fn services_are_these_and_no_others() {
    let text = text();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(global-name \"")?.split('"').next())
        .collect();
    assert_eq!(
        names,
        [
            "com.apple.system.opendirectoryd.libinfo",
            "com.apple.system.opendirectoryd.membership",
            "com.apple.bsd.dirhelper",
            "com.apple.system.notification_center",
            "com.apple.logd",
            "com.apple.system.logger",
        ]
    );
}

#[test]
fn no_rule_speaks_of_the_local_end_of_what_goes_out() {
    for node in parse(&text()).unwrap() {
        let shown = format!("{node:?}");
        assert!(!(shown.contains("network-outbound") && shown.contains("\"local\"")), "{shown}");
    }
}

#[test]
fn ordinary_programs_find_what_they_need() {
    let mac = Mac::with(|f| f.read("/Users/me/project/server"));
    for path in [
        "/usr/lib/dyld",
        "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation",
        "/System/Volumes/Preboot/Cryptexes/OS/System/Library/dyld/dyld_shared_cache_arm64e",
        "/private/etc/ssl/cert.pem",
        "/private/var/db/timezone/zoneinfo/Europe/Berlin",
        "/private/var/select/sh",
        "/opt/homebrew/etc/ca-certificates/cert.pem",
        "/dev/urandom",
    ] {
        assert!(mac.reads(path), "{path}");
    }
    for way in
        ["/", "/Users", "/Users/me", "/Users/me/project", "/tmp", "/var", "/etc", "/private/var"]
    {
        assert!(mac.may("file-read-metadata", way), "realpath fails at {way}");
    }
    assert!(!mac.may("file-read-metadata", "/Users/you"));
}
