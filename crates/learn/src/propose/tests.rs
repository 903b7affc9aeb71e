use proptest::prelude::*;

use super::*;
use crate::observation::{Concern, HostSeen, VariableSeen};

const HOME: &str = "/home/ada";

fn seen(path: &str, kind: FileKind, access: Access) -> PathSeen {
    let evidence = Evidence { times: 1, first: "read_file".to_owned() };
    PathSeen { path: path.into(), same_as: None, kind, access, evidence }
}

fn file(path: &str) -> PathSeen {
    seen(path, FileKind::File, Access::Read)
}

fn proposed(paths: Vec<PathSeen>, granted: &[Grant], sensitive: Sensitive) -> Proposals {
    let seen = Observations { paths, ..Observations::default() };
    propose(&seen, &Scene { home: Some(Path::new(HOME)), sensitive, granted })
}

fn grants(proposals: &Proposals) -> Vec<String> {
    proposals.proposed.iter().map(|proposal| proposal.grant.to_string()).collect()
}

#[test]
fn twelve_files_are_their_directory() {
    let paths = (0..12).map(|at| file(&format!("/home/ada/notes/{at}.md"))).collect();
    let proposals = proposed(paths, &[], Sensitive::Withheld);
    assert_eq!(grants(&proposals), ["read /home/ada/notes"]);
    assert_eq!(proposals.proposed[0].evidence.times, 12);
    assert_eq!(proposals.proposed[0].files.len(), 12);
    let two = vec![file("/home/ada/notes/a"), file("/home/ada/notes/b")];
    assert_eq!(
        grants(&proposed(two, &[], Sensitive::Withheld)),
        ["read /home/ada/notes/a", "read /home/ada/notes/b"]
    );
}

#[test]
fn files_of_the_home_are_not_grouped_into_it() {
    let paths = (0..9).map(|at| file(&format!("/home/ada/{at}.md"))).collect();
    assert_eq!(grants(&proposed(paths, &[], Sensitive::Withheld)).len(), 9);
}

#[test]
fn a_script_brings_its_directory() {
    let project = vec![file("/home/ada/project/server.js")];
    assert_eq!(grants(&proposed(project, &[], Sensitive::Withheld)), ["read /home/ada/project"]);
    let at_home = vec![file("/home/ada/server.py")];
    assert_eq!(grants(&proposed(at_home, &[], Sensitive::Withheld)), ["read /home/ada/server.py"]);
}

#[test]
fn a_module_brings_all_modules() {
    let paths = vec![
        file("/home/ada/p/node_modules/a/package.json"),
        file("/home/ada/p/node_modules/b/node_modules/c/index.js"),
        file("/srv/venv/lib/python3.11/site-packages/x/data.txt"),
    ];
    assert_eq!(
        grants(&proposed(paths, &[], Sensitive::Withheld)),
        ["read /home/ada/p/node_modules", "read /srv/venv/lib/python3.11/site-packages"]
    );
}

#[test]
fn the_way_to_a_file_is_not_proposed() {
    let look = |path| seen(path, FileKind::Directory, Access::Look);
    let paths =
        vec![look("/home"), look("/home/ada"), look("/home/ada/notes"), file("/home/ada/notes/a")];
    let proposals = proposed(paths, &[], Sensitive::Withheld);
    assert_eq!(grants(&proposals), ["read /home/ada/notes/a"]);
    assert_eq!(proposals.withheld, []);
    // By itself it is what was wanted.
    let alone = proposed(vec![look("/home/ada/notes")], &[], Sensitive::Withheld);
    assert_eq!(grants(&alone), ["read /home/ada/notes"]);
}

#[test]
fn writing_covers_reading_and_is_not_proposed_for_the_system() {
    let paths = vec![
        seen("/srv/data", FileKind::Directory, Access::WriteEntries),
        seen("/srv/data/db", FileKind::File, Access::Write),
        file("/srv/data/x"),
        seen("/usr/lib/x", FileKind::Directory, Access::WriteEntries),
    ];
    let proposals = proposed(paths, &[], Sensitive::Withheld);
    assert_eq!(grants(&proposals), ["write /srv/data"]);
    assert_eq!(proposals.withheld[0].what, "/usr/lib/x");
}

#[test]
fn what_is_protected_is_named() {
    let paths = vec![seen("/srv/p/.git", FileKind::Directory, Access::WriteEntries)];
    let granted = [Grant::Write("/srv/p".into())];
    let proposals = proposed(paths, &granted, Sensitive::Proposed);
    assert_eq!(proposals.proposed, []);
    assert!(proposals.withheld[0].why.contains("--unprotect"));
}

#[test]
fn sensitive_things_are_named_and_proposed_only_on_request() {
    let paths = || vec![file("/home/ada/.ssh/id_rsa"), file("/proc/1/environ")];
    let withheld = proposed(paths(), &[], Sensitive::Withheld);
    assert_eq!(withheld.proposed, []);
    assert_eq!(withheld.withheld.len(), 2);
    let asked = proposed(paths(), &[], Sensitive::Proposed);
    assert_eq!(grants(&asked), ["read /home/ada/.ssh/id_rsa"]);
    assert_eq!(asked.withheld.len(), 1);
}

