//! Directories that the launcher may not enter, but that the command, as their owner, opens again with chmod: what
//! lies behind them is closed with them.
//!
//! Init may enter every directory of the caller's, unless its group is none of the sandbox's: in projects that are
//! shared by a group.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::require;
use crate::support::{Finished, Run, Scratch, allowed, blocked, is_root, landlock_abi};

/// A group that the caller may give files to, and that is not the one the sandbox knows.
fn other_group() -> Option<u32> {
    if is_root() {
        return Some(12345);
    }
    let own = rustix::process::getegid();
    let groups = rustix::process::getgroups().unwrap();
    groups.into_iter().find(|group| *group != own).map(|group| group.as_raw())
}

/// A project that a group shares, with a repository and a secret.
fn shared_project() -> Option<(Scratch, PathBuf)> {
    let Some(group) = other_group() else {
        println!("SKIP: the caller is in no other group");
        return None;
    };
    let scratch = Scratch::new();
    for (file, text) in [
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/config", "[core]\n\tbare = false\n"),
        (".git/hooks/pre-commit", "#!/bin/sh\n"),
        (".git/objects/x", ""),
        (".git/refs/x", ""),
        ("secrets/.env", "canary"),
        ("secrets/deep/.env", "canary"),
    ] {
        scratch.file(format!("project/{file}"), text);
    }
    let project = scratch.join("project");
    for directory in ["", ".git", ".git/hooks", "secrets", "secrets/deep"] {
        let path = project.join(directory);
        chown(&path, None, Some(group)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o2775)).unwrap();
    }
    Some((scratch, project))
}

fn script(run: Run, project: &Path, script: &str) -> Finished {
    run.write(project).cwd(project).shell(script).run()
}

/// The launcher does not look for sockets where the network is the host's, and closes directories that may hold some.
fn unwatched() -> Run {
    Run::new().flag("--network=host")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Modes by which a directory cannot be entered, or not listed, or neither.
const SHUT: [u32; 4] = [0o600, 0o400, 0o200, 0];

#[test]
fn settings_behind_a_shut_directory_stay_as_they_are() {
    require!("userns");
    let attack = "chmod 00700 .git; echo evil >> .git/config && echo written; \
                  echo evil > .git/hooks/post-commit && echo planted; mv .git old && echo moved; true";
    for shut in SHUT {
        let Some((_scratch, project)) = shared_project() else {
            return;
        };
        let close = format!("chmod 0{shut:04o} .git");
        script(Run::new().flag("--protect"), &project, &close).code_is(0);
        assert_eq!(mode(&project.join(".git")), shut);
        let finished = script(Run::new().flag("--protect"), &project, attack);
        finished.code_is(0);
        assert_eq!(finished.text(), "", "{shut:o}\n{finished}");
        assert_eq!(mode(&project.join(".git")), shut, "{finished}");
        fs::set_permissions(project.join(".git"), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!project.join(".git/hooks/post-commit").exists(), "{finished}");
        let config = fs::read_to_string(project.join(".git/config")).unwrap();
        assert_eq!(config, "[core]\n\tbare = false\n", "{finished}");
        // The same, unprotected.
        script(unwatched(), &project, &close).code_is(0);
        let finished = script(unwatched(), &project, attack);
        assert_eq!(finished.text(), "written\nplanted\nmoved\n", "{finished}");
    }
}

#[test]
fn what_is_denied_behind_a_shut_directory_stays_closed() {
    require!("userns");
    let attack = "chmod 00700 secrets; cat secrets/.env; cat secrets/deep/.env; true";
    for shut in SHUT {
        for rule in ["**/.env", "secrets/.env", "secrets/*", "**/deep/.e*"] {
            let Some((_scratch, project)) = shared_project() else {
                return;
            };
            let run = || Run::new().arg("--deny").arg(rule);
            let close = format!("chmod 0{shut:04o} secrets");
            script(Run::new(), &project, &close).code_is(0);
            let finished = script(run(), &project, attack);
            finished.code_is(0);
            assert_eq!(finished.text(), "", "{shut:o} {rule}\n{finished}");
            // The same, not denied.
            let finished = script(unwatched(), &project, attack);
            assert_eq!(finished.text(), "canarycanary", "{finished}");
        }
    }
}

#[test]
fn sockets_behind_a_shut_directory_stay_closed() {
    require!("userns");
    if landlock_abi() >= 9 {
        println!("SKIP: this kernel refuses sockets of the host wherever they are");
        return;
    }
    for shut in SHUT {
        let Some((_scratch, project)) = shared_project() else {
            return;
        };
        let at = project.join("secrets/socket");
        let _listener = UnixListener::bind(&at).unwrap();
        script(Run::new(), &project, &format!("chmod 0{shut:04o} secrets")).code_is(0);
        let secrets = project.join("secrets");
        let act = |run: Run| {
            let run = run.probe(&["chmod".as_ref(), secrets.as_os_str(), "700".as_ref()]);
            run.probe(&["unix-connect".as_ref(), at.as_os_str()])
        };
        blocked(act(Run::new().write(&project)), &["EACCES", "ECONNREFUSED", "ENOENT"]);
        allowed(act(unwatched().write(&project)));
    }
}
