use std::fs;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::unix::fixture::Fixture;

fn rules(entries: &[PathBuf]) -> Vec<Sourced<PathBuf>> {
    let origin = || Origin::CommandLine { flag: "--deny".to_owned() };
    entries.iter().map(|entry| Sourced::new(entry.clone(), origin())).collect()
}

fn directory(path: &Path) -> Place {
    Place { path: path.to_owned(), kind: PlaceKind::Directory }
}

/// What is found for these rules in a granted directory.
fn found(grant: &Path, entries: &[PathBuf]) -> Vec<(PathBuf, DeniedKind)> {
    let found = find(&rules(entries), &[&directory(grant)], &[]).unwrap();
    found.into_iter().map(|denied| (denied.path, denied.kind)).collect()
}

#[test]
fn paths_are_looked_up_wherever_they_are() {
    let f = Fixture::new();
    let file = f.file("a/file", "");
    let real = f.directory("real");
    f.link("way", "real");
    let below = f.file("real/below", "");
    let outside = f.file("outside/file", "");
    for (entry, expected) in [
        (file.clone(), vec![(file.clone(), DeniedKind::File)]),
        (f.path("a/../a/file"), vec![(file, DeniedKind::File)]),
        (f.path("way/below"), vec![(below, DeniedKind::File)]),
        (real.clone(), vec![(real, DeniedKind::Directory)]),
        (outside.clone(), vec![(outside, DeniedKind::File)]),
        (f.path("missing"), vec![]),
        (f.path("a/file/below"), vec![]),
    ] {
        assert_eq!(found(&f.path("a"), &[entry]), expected);
    }
}

#[test]
fn a_link_is_denied_with_what_it_leads_to() {
    let f = Fixture::new();
    let target = f.file("a/target", "");
    let link = f.link("a/sub/.env", "../target");
    let dangling = f.link("a/dangling/.env", "nowhere");
    let expected = vec![
        (dangling, DeniedKind::Link),
        (link.clone(), DeniedKind::Link),
        (target.clone(), DeniedKind::File),
    ];
    assert_eq!(found(&f.path("a"), &["**/.env".into()]), expected);
    let by_name = vec![(link.clone(), DeniedKind::Link), (target, DeniedKind::File)];
    assert_eq!(found(&f.path("a"), &[link]), by_name);
}

#[test]
fn globs_are_searched_in_grants_only_and_links_not_followed() {
    let f = Fixture::new();
    let hooks = f.directory("a/b/.git/hooks");
    let env = f.file("a/b/c/.env", "");
    f.file("outside/.env", "");
    f.link("a/way", "../outside");
    let rules = ["**/.env".into(), "**/.git/hooks".into()];
    let expected = vec![(hooks, DeniedKind::Directory), (env, DeniedKind::File)];
    assert_eq!(found(&f.path("a"), &rules), expected);
}

#[test]
fn a_literal_directory_in_front_of_a_glob_is_resolved() {
    let f = Fixture::new();
    let key = f.file("real/x.key", "");
    f.file("real/sub/y.key", "");
    f.file("real/x.pem", "");
    f.link("way", "real");
    for entry in [f.path("way/*.key"), f.path("real/*.key"), f.path("real/../real/*.key")] {
        assert_eq!(found(&f.path("real"), &[entry]), vec![(key.clone(), DeniedKind::File)]);
    }
    assert_eq!(found(&f.path("real"), &[f.path("nowhere/*.key")]), vec![]);
}

#[test]
fn an_entry_is_also_the_file_of_that_very_name() {
    let f = Fixture::new();
    let star = f.file("a/*.key", "");
    let class = f.file("a/[x]", "");
    let x = f.file("a/x", "");
    let expected = vec![(class, DeniedKind::File), (x, DeniedKind::File)];
    assert_eq!(found(&f.path("a"), &[f.path("a/[x]")]), expected);
    assert_eq!(found(&f.path("a"), &[f.path("a/[*].key")]), vec![(star, DeniedKind::File)]);
}

#[test]
fn a_rule_that_matches_a_grant_or_above_it_denies_that() {
    let f = Fixture::new();
    let grant = f.directory("project/grant");
    f.file("project/grant/grant", "");
    for (entry, denied) in [
        ("**/grant".into(), &grant),
        (f.path("project/g*"), &grant),
        (f.path("pro*"), &f.path("project")),
        (f.path("project"), &f.path("project")),
    ] {
        assert_eq!(found(&grant, &[entry]), vec![(denied.clone(), DeniedKind::Directory)]);
    }
    let file = f.file("file.pem", "");
    let place = Place { path: file.clone(), kind: PlaceKind::File };
    let found = find(&rules(&["**/*.pem".into()]), &[&place], &[]).unwrap();
    assert_eq!(found, [Denied { path: file, kind: DeniedKind::File, rule: 0 }]);
}