/// A link, a bind mount or a hard link is another name, and a directory has one too.
#[test]
fn another_name_for_credentials_opens_none() {
    let named =
        |path: &str, same_as: &str| PathSeen { same_as: Some(same_as.into()), ..file(path) };
    let key = named("/home/ada/notes/x", "/home/ada/.ssh/id_ed25519");
    let proposals = proposed(vec![key.clone()], &[], Sensitive::Withheld);
    assert_eq!(proposals.proposed, []);
    assert_eq!(proposals.withheld[0].what, "/home/ada/.ssh/id_ed25519");
    let asked = proposed(vec![key], &[], Sensitive::Proposed);
    assert_eq!(grants(&asked), ["read /home/ada/notes/x"]);
    // Nine files below another name of ~/.config do not stand for it.
    let settings = (0..9).map(|at| {
        let below = format!("app{}/{at}", at / 2);
        named(&format!("/mnt/settings/{below}"), &format!("/home/ada/.config/{below}"))
    });
    let proposals = proposed(settings.collect(), &[], Sensitive::Withheld);
    assert_eq!(proposals.proposed.len(), 9, "{proposals:?}");
    let one = vec![named("/mnt/settings/app.toml", "/home/ada/.config/app.toml")];
    let proposals = proposed(one, &[], Sensitive::Withheld);
    assert_eq!(proposals.proposed[0].directory, None);
    // The control: the same under no other name.
    let settings = (0..9).map(|at| file(&format!("/mnt/settings/app{}/{at}", at / 2)));
    let proposals = proposed(settings.collect(), &[], Sensitive::Withheld);
    assert_eq!(grants(&proposals), ["read /mnt/settings"]);
}

#[test]
fn hosts_and_variables() {
    let evidence = Evidence { times: 3, first: "fetch".to_owned() };
    let host = |to: &str| HostSeen { destination: to.to_owned(), evidence: evidence.clone() };
    let variable = |name: &str, concern| VariableSeen {
        name: name.to_owned(),
        concern,
        evidence: evidence.clone(),
    };
    let seen = Observations {
        hosts: vec![host("api.github.com:443"), host("127.0.0.1:80"), host("(holds a secret)")],
        variables: vec![
            variable("APP_MODE", None),
            variable("API_TOKEN", Some(Concern::Credential)),
            variable("LD_PRELOAD", Some(Concern::Injection)),
        ],
        ..Observations::default()
    };
    let all = |sensitive| propose(&seen, &Scene { home: None, sensitive, granted: &[] });
    let withheld = all(Sensitive::Withheld);
    assert_eq!(grants(&withheld), ["connect to api.github.com:443", "pass the variable APP_MODE"]);
    assert_eq!(withheld.withheld.len(), 4);
    assert_eq!(
        grants(&all(Sensitive::Proposed)),
        [
            "connect to api.github.com:443",
            "connect to 127.0.0.1:80",
            "pass the variable APP_MODE",
            "pass the variable LD_PRELOAD",
            "pass the secret API_TOKEN"
        ]
    );
}

fn any_path() -> impl Strategy<Value = PathSeen> {
    let root = prop_oneof![
        Just("/home/ada"),
        Just("/home/ada/.ssh"),
        Just("/home/eve"),
        Just("/srv"),
        Just("/proc"),
        Just("/")
    ];
    let access = prop_oneof![
        Just(Access::Look),
        Just(Access::Read),
        Just(Access::Write),
        Just(Access::WriteEntries),
        Just(Access::Connect)
    ];
    let kind = prop_oneof![Just(FileKind::File), Just(FileKind::Directory)];
    (root, "([a-c]/){0,3}[a-c](\\.js|\\.env)?", kind, access).prop_map(
        |(root, tail, kind, access)| {
            let path = Path::new(root).join(tail);
            seen(&path.to_string_lossy(), kind, access)
        },
    )
}

proptest! {
    #[test]
    fn nothing_sensitive_is_ever_proposed(paths in prop::collection::vec(any_path(), 0..40)) {
        let proposals = proposed(paths, &[], Sensitive::Withheld);
        for proposal in &proposals.proposed {
            let path = path_of(&proposal.grant).unwrap();
            prop_assert_eq!(path_reason(path, Some(Path::new(HOME))), None, "{:?}", path);
            let holds = ["/home/ada/.ssh", "/home/eve/x", "/proc/1"];
            prop_assert!(!holds.iter().any(|held| Path::new(held).starts_with(path)), "{:?}", path);
        }
    }

    #[test]
    fn proposals_are_sorted_minimal_and_enough(paths in prop::collection::vec(any_path(), 0..40)) {
        let proposals = proposed(paths.clone(), &[], Sensitive::Withheld);
        let all: Vec<_> = proposals.proposed.iter().map(|proposal| &proposal.grant).collect();
        prop_assert!(all.is_sorted());
        for one in &all {
            prop_assert_eq!(all.iter().filter(|other| other.covers(one)).count(), 1);
        }
        // What was wanted is given, named, or comes with something below it.
        let withheld: BTreeSet<_> = proposals.withheld.iter().map(|one| one.what.clone()).collect();
        for seen in &paths {
            let wanted = match seen.access {
                Access::Look | Access::Read => Grant::Read(seen.path.clone()),
                Access::Write | Access::WriteEntries => Grant::Write(seen.path.clone()),
                Access::Connect => Grant::Unix(seen.path.clone()),
            };
            let is_way = seen.access == Access::Look
                && all.iter().filter_map(|grant| path_of(grant)).any(|to| to.starts_with(&seen.path));
            let is_named = withheld.contains(&seen.path.display().to_string());
            prop_assert!(is_way || is_named || all.iter().any(|grant| grant.covers(&wanted)), "{:?}", seen);
        }
        // Once granted, the same observations propose nothing more.
        let granted: Vec<Grant> = all.into_iter().cloned().collect();
        prop_assert_eq!(proposed(paths, &granted, Sensitive::Withheld).proposed, vec![]);
    }
}
