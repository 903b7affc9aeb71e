//! Protected settings: what is on the list cannot be written at the top of a project and in its git directory, there or not.

use mcp_policy::Protect;
use mcp_sandbox::{Control, DeniedKind, Guarded, Intent, Protected, Request};

use crate::support::{Mac, PROJECT, plan, policy, request};

fn at(path: &str) -> String {
    format!("{PROJECT}/{path}")
}

fn project(protect: Protect, allowed: &[&str]) -> Request {
    let mut request = request(policy(|f| f.write(PROJECT).protect(protect)));
    let place = |path: &str, kind, guarded| Protected {
        path: at(path).into(),
        kind,
        guarded,
        why: String::new(),
        id: None,
    };
    request.protected = vec![
        place(".git", DeniedKind::Directory, Guarded::InPlace),
        place(".git/hooks", DeniedKind::Directory, Guarded::ReadOnly),
        place("inner/.git", DeniedKind::Directory, Guarded::InPlace),
        place("inner/.git/config", DeniedKind::File, Guarded::ReadOnly),
    ];
    request.unprotected = allowed.iter().map(|path| at(path).into()).collect();
    request
}

#[test]
fn settings_stay_as_they_are() {
    let mac = Mac::of(&project(Protect::Usual, &[]));
    for path in [
        ".git/hooks/pre-commit",
        ".git/hooks",
        ".git/config",
        ".git/commondir",
        ".git/Config",
        "inner/.git/config",
        "inner/.git/hooks/x",
        ".vscode/tasks.json",
        ".VSCode",
        ".mcp.json",
        ".bashrc",
    ] {
        assert!(!mac.changes(&at(path)) && mac.reads(&at(path)), "{path}");
    }
    for path in
        ["src/main.rs", ".git/index", ".git/refs/heads/x", "src/.vscode/x", ".vscode2", ".env"]
    {
        assert!(mac.writes(&at(path)), "{path}");
    }
    for path in [".git", "inner", "inner/.git"] {
        assert!(!mac.moves(&at(path)), "{path}");
    }
    // The control: without it, all of that works.
    let mac = Mac::of(&project(Protect::Nothing, &[]));
    for path in [".git/hooks/pre-commit", ".git/config", ".vscode/tasks.json", ".bashrc"] {
        assert!(mac.writes(&at(path)), "{path}");
    }
    assert!(mac.moves(&at("inner")));
}

#[test]
fn exceptions_open_what_they_name() {
    let mac = Mac::of(&project(Protect::Usual, &[".git/config", ".vscode"]));
    assert!(mac.writes(&at(".git/config")) && mac.writes(&at(".vscode/x")));
    assert!(!mac.changes(&at(".idea/x")) && !mac.changes(&at(".git/hooks/x")));
}

#[test]
fn the_plan_says_how() {
    let intent = |protect| plan(&project(protect, &[])).controls[&Control::Protect].clone();
    assert!(matches!(intent(Protect::Usual), Intent::Enforce { .. }));
    assert_eq!(intent(Protect::Nothing), Intent::NotRequested);
    let mut linked = project(Protect::Usual, &[]);
    linked.other_names = vec![(at(".git/hooks/x").into(), at("y").into())];
    assert!(plan(&linked).controls[&Control::Protect].is_gap());
}
