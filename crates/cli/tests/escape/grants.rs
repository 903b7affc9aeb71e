//! Grants of every shape work: these are the positive halves of `filesystem.rs`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::require;
use crate::support::{ABSENT, READ_ONLY, Run, Scratch, allowed, blocked, euid, is_root};

fn act(run: Run, name: &str, path: &Path) -> Run {
    run.probe(&[OsStr::new(name), path.as_os_str()])
}

/// Grants `dir` and reads and writes `dir/file`; the neighbour stays out of reach.
fn directory_works(scratch: &Scratch, dir: &Path) {
    let file = dir.join("file");
    fs::create_dir_all(dir).unwrap();
    fs::write(&file, "content").unwrap();
    let neighbour = scratch.file("neighbour", "canary");
    assert_eq!(allowed(act(Run::new().read(dir), "read", &file)).detail, "content");
    blocked(act(Run::new().read(dir), "write", &file), READ_ONLY);
    allowed(act(Run::new().write(dir), "write", &file));
    blocked(act(Run::new().write(dir), "read", &neighbour), ABSENT);
}

#[test]
fn directory() {
    require!("userns");
    let scratch = Scratch::new();
    directory_works(&scratch, &scratch.join("plain"));
}

#[test]
fn odd_names() {
    require!("userns");
    for name in
        ["with space", "new\nline", "tab\tquote\"'", "-dash", "back\\slash", "üñí", "a,b:c=d"]
    {
        let scratch = Scratch::new();
        directory_works(&scratch, &scratch.join(name));
    }
}

#[test]
fn name_that_is_not_utf8() {
    require!("userns");
    let scratch = Scratch::new();
    let name = OsString::from_vec(b"\xff\xfe-latin-\xe9".to_vec());
    directory_works(&scratch, &scratch.join(name));
}

#[test]
fn single_file() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("file", "content");
    let neighbour = scratch.file("neighbour", "canary");
    assert_eq!(allowed(act(Run::new().read(&file), "read", &file)).detail, "content");
    blocked(act(Run::new().read(&file), "write", &file), READ_ONLY);
    blocked(act(Run::new().read(&file), "read", &neighbour), ABSENT);
    allowed(act(Run::new().write(&file), "write", &file));
    assert_eq!(fs::read_to_string(&file).unwrap(), "contentmcp-probe\n");
}

#[test]
fn through_a_symlink() {
    require!("userns");
    let scratch = Scratch::new();
    let real = scratch.file("real/file", "content");
    let link = scratch.join("link");
    symlink(scratch.join("real"), &link).unwrap();
    for path in [link.join("file"), real] {
        assert_eq!(allowed(act(Run::new().read(&link), "read", &path)).detail, "content");
        blocked(act(Run::new(), "read", &path), ABSENT);
    }
    blocked(act(Run::new().read(&link), "create", &link.join("new")), READ_ONLY);
    allowed(act(Run::new().write(&link), "create", &link.join("new")));
}

#[test]
fn relative() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("sub/file", "content");
    for grant in ["sub", "./sub", "sub/", "sub/../sub", "."] {
        let run = Run::new().cwd(scratch.path()).read(grant);
        assert_eq!(allowed(act(run, "read", &file)).detail, "content", "--read {grant}");
    }
}

#[test]
fn with_dot_dot() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("a/file", "content");
    scratch.dir("b");
    let grant = scratch.join("b/../a");
    assert_eq!(allowed(act(Run::new().read(&grant), "read", &file)).detail, "content");
    let neighbour = scratch.file("b/neighbour", "canary");
    blocked(act(Run::new().read(&grant), "read", &neighbour), ABSENT);
}

