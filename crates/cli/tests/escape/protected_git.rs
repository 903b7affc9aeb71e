//! Whatever git's files say, and however they are written: a hook that a command planted does not run. The real git makes
//! the projects, and commits in them afterwards; without protection it runs the hook.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::require;
use crate::support::{Finished, Run, Scratch, has_program};

/// What a command tries with a project that the user set up, and what the user does afterwards.
pub struct Case {
    pub name: &'static str,
    /// In an empty directory that is also HOME. Makes `project`.
    pub made: &'static str,
    /// In the project. `plant FILE` writes a hook.
    pub act: &'static str,
    /// Below HOME: what `act` plants. It may be there before, and harmless; `None` where it cannot.
    pub planted: Option<&'static str>,
    /// In HOME.
    pub after: &'static str,
}

const MADE: &str = "set -e
    repo() { git init -q \"$1\"; cd \"$1\"; git commit -q --allow-empty -m first; cd - >/dev/null; }
    fill() { repo project; cd project; }
    setting() { printf '[core]\\n'\"$1\"'\\n' >> .git/config; }\n";

const ACT: &str = "plant() {
        mkdir -p \"$(dirname \"$1\")\"; printf '#!/bin/sh\\n: > \"$RAN\"\\n' > \"$1\"; chmod 755 \"$1\"
    }\n";

pub const COMMIT: &str = "cd project && git commit -q --allow-empty -m second";

const fn hooks(name: &'static str, made: &'static str) -> Case {
    Case {
        name,
        made,
        act: "plant .githooks/pre-commit",
        planted: Some("project/.githooks/pre-commit"),
        after: COMMIT,
    }
}

const CASES: &[Case] = &[
    hooks("a home", "fill; git config core.hooksPath '~/project/.githooks'"),
    hooks("a comment after a tab", "fill; setting 'hooksPath = .githooks\\t# ours'"),
    hooks("a comment without a blank", "fill; setting 'hooksPath = .githooks;ours'"),
    hooks("a line that goes on", "fill; setting 'hooksPath = .git\\\\\\nhooks'"),
    hooks("quotes in the middle", "fill; setting 'hooksPath = .git\"ho\"oks'"),
    hooks("on the line of its section", "fill; printf '[Core]hookspath=.githooks\\n' >> .git/config"),
    hooks("carriage returns", "fill; setting 'hooksPath = .githooks\\r'"),
    hooks("the last of several", "fill; setting 'hooksPath = a\\nhooksPath = .githooks'"),
    hooks(
        "an included file",
        "fill; git config include.path ../more; printf '[core]hooksPath=.githooks' > more",
    ),
    hooks(
        "a file included twice over, on a condition",
        "fill; printf '[includeIf \"gitdir:**\"]\\n\\tpath = ~/one\\n' >> .git/config
         printf '[include]path=project/two' > ../one; printf '[core]hooksPath=.githooks' > two",
    ),
    hooks("the user's own settings", "fill; git config --global core.hooksPath .githooks"),
    hooks(
        "the user's other settings",
        "fill; mkdir -p ../.config/git; printf '[core]hooksPath=.githooks' > ../.config/git/config",
    ),
    hooks(
        "settings by a link",
        "fill; setting 'hooksPath = .githooks'; mv .git/config mine; ln -s ../mine .git/config",
    ),
    hooks(
        "settings of a work tree alone",
        "fill; git config extensions.worktreeConfig true
         git config --worktree core.hooksPath .githooks",
    ),
    hooks(
        "a git directory elsewhere",
        "git init -q --separate-git-dir away project; cd project; git config core.hooksPath .githooks",
    ),
    hooks(
        "a link to a file that leads elsewhere",
        "git init -q --separate-git-dir away project; cd project; git config core.hooksPath .githooks
         mv .git real; ln -s real .git",
    ),
    hooks(
        "a project that is a linked work tree",
        "repo main; cd main; git config core.hooksPath .githooks; git worktree add -q ../project",
    ),
    Case {
        name: "a linked work tree in the project",
        made: "fill; git config core.hooksPath .githooks; git worktree add -q side",
        act: "plant side/.githooks/pre-commit",
        planted: Some("project/side/.githooks/pre-commit"),
        after: "cd project/side && git commit -q --allow-empty -m second",
    },
    Case {
        name: "a submodule",
        made: "repo other; fill; git -c protocol.file.allow=always submodule --quiet add ../other sub
            git -C sub config core.hooksPath .githooks",
        act: "plant sub/.githooks/pre-commit",
        planted: Some("project/sub/.githooks/pre-commit"),
        after: "cd project/sub && git commit -q --allow-empty -m second",
    },
    Case {
        name: "a repository that begins above",
        made: "git init -q .; mkdir project; git config core.hooksPath project/hooks",
        act: "plant hooks/pre-commit",
        planted: Some("project/hooks/pre-commit"),
        after: "git commit -q --allow-empty -m second",
    },
    Case {
        name: "hooks of a repository above that are a link",
        made: "git init -q .; mkdir project; rm -rf .git/hooks; ln -s ../project/hooks .git/hooks",
        act: "plant hooks/pre-commit",
        planted: Some("project/hooks/pre-commit"),
        after: "git commit -q --allow-empty -m second",
    },
    Case {
        name: "hooks in the work tree itself",
        made: "fill; git config core.hooksPath '~/project'",
        act: "plant pre-commit",
        planted: Some("project/pre-commit"),
        after: COMMIT,
    },
    Case {
        name: "husky",
        made: "fill; git config core.hooksPath .husky/_; mkdir -p .husky/_
            printf '#!/bin/sh\\n. \"$(dirname \"$0\")/h\"\\n' > .husky/_/pre-commit
            printf 'h=$(dirname \"$(dirname \"$0\")\")/pre-commit; [ ! -f \"$h\" ] || sh -e \"$h\"' \
            > .husky/_/h; chmod +x .husky/_/pre-commit",
        act: "plant .husky/pre-commit",
        planted: Some("project/.husky/pre-commit"),
        after: COMMIT,
    },
    Case {
        name: "a link on the way that was there",
        made: "fill; git config core.hooksPath tools/hooks; mkdir -p real/hooks; ln -s real tools",
        act: "rm tools; plant tools/hooks/pre-commit",
        planted: None,
        after: COMMIT,
    },
    Case {
        name: "a link on the way that is new",
        made: "fill; git config core.hooksPath .githooks",
        act: "plant ../second/pre-commit; ln -s ../second .githooks",
        planted: None,
        after: COMMIT,
    },
    Case {
        name: "a new work tree whose shared directory has a blank at its end",
        made: "fill",
        act: "w=.git/worktrees; mkdir -p side $w/x \"$w/.. \"
            ln -s ../../objects \"$w/.. /objects\"; ln -s ../../refs \"$w/.. /refs\"
            cp .git/config \"$w/.. /config\"; plant \"$w/.. /hooks/pre-commit\"
            cp .git/HEAD $w/x/HEAD; printf '../.. \\n' > $w/x/commondir
            echo \"$PWD/side/.git\" > $w/x/gitdir; echo \"gitdir: $PWD/$w/x\" > side/.git",
        planted: None,
        after: "cd project/side && git commit -q --allow-empty -m second",
    },
    Case {
        name: "a new work tree that the repository does not know",
        made: "fill; git config core.hooksPath .githooks",
        act: "mkdir -p side .git/worktrees/x; echo \"gitdir: $PWD/.git/worktrees/x\" > side/.git
            cp .git/HEAD .git/worktrees/x; echo ../.. > .git/worktrees/x/commondir
            echo /nowhere/.git > .git/worktrees/x/gitdir; plant side/.githooks/pre-commit",
        planted: None,
        after: "cd project/side && git commit -q --allow-empty -m second",
    },
    Case {
        name: "a git directory that is closed at the end",
        made: "fill; git config core.hooksPath .githooks",
        act: "plant .githooks/pre-commit; chmod 0 .git",
        planted: Some("project/.githooks/pre-commit"),
        after: "chmod 700 project/.git && cd project && git commit -q --allow-empty -m second",
    },
    Case {
        name: "included settings behind a directory that is closed at the end",
        made: "fill; git config include.path ../more/settings; mkdir more
            printf '[core]hooksPath=.githooks' > more/settings",
        act: "plant .githooks/pre-commit; chmod 0 more",
        planted: Some("project/.githooks/pre-commit"),
        after: "chmod 700 project/more && cd project && git commit -q --allow-empty -m second",
    },
    Case {
        name: "a program that turns files into text",
        made: "fill; git config diff.x.textconv 'sh tools/text -v'; echo '*.x diff=x' > .gitattributes
            echo 1 > a.x; git add .; git commit -qm x; echo 2 > a.x",
        act: "plant tools/text",
        planted: Some("project/tools/text"),
        after: "cd project && git diff > /dev/null",
    },
    Case {
        name: "a filter from the user's own settings",
        made: "fill; echo '*.x filter=x' > .gitattributes; echo 1 > a.x
            git config --global filter.x.clean '\"$(git rev-parse --show-toplevel)\"/tools/clean'",
        act: "plant tools/clean",
        planted: Some("project/tools/clean"),
        after: "cd project && git add .",
    },
    Case {
        name: "a watcher",
        made: "fill; git config core.fsmonitor tools/watch",
        act: "plant tools/watch",
        planted: Some("project/tools/watch"),
        after: "cd project && git status > /dev/null",
    },
    Case {
        name: "templates of new repositories",
        made: "fill; git config --global init.templateDir '~/project/template'",
        act: "plant template/hooks/post-checkout",
        planted: Some("project/template/hooks/post-checkout"),
        after: "git clone -q project copy && cd copy && git checkout -qb other",
    },
];

/// A shell with the real git, as the user has it.
fn user(home: &Path, script: &str) -> Finished {
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("RAN", home.join("ran"))
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .output()
        .unwrap();
    Finished::new(output.status.code().unwrap_or(-1), output.stdout, &output.stderr)
}

fn hostile(home: &Path, flags: &[&str], act: &str) -> Finished {
    let project = home.join("project");
    let second = home.join("second");
    fs::create_dir_all(&second).unwrap();
    let run = Run::new().env("HOME", home).without_env("XDG_CONFIG_HOME").cwd(&project);
    let run = run.write(&project).write(&second);
    let run = flags.iter().fold(run, |run, flag| run.arg(flag));
    run.shell(&format!("{{ {ACT} {act}\n}} 2>/dev/null; true")).run()
}

/// Whether the hook ran that a command planted.
fn runs(case: &Case, flags: &[&str], was_there: bool) -> (bool, String) {
    let scratch = Scratch::new();
    let home = scratch.path().canonicalize().unwrap();
    user(&home, &format!("{MADE} {}", case.made)).code_is(0);
    if was_there && let Some(planted) = case.planted {
        let planted = scratch.file(planted, "#!/bin/sh\ncat > /dev/null\n");
        user(&home, &format!("chmod 755 {}", planted.display())).code_is(0);
    }
    let acted = hostile(&home, flags, case.act);
    acted.code_is(0);
    let after = user(&home, case.after);
    (home.join("ran").exists(), format!("{acted}\n{after}"))
}

#[test]
fn no_hook_runs_that_a_command_planted() {
    require!("userns");
    none_runs(CASES);
}

pub fn none_runs(cases: &[Case]) {
    if !has_program("git") {
        return;
    }
    let mut failed = Vec::new();
    for case in cases {
        let ways: &[bool] = if case.planted.is_some() { &[false, true] } else { &[false] };
        for &was_there in ways {
            let (ran, told) = runs(case, &[], was_there);
            assert!(ran, "{}, there before: {was_there}: the control\n{told}", case.name);
            let (ran, told) = runs(case, &["--protect"], was_there);
            if ran {
                println!("{told}");
                failed.push((case.name, was_there));
            }
        }
    }
    assert!(failed.is_empty(), "hooks ran (and whether there was one before): {failed:#?}");
}

/// What git does not understand, we do not understand either: the run does not start. A directory that only looks like git's is closed
/// as a whole.
#[test]
fn settings_that_git_does_not_understand_stop_the_run() {
    require!("userns");
    if !has_program("git") {
        return;
    }
    for (made, file) in [
        ("fill; printf '[core' >> .git/config", "project/.git/config"),
        ("fill; git config include.path ../more; printf '\"' > more", "project/.git/../more"),
        ("fill; git config include.path ../.git/config", "project/.git/"),
        ("fill; printf 'x = \\\\q' > ../.gitconfig", ".gitconfig"),
        (
            "repo main; cd main; git worktree add -q ../project; echo = > .git/config",
            "main/.git/config",
        ),
    ] {
        let scratch = Scratch::new();
        let home = scratch.path().canonicalize().unwrap();
        user(&home, &format!("{MADE} {made}")).code_is(0);
        user(&home, "cd project && git status").code_is(128);
        let stopped = hostile(&home, &["--protect"], "echo started");
        stopped.code_is(125);
        assert!(stopped.stderr.contains(file), "{made}\n{stopped}");
        assert_eq!(hostile(&home, &[], "echo started").text(), "started\n", "{made}");
    }
    let scratch = Scratch::new();
    let home = scratch.path().canonicalize().unwrap();
    user(&home, &format!("{MADE} fill; git init -q --bare tests/x; echo = > tests/x/config"))
        .code_is(0);
    let acted = hostile(
        &home,
        &["--protect"],
        "echo x > tests/x/description; echo x > tests/y; cat tests/y",
    );
    acted.code_is(0);
    assert_eq!(acted.text(), "x\n");
    assert_ne!(fs::read_to_string(home.join("project/tests/x/description")).unwrap(), "x\n");
    // git itself would wait for a writer.
    let piped = Scratch::new();
    let at = piped.path().canonicalize().unwrap();
    user(&at, &format!("{MADE} fill; rm .git/config; mkfifo .git/config")).code_is(0);
    hostile(&at, &["--protect"], "echo started").code_is(125);
    user(&at, "cd project; rm .git/config; git init -q; mkfifo ../more; printf '[include]path=../../more' >> .git/config")
        .code_is(0);
    let stopped = hostile(&at, &["--protect"], "echo started");
    stopped.code_is(125);
    let told =
        "git reads settings from it, and it is no regular file; take it out of your git settings";
    assert!(stopped.stderr.contains(told), "{stopped}");
    // Who may change the settings anyway is not stopped by them.
    user(&home, "echo = > project/.git/config").code_is(0);
    let config = home.join("project/.git/config");
    let flags = ["--protect", "--allow-write", config.to_str().unwrap()];
    hostile(&home, &flags, "echo > .git/config").code_is(0);
    assert_eq!(fs::read_to_string(config).unwrap(), "\n");
}

/// What a new link leads to is the user's: the link goes, and nothing else.
#[test]
fn what_a_new_link_leads_to_is_not_removed() {
    require!("userns");
    if !has_program("git") {
        return;
    }
    let scratch = Scratch::new();
    let home = scratch.path().canonicalize().unwrap();
    user(
        &home,
        &format!("{MADE} fill; git config core.hooksPath .githooks; mkdir src; echo x > src/a"),
    )
    .code_is(0);
    let acted = hostile(&home, &["--protect"], "ln -s src .githooks; ln -s src .zed");
    let project = home.join("project");
    assert!(project.join(".githooks").symlink_metadata().is_err(), "{acted}");
    assert!(project.join(".zed").symlink_metadata().is_err(), "{acted}");
    assert_eq!(fs::read_to_string(project.join("src/a")).unwrap(), "x\n", "{acted}");
}
