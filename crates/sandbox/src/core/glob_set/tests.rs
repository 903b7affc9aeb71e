use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use mcp_policy::glob::parse;

fn set(patterns: &[String]) -> GlobSet {
    let globs = patterns.iter().enumerate().flat_map(|(rule, pattern)| {
        parse(Path::new(pattern)).unwrap().into_iter().map(move |glob| (rule, glob))
    });
    GlobSet::new(globs.collect())
}

/// The first rule that denies the path or something above it, on the way down from `/`.
fn followed(set: &GlobSet, path: &Path) -> Option<usize> {
    let all: Vec<_> =
        set.iter().filter_map(|(number, _)| set.descend(number, Path::new("")).ok()).collect();
    let mut position = set.joined(&all);
    for name in path.iter().skip(1) {
        if let Some(rule) = position.denies(name.as_encoded_bytes()) {
            return Some(rule);
        }
        position = set.below(&position, name.as_encoded_bytes());
    }
    None
}

fn matches(tail: &[Part], names: &[&[u8]]) -> bool {
    match (tail, names) {
        ([], []) => true,
        ([Part::AnyDepth, rest @ ..], _) => {
            (0..=names.len()).any(|skipped| matches(rest, &names[skipped..]))
        }
        ([part, rest @ ..], [name, names @ ..]) => part.matches(name) && matches(rest, names),
        _ => false,
    }
}

/// The same without states: every glob against the path and all above it.
fn naive(set: &GlobSet, path: &Path) -> bool {
    path.ancestors().any(|path| {
        let names: Vec<_> = path.iter().skip(1).map(|name| name.as_encoded_bytes()).collect();
        set.iter().any(|(_, glob)| matches(&glob.tail, &names))
    })
}

#[test]
fn a_position_knows_when_only_names_are_left() {
    let set = set(&["/*/.git/hooks".to_owned(), "/*/.env".to_owned()]);
    let top = set
        .joined(&[set.descend(0, Path::new("")).unwrap(), set.descend(1, Path::new("")).unwrap()]);
    assert_eq!(set.names(&top), None);
    let below = set.below(&top, b"project");
    assert_eq!(set.names(&below), Some(vec![&b".git"[..], b".env"]));
    assert_eq!(below.denies(b".env"), Some(1));
    assert!(set.below(&below, b"src").is_dead());
    assert!(set.descend(1, Path::new("project/.env/x")).is_err_and(|found| found == (2, 1)));
}

/// Globs that have no literal directory of their own, so that all start at `/`.
fn pattern() -> impl Strategy<Value = String> {
    let names = select(&["a", "b", "*", "**", "?b", "[!a]", ".a"][..]);
    (select(&["**", "/*", "/**", "/?"][..]), proptest::collection::vec(names, 0..4))
        .prop_map(|(start, names)| [vec![start], names].concat().join("/"))
}

fn path() -> impl Strategy<Value = PathBuf> {
    proptest::collection::vec(select(&["a", "b", "ab", ".a"][..]), 1..6)
        .prop_map(|names| PathBuf::from("/").join(names.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn following_is_what_the_naive_way_says(
        patterns in proptest::collection::vec(pattern(), 1..4),
        path in path(),
    ) {
        let set = set(&patterns);
        prop_assert_eq!(followed(&set, &path).is_some(), naive(&set, &path));
    }
}