#[test]
fn what_lies_below_another_is_left_out() {
    let f = Fixture::new();
    let outer = f.directory("a/.git");
    f.directory("a/.git/hooks");
    f.file("a/.git/.env", "");
    let entries = ["**/.git/hooks".into(), outer.clone(), "**/.env".into()];
    assert_eq!(found(&f.path("a"), &entries), vec![(outer, DeniedKind::Directory)]);
}

#[test]
fn the_system_is_searched_only_by_rules_that_name_it() {
    let usr = directory(Path::new("/usr/bin"));
    let anywhere = rules(&["**/sh".into()]);
    assert_eq!(find(&anywhere, &[], &[&usr]).unwrap(), []);
    let granted = find(&anywhere, &[&usr], &[]).unwrap();
    assert!(granted.iter().any(|denied| denied.path == Path::new("/usr/bin/sh")), "{granted:?}");
    let named = find(&rules(&["/usr/bin/s[h]".into(), "/usr/*/s[h]".into()]), &[], &[]).unwrap();
    assert!(named.iter().any(|denied| denied.path == Path::new("/usr/bin/sh")), "{named:?}");
}

#[test]
fn more_than_can_be_mounted_is_an_error() {
    let f = Fixture::new();
    for number in 0..=MOST {
        f.file(format!("a/{number}.key"), "");
    }
    let grant = directory(&f.path("a"));
    let error = find(&rules(&["**/*.key".into()]), &[&grant], &[]).unwrap_err().to_string();
    assert!(error.contains("more than 4096 paths"), "{error}");
    // In a directory that is denied itself nothing is counted.
    let both = rules(&["**/*.key".into(), f.path("a")]);
    assert_eq!(find(&both, &[&grant], &[]).unwrap().len(), 1);
}

#[test]
fn a_directory_that_cannot_be_listed_is_denied_as_a_whole() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let f = Fixture::new();
    let closed = f.directory("a/closed/below");
    let closed = closed.parent().unwrap();
    f.file("a/closed/.env", "");
    let expected = vec![(closed.to_owned(), DeniedKind::Directory)];
    for mode in [0o000, 0o300] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(closed, fs::Permissions::from_mode(mode)).unwrap();
        let found_now = found(&f.path("a"), &["**/.env".into()]);
        let named = found(&f.path("a"), &[closed.join("x/.env")]);
        fs::set_permissions(closed, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(found_now, expected, "{mode:o}");
        assert_eq!(named, if mode == 0 { expected.clone() } else { vec![] }, "{mode:o}");
    }
}

#[test]
fn rules_that_mean_nothing_name_themselves() {
    let f = Fixture::new();
    let grant = directory(&f.home());
    let error = find(&rules(&["/srv/*/../x".into()]), &[&grant], &[]).unwrap_err().to_string();
    assert!(error.starts_with("--deny /srv/*/../x: has .. behind a wildcard"), "{error}");
}

/// Everything below a directory, in the plainest way.
fn all_below(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(all_below(&path));
        }
        all.push(path);
    }
    all
}

fn name() -> impl Strategy<Value = &'static str> {
    select(&["a", "b", ".env", ".git", "hooks", "x.key"][..])
}

fn pattern() -> impl Strategy<Value = &'static str> {
    select(&["**/.env", "**/.git/hooks", "**/*.key", "**/a/?", "**/b/**/.env", "**/.git/**"][..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_search_finds_what_a_look_at_everything_finds(
        files in proptest::collection::vec(proptest::collection::vec(name(), 1..5), 0..12),
        patterns in proptest::collection::vec(pattern(), 1..4),
    ) {
        let f = Fixture::new();
        let grant = f.directory("grant");
        for file in files {
            // A file and a directory may want the same name; the first has it.
            let path = grant.join(file.iter().collect::<PathBuf>());
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.exists() {
                fs::write(path, "").unwrap();
            }
        }
        let globs = patterns.iter().flat_map(|pattern| glob::parse(Path::new(pattern)).unwrap());
        let globs = GlobSet::new(globs.map(|glob| (0, glob)).collect());
        let is_denied = |path: &Path| globs.iter().any(|(number, _)| {
            globs.descend(number, path.strip_prefix("/").unwrap()).is_err()
        });
        let mut expected = all_below(&grant);
        expected.retain(|path| is_denied(path) && !is_denied(path.parent().unwrap()));
        expected.sort();
        let patterns: Vec<_> = patterns.iter().map(PathBuf::from).collect();
        let found: Vec<_> = found(&grant, &patterns).into_iter().map(|(path, _)| path).collect();
        prop_assert_eq!(found, expected);
    }
}
