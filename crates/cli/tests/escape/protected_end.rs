//! Protected places when the command has ended, however it did: what is new is gone, modes are what they were, and
//! no process writes any more.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use crate::protected::{project, protecting, script};
use crate::require;
use crate::support::{eventually, soon};

/// Ways to make something new that other programs act on, and what is gone afterwards.
const MADE: &[(&str, &str)] = &[
    ("mkdir .idea && echo x > .idea/workspace.xml", ".idea"),
    ("mkdir x && echo x > x/settings.json && mv x .claude", ".claude"),
    ("ln -s src .zed", ".zed"),
    ("ln -s /nowhere .cursor", ".cursor"),
    ("mkfifo .zshrc", ".zshrc"),
    ("ln src/main .profile", ".profile"),
    ("mkdir .VSCode2 && mv .VSCode2 .Devcontainer", ".Devcontainer"),
    ("echo evil > .git/commondir", ".git/commondir"),
    ("echo '[core]' > .git/config.worktree", ".git/config.worktree"),
    (
        "mkdir -p .git/worktrees/new && cd .git/worktrees/new && touch HEAD && echo /evil > commondir",
        ".git/worktrees/new/commondir",
    ),
    ("mkdir -p new/.git/hooks && echo x > new/.git/hooks/pre-commit", "new/.git/hooks"),
    (
        "mkdir -p new/.git && printf '[core]\\n\\tfsmonitor = evil\\n' > new/.git/config",
        "new/.git/config",
    ),
    (
        "mkdir -p new/.git && printf '[include]\\n\\tpath = ../x\\n' > new/.git/config",
        "new/.git/config",
    ),
    ("mkdir -p new/.git && printf '[core] bare = false\\n' > new/.git/config", "new/.git/config"),
    ("mkdir -p new/.git && ln -s ../../src/main new/.git/config", "new/.git/config"),
    (
        "mkdir -p new/.git && printf '[core]\\n' > new/.git/config && ln new/.git/config later",
        "new/.git/config",
    ),
    ("mkdir new && echo 'gitdir: ../bare.git' > new/.git", "new/.git"),
    ("mkdir new && echo 'gitdir: /tmp/evil' > new/.git", "new/.git"),
    ("mkdir new && ln -s ../bare.git new/.git", "new/.git"),
    (
        "mkdir -p new/objects new/refs new/hooks && touch new/HEAD new/hooks/post-checkout",
        "new/hooks",
    ),
    (
        "mkdir -p new/.git/hooks && touch new/.git/hooks/x && chmod 0 new/.git/hooks new/.git new",
        "new/.git/hooks",
    ),
    ("mkdir -p new/.git/hooks && touch new/.git/hooks/x && chmod 111 new", "new/.git/hooks"),
    (
        "mkdir -p new/.git/hooks && touch new/.git/hooks/x && chmod 555 new/.git/hooks new/.git new",
        "new/.git/hooks",
    ),
    ("mkdir -p new/.git/hooks && touch new/.git/hooks/x && chmod 444 new", "new/.git/hooks"),
    ("mkdir -p src/.git && mkdir src/.vscode && touch src/.vscode/tasks.json", "src/.vscode"),
];

#[test]
fn what_is_new_is_gone_at_the_end() {
    require!("userns");
    for (way, path) in MADE {
        let (_scratch, project) = project();
        let made = project.join(path);
        let finished = script(&project, &[], way);
        finished.code_is(0);
        open_again(&project);
        assert!(made.symlink_metadata().is_err(), "{way}: still there\n{finished}");
        assert!(finished.stderr.contains(path), "{way}: nothing said\n{finished}");
        assert!(finished.stderr.contains("--unprotect"), "{finished}");
        // The same, allowed.
        let (_scratch, project) = self::project();
        let finished = script(&project, &["--allow-write", path.split('/').next().unwrap()], way);
        finished.code_is(0);
        open_again(&project);
        let made = project.join(path);
        assert!(made.symlink_metadata().is_ok(), "{way}: gone\n{finished}");
        assert!(!finished.stderr.contains("removed"), "{way}\n{finished}");
    }
}

/// Modes that a script took away are in the way of an ordinary user's look.
fn open_again(project: &Path) {
    for below in ["new", "new/.git", "new/.git/hooks"] {
        let path = project.join(below);
        if path.exists() && !path.is_symlink() && path.is_dir() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

#[test]
fn modes_are_put_back() {
    require!("userns");
    let (_scratch, project) = project();
    let finished = script(
        &project,
        &[],
        "mkdir -p shut/a open; touch shut/a/x; chmod 000 shut; chmod 555 open",
    );
    finished.code_is(0);
    let mode = |name: &str| fs::metadata(project.join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("shut"), mode("open")), (0, 0o555), "{finished}");
    fs::set_permissions(project.join("shut"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(project.join("shut/a/x").exists());
}

#[test]
fn nobody_writes_after_the_end() {
    require!("userns");
    for ending in ["exit 0", "kill -9 -1", "sleep 60"] {
        let (_scratch, project) = project();
        let writer =
            "(trap '' TERM HUP; while :; do mkdir -p .idea; echo x > .idea/x; done) 2>/dev/null &";
        let finished = protecting(&project)
            .cwd(&project)
            .flag("--timeout=1s")
            .flag("--grace=1s")
            .shell(&format!("{writer} while [ ! -e .idea/x ]; do sleep 0.05; done; {ending}"))
            .run();
        let comes_back = eventually(Duration::from_millis(500), || project.join(".idea").exists());
        assert!(!comes_back, "{ending}\n{finished}");
        assert!(
            finished.stderr.contains("removed .idea") || finished.stderr.contains("/.idea"),
            "{finished}"
        );
    }
}

#[test]
fn nothing_is_left_on_the_host() {
    require!("userns");
    let (scratch, project) = project();
    let before = scratch.tree();
    script(&project, &[], "cat .git/config > /dev/null; ls -laR . > /dev/null").code_is(0);
    assert_eq!(scratch.tree(), before);
    // A launcher that is killed clears nothing away, and has nothing to.
    let live = protecting(&project).cwd(&project).shell("echo up; sleep 60").spawn();
    live.await_output("up");
    live.signal(libc::SIGKILL);
    live.wait();
    assert_eq!(scratch.tree(), before);
}

/// The launcher, or everything that it started.
#[test]
fn a_killed_launcher_leaves_nothing_behind() {
    require!("userns");
    for launcher in [true, false] {
        let (_scratch, project) = project();
        let writer = "mkdir .idea; echo x > .idea/x; echo x > .zshrc; echo up; sleep 60";
        let live = protecting(&project).cwd(&project).shell(writer).spawn();
        live.await_output("up");
        assert!(project.join(".idea/x").exists());
        match launcher {
            true => live.signal(libc::SIGKILL),
            false => live.signal_children(libc::SIGKILL),
        }
        live.wait();
        let gone = || !project.join(".idea").exists() && !project.join(".zshrc").exists();
        assert!(eventually(soon(), gone), "{launcher}");
    }
}
