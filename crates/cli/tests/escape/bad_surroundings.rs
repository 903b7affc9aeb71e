//! A launcher started in a bad place: a clear error or a correct run, never a panic.

use std::path::{Path, PathBuf};

use crate::require;
use crate::support::{
    Finished, Preparation, Run, Scratch, allowed, is_root, mcp_path, probe_path, skip,
};

/// The variables that say where a user's files are.
const PLACES: [&str; 5] =
    ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

#[test]
fn closed_standard_streams() {
    require!("userns");
    let scratch = Scratch::new();
    for closed in [&[0][..], &[1], &[2], &[0, 1], &[0, 1, 2]] {
        let proof = scratch.dir(format!("{closed:?}")).join("ran");
        let mut run = Run::new().write(proof.parent().unwrap());
        for fd in closed {
            run = run.prepare(Preparation::Close(*fd));
        }
        let finished = run.probe(&["create".as_ref(), proof.as_os_str()]).run();
        finished.has_no_panic();
        assert!([0, 125].contains(&finished.code), "closed {closed:?}: {finished}");
        assert_eq!(proof.exists(), finished.code == 0, "closed {closed:?}: {finished}");
    }
}

#[test]
fn no_home() {
    require!("userns");
    let run = || {
        // The log would be in the home of the account that runs the tests.
        let mut run = Run::new().flag("--no-log").without_env("HOME");
        for name in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            run = run.without_env(name);
        }
        run
    };
    assert_eq!(allowed(run().probe(&["getenv", "HOME"])).detail, "/home/mcp");
    for home in ["", "relative", "/no/such/home"] {
        allowed(run().env("HOME", home).probe(&["cwd"]));
    }
    assert!(!Path::new("/no/such").exists(), "a home was made that the system does not have");
}

#[test]
fn no_environment_at_all() {
    require!("userns");
    let mut run = Run::new().flag("--no-log");
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.chain(PLACES.map(str::to_owned)) {
        run = run.without_env(&name);
    }
    allowed(run.probe(&["cwd"]));
}

#[test]
fn deleted_working_directory() {
    require!("userns");
    let scratch = Scratch::new();
    let dir = scratch.dir("gone");
    let run = Run::new().cwd(&dir).prepare(Preparation::remove_dir(&dir));
    let finished = run.probe(&["cwd"]).run();
    finished.has_no_panic();
    assert!(!dir.exists());
    match finished.code {
        0 => assert_eq!(finished.last("cwd").detail, "/home/mcp", "{finished}"),
        _ => _ = finished.is_clear_error(),
    }
}

/// Relative to nothing, a path must not come to mean one below the root.
#[test]
fn relative_grant_in_a_deleted_working_directory() {
    require!("userns");
    let scratch = Scratch::new();
    for flag in ["--read", "--write", "--deny", "--cwd"] {
        let dir = scratch.dir("gone");
        let run = Run::new().cwd(&dir).prepare(Preparation::remove_dir(&dir));
        let finished = run.flag(flag).arg("usr/share").probe(&["cwd"]).run();
        finished.is_clear_error();
        assert!(finished.stderr.contains("the current directory is gone"), "{finished}");
    }
}

#[test]
fn twenty_open_files() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("file", "content");
    let run = Run::new().prepare(Preparation::OpenFiles(20)).read(&file).write(scratch.path());
    let finished = run.probe(&["read".as_ref(), file.as_os_str()]).run();
    finished.has_no_panic();
    match finished.code {
        0 => assert_eq!(finished.last("read").detail, "content", "{finished}"),
        _ => _ = finished.is_clear_error(),
    }
}

#[test]
fn too_few_open_files_are_named_as_the_reason() {
    require!("userns");
    for few in [4, 6, 8] {
        let run = Run::new().prepare(Preparation::OpenFiles(few)).probe(&["cwd"]);
        let finished = run.run();
        finished.is_clear_error();
        assert!(finished.stderr.contains("ulimit -n"), "{few}: {finished}");
        // Nor is it taken for a host that can do less.
        assert!(!finished.stderr.contains("this host"), "{few}: {finished}");
        assert!(!finished.stderr.contains("partly enforced"), "{few}: {finished}");
    }
    allowed(Run::new().prepare(Preparation::OpenFiles(32)).probe(&["cwd"]));
}

/// What the caller's umask takes away is not taken from the sandbox itself, and the command has it.
#[test]
fn umask_is_the_commands_and_not_the_set_ups() {
    require!("userns");
    for mask in [0o777, 0o027, 0o000] {
        let run = Run::new()
            .prepare(Preparation::Umask(mask))
            .shell("umask; cd /tmp; ls -a /etc /dev/shm");
        let finished = run.run();
        finished.code_is(0);
        let said = finished.text();
        assert_eq!(said.lines().next(), Some(format!("{mask:04o}").as_str()), "{finished}");
        assert!(said.contains("passwd"), "{finished}");
    }
}

#[test]
fn doctor_and_demo_without_a_place_to_write_say_what_to_do() {
    for verb in ["doctor", "demo"] {
        for place in ["/no/such/place", "/proc"] {
            let mcp = mcp_path().into_os_string();
            let finished = Run::bare().env("TMPDIR", place).command(&[mcp, verb.into()]).run();
            finished.is_clear_error();
            assert!(finished.stderr.contains("set TMPDIR"), "{verb}: {finished}");
        }
    }
}

/// Runs the launcher with a /tmp of the given kind, in a mount namespace of the test's own.
fn with_tmp(second: &[&str]) -> Option<Finished> {
    let programs = [mcp_path(), probe_path()];
    if programs.iter().any(|path| path.starts_with("/tmp")) {
        skip("programs", "those under test are below /tmp, which the new mount hides");
        return None;
    }
    let [mcp, probe] = programs.map(PathBuf::into_os_string);
    let inner = [mcp, "run".into(), "--".into(), probe, "create".into(), "/tmp/works".into()];
    let run = PLACES.into_iter().fold(Run::bare(), |run, name| run.without_env(name));
    let finished = run
        .env("TMPDIR", "/tmp")
        .probe(&["enter", if is_root() { "mnt" } else { "user,mnt" }])
        .probe(&["mount", "/tmp", "65536"])
        .probe(second)
        .probe(&["exec"])
        .command(&inner)
        .run();
    Some(finished)
}

#[test]
fn full_tmp() {
    require!("userns");
    let Some(finished) = with_tmp(&["write-big", "/tmp/filler", "1000000"]) else { return };
    assert_eq!(finished.act("write-big").errno(), "ENOSPC", "{finished}");
    assert!(finished.act("create").ok, "{finished}");
}

#[test]
fn read_only_tmp() {
    require!("userns");
    let Some(finished) = with_tmp(&["remount-ro", "/tmp"]) else { return };
    assert!(finished.act("remount-ro").ok, "{finished}");
    assert!(finished.act("create").ok, "{finished}");
}
