//! The test plan of the seed, row by row. The two on fallback modes are about the plan.

use mcp_sandbox::macos::{self, MacFacts, Step};
use mcp_sandbox::{Control, Fact, Intent};

use crate::evaluator::{End, Question};
use crate::support::{Mac, PROJECT, policy, profile, request};

#[test]
fn read_file_inside_sandbox_root() {
    assert!(Mac::with(|f| f.read(PROJECT)).reads("/Users/me/project/src/main.rs"));
}

#[test]
fn read_file_outside_sandbox_root() {
    let mac = Mac::with(|f| f.read(PROJECT));
    for path in
        ["/Users/me/.ssh/id_rsa", "/Users/me/notes.txt", "/Users/me/projects/x", "/private/tmp/x"]
    {
        assert!(!mac.may("file-read-data", path) && !mac.may("file-read-metadata", path), "{path}");
    }
}

#[test]
fn write_file_inside_sandbox_root() {
    let mac = Mac::with(|f| f.write(PROJECT));
    assert!(
        mac.writes("/Users/me/project/src/new.rs") && mac.moves("/Users/me/project/src/new.rs")
    );
}

#[test]
fn write_file_outside_sandbox_root() {
    let mac = Mac::with(|f| f.write(PROJECT));
    for path in ["/Users/me/.zshrc", "/Users/me/x", "/usr/local/bin/node", "/private/tmp/x", "/x"] {
        assert!(!mac.changes(path), "{path}");
    }
    let mac = Mac::with(|f| f.read(PROJECT));
    assert!(!mac.changes("/Users/me/project/src/main.rs"), "read is not write");
}

#[test]
fn cd_home_and_ls() {
    let mac = Mac::with(|f| f.write(PROJECT));
    // Its name is on the way to the project; what is in it stays unknown.
    assert!(mac.may("file-read-metadata", "/Users/me"));
    assert!(!mac.may("file-read-data", "/Users/me"));
    assert!(!mac.may("file-read-metadata", "/Users/me/Documents"));
}

#[test]
fn cargo_build_inside_project() {
    let home = "/Users/me/.rustup";
    let facts = MacFacts {
        rustup: Some((home.into(), "/Users/me/.cargo/bin".into())),
        ..MacFacts::usual()
    };
    let plan = macos::plan(&request(policy(|f| f.write(PROJECT))), &facts);
    let mac = Mac::under(profile(&plan));
    for program in [
        "/Users/me/.cargo/bin/cargo",
        "/Users/me/.rustup/toolchains/stable-aarch64-apple-darwin/bin/rustc",
        "/Library/Developer/CommandLineTools/usr/bin/clang",
        "/usr/bin/cc",
        "/bin/sh",
        "/opt/homebrew/bin/cargo",
        "/usr/local/bin/cargo",
        "/opt/local/bin/cargo",
        "/nix/store/abc-rust/bin/cargo",
        "/Users/me/project/target/debug/build/x/build-script-build",
    ] {
        assert!(mac.executes(program), "{program}");
    }
    assert!(mac.reads("/Users/me/.rustup/settings.toml"));
    assert!(mac.writes("/Users/me/project/target/debug/x"));
    assert!(mac.asks(Question::new("process-fork")));
    assert!(!mac.reads("/Users/me/.cargo/credentials.toml"), "the registry token");
    let variables = plan.steps.iter().find_map(|planned| match &planned.step {
        Step::Environment { set } => Some(set),
        _ => None,
    });
    assert!(variables.unwrap().contains(&("RUSTUP_HOME".to_owned(), home.to_owned())));
}

#[test]
fn curl_with_network_blocked() {
    let mac = Mac::with(|f| f.write(PROJECT));
    assert!(mac.executes("/usr/bin/curl"), "it starts, and gets nowhere");
    for to in [
        End::ip("203.0.113.5", 443),
        End::ip("127.0.0.1", 8080),
        End::ip("::1", 8080),
        End::ip("8.8.8.8", 53),
        End::Unix("/private/var/run/mDNSResponder".to_owned()),
    ] {
        assert!(!mac.asks(Question::outbound(to.clone())), "{to:?}");
    }
}

fn without_seatbelt() -> MacFacts {
    let why = "/usr/bin/sandbox-exec is missing".to_owned();
    MacFacts { seatbelt: Fact::Fails { why }, ..MacFacts::usual() }
}

/// With these gaps the command line asks, or gives the override where no person can be asked
/// (`escape::report`, on every system).
#[test]
fn sandbox_exec_unavailable_and_fallback_prompt() {
    let plan = macos::plan(&request(policy(|f| f)), &without_seatbelt());
    let boundaries: Vec<Control> =
        plan.controls.boundary_gaps().map(|(control, _)| control).collect();
    for control in [Control::Filesystem, Control::Network, Control::ProcessIsolation] {
        assert!(boundaries.contains(&control), "{control}");
        let Intent::Unavailable { why, remedy } = &plan.controls[&control] else {
            panic!("{control}: {:?}", plan.controls[&control])
        };
        assert!(why.contains("sandbox-exec is missing") && !remedy.is_empty());
    }
}

#[test]
fn sandbox_exec_unavailable_and_fallback_deny() {
    let plan = macos::plan(&request(policy(|f| f)), &without_seatbelt());
    assert!(plan.controls.boundary_gaps().next().is_some(), "which stops the run");
    // And a run that is started all the same claims nothing that it has not.
    assert!(
        !plan.steps.iter().any(|p| matches!(p.step, Step::Seatbelt { .. } | Step::Refused { .. }))
    );
    assert!(plan.steps.iter().any(|p| matches!(p.step, Step::Limit { .. })));
}

#[test]
fn profile_generation_with_multiple_roots() {
    let mac = Mac::with(|f| {
        f.read("/Users/me/a").read("/Users/me/b").write("/Users/me/c").write("/Volumes/Data/d")
    });
    for path in ["/Users/me/a/x", "/Users/me/b/x", "/Users/me/c/x", "/Volumes/Data/d/x"] {
        assert!(mac.reads(path), "{path}");
    }
    assert!(mac.writes("/Users/me/c/x") && mac.writes("/Volumes/Data/d/x"));
    assert!(!mac.changes("/Users/me/a/x") && !mac.changes("/Users/me/b/x"));
    assert!(!mac.reads("/Users/me/e/x") && !mac.reads("/Volumes/Data/e"));
}

#[test]
fn profile_generation_with_special_chars_in_path() {
    for odd in [
        "a b", "a\"b", "a\\b", "a(b", "a)b", "a\nb", "a;b", "ünï", "日本", "a'b", "#\"x", "$(x)",
        "*",
    ] {
        let root = format!("/Users/me/{odd}");
        let mac = Mac::with(|f| f.write(&root).deny("**/.env"));
        assert!(mac.reads(&format!("{root}/x")) && mac.writes(&format!("{root}/x")), "{odd}");
        assert!(!mac.reads(&format!("{root}/y/.env")), "{odd}");
        assert!(!mac.reads("/Users/me/other"), "{odd}");
    }
}
