//! Deny rules: what they match, in which spelling, and what they hold in place.

use mcp_sandbox::{Denied, DeniedKind, Home, Link};

use crate::support::{Mac, PROJECT, policy, request};

fn project(deny: &str) -> Mac {
    Mac::with(|f| f.write(PROJECT).deny(deny))
}

fn at(path: &str) -> String {
    format!("{PROJECT}/{path}")
}

fn is_closed(mac: &Mac, path: &str) -> bool {
    let path = at(path);
    !mac.may("file-read-data", &path)
        && !mac.may("file-read-metadata", &path)
        && !mac.changes(&path)
        && !mac.may("process-exec", &path)
        && !mac.may("file-map-executable", &path)
}

#[test]
fn a_name_is_closed_at_every_depth_now_and_later() {
    let mac = project("**/.env");
    for path in [".env", "a/.env", "a/b/c/.env", ".env/inner"] {
        assert!(is_closed(&mac, path), "{path}");
    }
    for path in ["env", ".env2", "a.env", ".envs/x", "a/.environment"] {
        assert!(mac.reads(&at(path)) && mac.writes(&at(path)), "{path}");
    }
}

#[test]
fn the_file_system_ignores_case_and_so_do_rules() {
    let mac = project("**/Secret.Key");
    for path in ["secret.key", "SECRET.KEY", "a/sEcReT.kEy"] {
        assert!(is_closed(&mac, path), "{path}");
    }
    assert!(is_closed(&project("/Users/me/PROJECT/private"), "Private/x"));
    assert!(is_closed(&project("/users/ME/project/keys/*.pem"), "Keys/A.PEM"));
}

#[test]
fn a_name_has_several_spellings() {
    for rule in ["**/\u{e9}t\u{e9}", "**/e\u{301}te\u{301}", "**/\u{c9}T\u{c9}"] {
        let mac = project(rule);
        for name in ["\u{e9}t\u{e9}", "e\u{301}te\u{301}", "\u{c9}t\u{c9}", "E\u{301}TE\u{301}"] {
            assert!(is_closed(&mac, name), "{rule} {name}");
        }
        assert!(mac.reads(&at("ete")) && mac.reads(&at("other")), "{rule}");
    }
}

#[test]
fn globs_mean_what_they_mean_on_linux() {
    for (rule, closed, open) in [
        ("**/*.pem", "a/key.pem", "a/key.pem.txt"),
        ("**/?.key", "a/x.key", "a/xyz.key"),
        ("**/?.key", "日.key", "ab.key"),
        ("**/[ab].key", "A.key", "c.key"),
        ("**/[!ab].key", "c.key", "a.key"),
        ("**/{x,y}/z", "a/y/z", "a/w/z"),
        ("/Users/me/project/*.log", "x.log", "a/x.log"),
        ("/Users/me/project/**/x.log", "a/b/x.log", "a/b/y.log"),
        ("/Users/me/project/a/**", "a/b", "b"),
        ("/Users/me/**/target", "x/target", "x/targets"),
        ("/Users/*/project/secret", "secret", "other"),
        ("**/a*b?c", "aXXbYc", "aXXbc"),
    ] {
        let mac = project(rule);
        assert!(is_closed(&mac, closed), "{rule} leaves {closed} open");
        assert!(mac.reads(&at(open)), "{rule} closes {open}");
    }
}

#[test]
fn denied_in_read_grants_kept_homes_and_the_programs_own_place() {
    let mut request = request(policy(|f| f.read("/Users/me/notes").deny("**/.env")));
    request.home = Home::Kept("/Users/me/Library/Application Support/mcp/homes/x".into());
    request.shown = vec![crate::support::directory("/Users/me/server")];
    let mac = Mac::of(&request);
    for root in
        ["/Users/me/notes", "/Users/me/server", "/Users/me/Library/Application Support/mcp/homes/x"]
    {
        assert!(mac.reads(&format!("{root}/a/x")), "{root}");
        assert!(!mac.may("file-read-data", &format!("{root}/a/.env")), "{root}");
    }
    assert!(mac.reads("/usr/lib/node_modules/x/.env"), "the system holds nothing of the user's");
}