#[test]
fn four_thousand_characters() {
    require!("userns");
    let scratch = Scratch::new();
    let mut dir = PathBuf::from(scratch.path());
    while dir.as_os_str().len() + 101 < 4000 {
        dir.push("d".repeat(100));
    }
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("file");
    fs::write(&file, "content").unwrap();
    allowed(act(Run::bare(), "read", &file));
    let finished = act(Run::new().read(&dir), "read", &file).run();
    finished.has_no_panic();
    match finished.code {
        0 => assert_eq!(finished.last("read").detail, "content", "{finished}"),
        _ => _ = finished.is_clear_error(),
    }
}

#[test]
fn written_files_belong_to_the_caller() {
    require!("userns");
    let scratch = Scratch::new();
    let grant = scratch.dir("grant");
    for name in ["create", "mkdir"] {
        let path = grant.join(name);
        allowed(act(Run::new().write(&grant), name, &path));
        let owner = fs::metadata(&path).unwrap();
        let own = fs::metadata(&grant).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (euid(), own.gid()), "{name}");
    }
}

#[test]
fn private_file_of_the_caller_is_readable_when_granted() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("grant/private", "content");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let grant = file.parent().unwrap();
    fs::set_permissions(grant, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(allowed(act(Run::new().read(grant), "read", &file)).detail, "content");
    allowed(act(Run::new().write(grant), "write", &file));
}

#[test]
fn mounts_below_a_grant_come_with_it() {
    require!("userns");
    let scratch = Scratch::new();
    let below = scratch.dir("grant/mounted");
    let file = below.join("file");
    // The mount lives in a namespace of the test's own, and goes with it.
    let act = |flag: &str| {
        let inner = Run::new().flag(flag).arg(scratch.join("grant"));
        let mut words = vec!["exec".into()];
        words.extend(act(act(inner, "read", &file), "write", &file).words());
        Run::bare()
            .probe(&["enter", if is_root() { "mnt" } else { "user,mnt" }])
            .probe(&["mount".as_ref(), below.as_os_str()])
            .probe(&["create".as_ref(), file.as_os_str(), "content".as_ref()])
            .probe(&words)
            .run()
    };
    let (reading, writing) = (act("--read"), act("--write"));
    assert_eq!(reading.act("read").detail, "content", "{reading}");
    assert!(READ_ONLY.contains(&reading.act("write").errno()), "{reading}");
    assert!(writing.act("read").ok, "{writing}");
    require!("mapped-tmpfs");
    assert!(writing.act("write").ok, "{writing}");
}

#[test]
fn below_every_usual_directory() {
    require!("userns");
    let mut failed = Vec::new();
    for base in ["/var/tmp", "/tmp", "/opt", "/srv", "/mnt", "/run", "/home", "/var/lib"] {
        let name = format!("{base}/mcp-escape-grant-{}", std::process::id());
        let dir = Path::new(&name);
        if fs::create_dir(dir).is_err() {
            println!("SKIP: control: {base} is not writable here");
            continue;
        }
        let file = dir.join("file");
        fs::write(&file, "content").unwrap();
        let finished = act(Run::new().read(dir), "read", &file).run();
        fs::remove_dir_all(dir).unwrap();
        if !finished.outcomes.iter().any(|outcome| outcome.ok) {
            failed.push(format!("{base}: {finished}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn working_directory() {
    require!("userns");
    let scratch = Scratch::new();
    let dir = scratch.dir("grant/below");
    let text = dir.to_str().unwrap();
    let cwd = |run: Run| allowed(run.cwd(&dir).probe(&["cwd"])).detail;
    assert_eq!(cwd(Run::new().read(scratch.join("grant"))), text);
    assert_eq!(cwd(Run::new().write(&dir)), text);
    assert_eq!(cwd(Run::new()), "/home/mcp");
    // Above a grant it is there too, so that what is granted is found by its relative path.
    let above = Run::new().cwd(scratch.path()).read(&dir).probe(&["list", "grant/below"]);
    allowed(above);
    let other = scratch.dir("other");
    let chosen = Run::new().write(&other).flag("--cwd").arg(&other);
    assert_eq!(cwd(chosen), other.to_str().unwrap());
}
