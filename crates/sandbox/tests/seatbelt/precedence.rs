//! The evaluator itself: cases by hand of which rule decides, and of traps that others fell into.

use std::collections::BTreeMap;

use crate::evaluator::{End, Model, Node, Question, Rules, parse};

fn rules(text: &str) -> Rules {
    Rules::new(&format!("(version 1)(deny default){text}"), &BTreeMap::new()).unwrap()
}

fn may(text: &str, operation: &str, path: &str) -> bool {
    rules(text).allows(&Question::path(operation, path))
}

#[test]
fn the_last_rule_of_an_operation_decides() {
    let allow_then_deny = r#"(allow file-read* (subpath "/a"))(deny file-read* (subpath "/a/b"))"#;
    assert!(may(allow_then_deny, "file-read-data", "/a/c"));
    assert!(!may(allow_then_deny, "file-read-data", "/a/b/c"));
    let deny_then_allow = r#"(deny file-read* (subpath "/a/b"))(allow file-read* (subpath "/a"))"#;
    assert!(may(deny_then_allow, "file-read-data", "/a/b/c"));
}

/// Why no rule of ours that closes something is without a filter: the deny of the first line stops nothing on a Mac
/// that was measured, whatever the order.
#[test]
fn the_models_differ_where_a_rule_without_a_filter_meets_one_with() {
    let exec = Question::path("process-exec", "/bin/sh");
    for text in [
        r#"(allow process-exec* (subpath "/bin"))(deny process-exec*)"#,
        r#"(deny process-exec*)(allow process-exec* (subpath "/bin"))"#,
    ] {
        assert!(rules(text).allows_under(Model::UnfilteredIsWeakest, &exec), "{text}");
    }
    let unfiltered = rules(r#"(allow process-exec* (subpath "/bin"))(deny process-exec*)"#);
    assert!(!unfiltered.allows_under(Model::LastMatch, &exec));
    let filtered =
        rules(r#"(allow process-exec* (subpath "/bin"))(deny process-exec* (subpath "/"))"#);
    assert!(!filtered.allows(&exec));
    // Also between an operation and the one that stands for it.
    let mode = Question::path("file-write-setugid", "/w/x");
    let unfiltered = rules(r#"(deny file-write-setugid)(allow file-write* (subpath "/w"))"#);
    assert!(!unfiltered.allows_under(Model::LastMatch, &mode));
    assert!(unfiltered.allows_under(Model::UnfilteredIsWeakest, &mode));
    let filtered =
        rules(r#"(deny file-write-setugid (subpath "/"))(allow file-write* (subpath "/w"))"#);
    assert!(!filtered.allows(&mode));
}

#[test]
fn subpath_of_the_root_is_everything() {
    let text = r#"(allow file-read* (subpath "/"))"#;
    for path in ["/", "/a", "/a/b"] {
        assert!(may(text, "file-read-data", path), "{path}");
    }
}

#[test]
fn a_more_particular_operation_decides_first_wherever_it_stands() {
    // The trap: the deny looks as if it closed everything, and leaves the data open.
    let trap = r#"(allow file-read-data (subpath "/a"))(deny file-read* (subpath "/a/secret"))"#;
    assert!(may(trap, "file-read-data", "/a/secret"));
    assert!(!may(trap, "file-read-metadata", "/a/secret"));
    let right = r#"(allow file-read-data (subpath "/a"))
                   (deny file-read* file-read-data (subpath "/a/secret"))"#;
    assert!(!may(right, "file-read-data", "/a/secret"));
    let hold = r#"(deny file-write-unlink (literal "/a/b"))(allow file-write* (subpath "/a"))"#;
    assert!(!may(hold, "file-write-unlink", "/a/b"));
    assert!(may(hold, "file-write-data", "/a/b"));
}

#[test]
fn what_matches_nothing_goes_up_to_the_default() {
    let text = r#"(allow file-read-metadata (literal "/x"))(allow file-read* (subpath "/a"))"#;
    assert!(may(text, "file-read-metadata", "/a/b"));
    assert!(may(text, "file-read-metadata", "/x"));
    assert!(!may(text, "file-read-data", "/x"));
    assert!(!may(text, "file-write-data", "/a/b"));
    assert!(may("(allow file*)", "file-write-unlink", "/"));
    assert!(may("(allow default)", "network-outbound", "/"));
}

#[test]
fn deny_default_leaves_some_operations_open() {
    for operation in
        ["file-map-executable", "process-info-pidinfo", "nvram-get", "iokit-get-properties"]
    {
        assert!(may("", operation, "/a"), "{operation}");
        assert!(may("(deny file*)(deny process*)", operation, "/a"), "{operation}");
    }
    assert!(!may("(deny file-map-executable)", "file-map-executable", "/a"));
    assert!(!may("(deny process-info*)", "process-info-listpids", "/a"));
    assert!(!may("(deny nvram*)", "nvram-get", "/a"));
    assert!(!may("", "process-exec", "/a"));
}

#[test]
fn a_rule_without_a_filter_is_about_everything() {
    assert!(may("(allow file-read*)", "file-read-data", "/Users/me/.ssh/id_rsa"));
}

/// Every connection has a local end, so this rule on "the local side" opens the whole internet.
#[test]
fn local_ip_in_an_outbound_rule_opens_everything() {
    let trap = rules(r#"(allow network-outbound (local ip "*:*"))"#);
    assert!(trap.allows(&Question::outbound(End::ip("203.0.113.5", 443))));
    let right = rules(r#"(allow network-outbound (remote ip "localhost:8080"))"#);
    assert!(!right.allows(&Question::outbound(End::ip("203.0.113.5", 8080))));
    assert!(!right.allows(&Question::outbound(End::ip("127.0.0.1", 22))));
    assert!(right.allows(&Question::outbound(End::ip("127.0.0.1", 8080))));
    assert!(right.allows(&Question::outbound(End::ip("::1", 8080))));
}

#[test]
fn other_hosts_than_these_two_are_no_language() {
    let text = r#"(allow network-outbound (remote ip "api.example.com:443"))"#;
    assert!(Rules::new(text, &BTreeMap::new()).is_err());
}

#[test]
fn subpath_is_a_directory_and_not_a_prefix() {
    let text = r#"(allow file-read* (subpath "/a/b"))"#;
    for (path, is_in) in [("/a/b", true), ("/a/b/c", true), ("/a/bc", false), ("/a", false)] {
        assert_eq!(may(text, "file-read-data", path), is_in, "{path}");
    }
}

#[test]
fn filters_combine() {
    let text = r#"(allow file-read*
        (require-all (subpath "/a") (require-not (literal "/a/x")))
        (require-any (literal "/b") (regex #"^/c[0-9]+$")))"#;
    for (path, is_in) in
        [("/a/y", true), ("/a/x", false), ("/b", true), ("/c12", true), ("/c", false)]
    {
        assert_eq!(may(text, "file-read-data", path), is_in, "{path}");
    }
}

#[test]
fn parameters_are_text_and_never_language() {
    let evil = r#"/a")) (allow default) (deny nothing (literal "("#;
    let parameters = BTreeMap::from([("P".to_owned(), evil.to_owned())]);
    let text = r#"(version 1)(deny default)(allow file-read* (subpath (param "P")))
        (deny file-read* (regex (string-append "^" (regex-quote (param "P")) "/x$")))"#;
    let rules = Rules::new(text, &parameters).unwrap();
    assert!(rules.allows(&Question::path("file-read-data", &format!("{evil}/y"))));
    assert!(!rules.allows(&Question::path("file-read-data", &format!("{evil}/x"))));
    assert!(!rules.allows(&Question::path("file-read-data", "/a")));
    assert!(!rules.allows(&Question::path("file-write-data", "/a")));
}

#[test]
fn what_is_not_understood_is_an_error() {
    for text in [
        "(allow file-raed*)",
        "(allow file-read* (subpth \"/a\"))",
        "(allow file-read* (subpath (param \"MISSING\")))",
        "(allow file-read* (subpath \"/a\")",
        "(allow file-read* (subpath \"/a)",
        "(allow (subpath \"/a\"))",
        "(allow file-read* (regex #\"^/a{2}\"))",
        "allow",
        ")",
    ] {
        assert!(Rules::new(text, &BTreeMap::new()).is_err(), "{text}");
    }
}

#[test]
fn strings_comments_and_raw_strings() {
    let nodes = parse("; (not this)\n(a \"b\\\"c\\\\\" #\"d\\.e\") ; nor this").unwrap();
    let text = |text: &str| Node::Text(text.to_owned());
    assert_eq!(
        nodes,
        [Node::List(vec![Node::Symbol("a".to_owned()), text("b\"c\\"), text("d\\.e")])]
    );
}
