//! Deny rules for other places than a project: programs, the system, sockets, homes, mounts and directories that
//! cannot be listed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::deny::{CLOSED, act, project, report};
use crate::require;
use crate::support::{Run, Scratch, allowed, blocked};

#[test]
fn program_and_its_surroundings() {
    require!("userns");
    let scratch = Scratch::new();
    scratch.file("tool/pyvenv.cfg", "");
    let secret = scratch.file("tool/.env", "canary");
    let program = scratch.script("tool/bin/show", "#!/bin/sh\ncat \"$1\"\n");
    let run = || Run::new().command(&[program.as_os_str(), secret.as_os_str()]);
    assert_eq!(run().run().code_is(0).text(), "canary");
    let denied = run().deny("**/.env").run();
    assert_eq!((denied.code, denied.text()), (1, String::new()), "{denied}");
    assert!(denied.stderr.contains("is denied to the command (by --deny **/.env)"), "{denied}");
    let refused = run().deny(scratch.join("tool")).run();
    refused.code_is(126);
    assert!(refused.stderr.contains("denied by --deny"), "{refused}");
}

#[test]
fn system() {
    require!("userns");
    let read = |run: Run| act(run, &[&"read", &"/usr/bin/env"]);
    allowed(read(Run::new()));
    allowed(read(Run::new().deny("**/env")));
    blocked(read(Run::new().deny("/usr/bin/env")), CLOSED);
    blocked(read(Run::new().deny("/usr/bin/en[v]")), CLOSED);
}

#[test]
fn socket() {
    require!("userns");
    let scratch = Scratch::new();
    let path = scratch.dir("dir").join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let run = || Run::new().read(scratch.join("dir"));
    let open = || run().flag("--allow-unix").arg(&path);
    allowed(act(open(), &[&"unix-connect", &path]));
    for closed in [run().deny("**/socket"), open().deny("**/socket")] {
        blocked(act(closed, &[&"unix-connect", &path]), &["EACCES", "ECONNREFUSED"]);
    }
    let kind = |run: Run| allowed(act(run, &[&"stat", &path])).detail;
    assert!(kind(open()).contains("kind=other"));
    assert!(kind(open().deny("**/socket")).contains("kind=file"));
}

#[test]
fn kept_home() {
    require!("userns");
    let data = Scratch::new();
    let run = || Run::new().env("XDG_DATA_HOME", data.path()).flag("--home").arg("name");
    let file = Path::new("/home/mcp/.env");
    allowed(act(run(), &[&"create", &file]));
    allowed(act(run(), &[&"read", &file]));
    blocked(act(run().deny("**/.env"), &[&"read", &file]), CLOSED);
    let refused = act(run().deny(data.path()), &[&"cwd"]).run();
    assert!(refused.is_clear_error().stderr.contains("--home"), "{refused}");
}

#[test]
fn where_the_command_starts() {
    require!("userns");
    let (_scratch, project) = project();
    let run = || Run::new().read(&project).cwd(project.join("src"));
    assert_eq!(allowed(run().probe(&["cwd"])).detail, project.join("src").to_str().unwrap());
    let denied = run().deny(project.join("src"));
    assert_eq!(allowed(denied.probe(&["cwd"])).detail, "/home/mcp");
    let asked = run().deny(project.join("src")).flag("--cwd").arg(project.join("src"));
    asked.probe(&["cwd"]).run().is_clear_error();
}

#[test]
fn directory_that_cannot_be_listed() {
    require!("userns");
    let (_scratch, project) = project();
    let closed = project.join("src/app");
    // Not a leaf: what is in it cannot be asked for by name.
    fs::create_dir(closed.join("below")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o300)).unwrap();
    let secret = closed.join(".env");
    let read = |run: Run| act(run, &[&"read", &secret]);
    // In a write grant a directory of the caller's own that cannot be listed is closed in any case.
    allowed(read(Run::new().read(&project)));
    blocked(read(Run::new().read(&project).deny("**/.env")), CLOSED);
    blocked(read(Run::new().write(&project).deny("**/.env")), CLOSED);
    let chmod = act(Run::new().write(&project).deny("**/.env"), &[&"chmod", &closed, &"700"]);
    // Root can list it, so only the file in it is masked.
    blocked(read(chmod), CLOSED);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn mount_below_a_grant() {
    require!("userns", "root");
    let (scratch, project) = project();
    let below = scratch.dir("project/src/mounted");
    let secret = below.join("deep/.env");
    let sandboxed = |run: Run| {
        let run = act(run, &[&"read", &secret]);
        // In a mount namespace of its own: nothing stays on the host.
        let script = "mount -t tmpfs none \"$1\" && mkdir \"$1/deep\" && echo canary > \"$2\" \
                      && shift 2 && exec \"$@\"";
        let mut words: Vec<OsString> =
            ["unshare", "-m", "sh", "-c", script, "sh"].map(Into::into).into();
        words.extend([below.clone().into(), secret.clone().into()]);
        words.extend(run.words());
        Run::bare().command(&words)
    };
    allowed(sandboxed(Run::new().write(&project)));
    for run in [Run::new().write(&project), Run::new().read(&project)] {
        blocked(sandboxed(run.deny("**/.env")), CLOSED);
    }
    let rename =
        act(Run::new().write(&project).deny("**/.env"), &[&"rename", &below, &project.join("x")]);
    blocked(sandboxed(rename), CLOSED);
}

#[test]
fn directory_of_somebody_else_stays_closed() {
    require!("userns", "root");
    let (_scratch, project) = project();
    let closed = project.join("src/app");
    std::os::unix::fs::chown(&closed, Some(12345), Some(12345)).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let run = || Run::new().write(&project).deny("**/.env");
    assert_eq!(
        report(run())["seen"],
        serde_json::json!(["2 held in place", "1 masked, 1 behind a directory that was closed"])
    );
    blocked(act(run(), &[&"read", &closed.join(".env")]), CLOSED);
    blocked(act(run(), &[&"chmod", &closed, &"777"]), &["EPERM", "EACCES", "EROFS"]);
}