#[test]
fn a_rule_that_names_the_system_counts_there() {
    let mac = project("/usr/share/dict");
    assert!(!mac.reads("/usr/share/dict/words") && mac.reads("/usr/share/man/x"));
}

#[test]
fn rules_are_meant_behind_the_systems_links() {
    let mac =
        Mac::with(|f| f.write("/private/tmp/project").deny("/tmp/project/secret").deny("/var/x"));
    assert!(!mac.reads("/private/tmp/project/secret/x") && mac.reads("/private/tmp/project/other"));
}

#[test]
fn rules_are_meant_behind_the_users_links() {
    let mut request =
        request(policy(|f| f.write("/Volumes/big/data").deny("/Users/me/data/*.key")));
    request.links = vec![Link { at: "/Users/me/data".into(), to: "/Volumes/big/data".into() }];
    let mac = Mac::of(&request);
    assert!(!mac.reads("/Volumes/big/data/a.key") && mac.reads("/Volumes/big/data/a.txt"));
}

/// `mv .git g && mv g/hooks h` must not work, `mv src lib` and `rm -r node_modules` must.
#[test]
fn of_a_glob_only_what_it_names_is_held() {
    let mac = project("**/.git/hooks");
    for held in [".git", "a/.git", "a/b/.GIT"] {
        assert!(!mac.moves(&at(held)), "{held}");
    }
    for free in ["a", "a/b", "src", "hooks", ".git/objects", ".git/index.lock", "a/hooks"] {
        assert!(mac.moves(&at(free)), "{free}");
    }
    let mac = project("**/.env");
    for free in ["a", "a/b", "a/.git"] {
        assert!(mac.moves(&at(free)), "{free}");
    }
    assert!(!mac.moves(&at("a/.env")));
}

#[test]
fn of_a_path_every_directory_within_the_grant_is_held() {
    let mac = project("/Users/me/project/a/b/secret");
    for held in ["a", "a/b", "A/B"] {
        assert!(!mac.moves(&at(held)), "{held}");
    }
    for free in ["b", "a/c", "a/b/other"] {
        assert!(mac.moves(&at(free)), "{free}");
    }
}

#[test]
fn of_a_glob_in_the_middle_everything_it_can_go_through_is_held() {
    let mac = project("**/keys/*/private");
    assert!(!mac.moves(&at("keys")) && !mac.moves(&at("x/keys/one")) && mac.moves(&at("x")));
    let mac = project("/Users/me/project/a/**/b");
    assert!(!mac.moves(&at("a")) && !mac.moves(&at("a/x/y")) && mac.moves(&at("c/x")));
}

/// Found at the start behind a link, so that no rule names its path.
#[test]
fn what_was_found_is_closed_and_held_by_its_path() {
    let mut request = request(policy(|f| f.write(PROJECT).deny("**/link")));
    let denied = |path: &str, kind| Denied { path: at(path).into(), kind, rule: 0 };
    request.denied =
        vec![denied("x/link", DeniedKind::Link), denied("deep/down/target", DeniedKind::File)];
    let mac = Mac::of(&request);
    assert!(is_closed(&mac, "deep/down/target") && is_closed(&mac, "x/link"));
    assert!(!mac.moves(&at("deep")) && !mac.moves(&at("deep/down")));
    assert!(mac.moves(&at("x")), "a glob finds its link wherever it goes");
}

#[test]
fn a_name_with_a_line_feed_does_not_get_around_a_rule() {
    let mac = project("**/secret");
    for path in ["a\nb/secret", "secret/x\ny", "\n/secret"] {
        assert!(is_closed(&mac, path), "{path:?}");
    }
}
