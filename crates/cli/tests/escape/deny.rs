//! Deny rules: what they match inside a grant stays closed, whatever is tried from inside.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::require;
use crate::support::{ABSENT, Run, Scratch, allowed, blocked, euid, has_program};

/// What opening something masked answers, and making something in it.
const CLOSED: &[&str] = &["EACCES"];
/// What changing a mask itself answers.
const FIXED: &[&str] = &["EROFS", "EACCES"];
/// What removing or renaming a mask, or a directory above it, answers.
const HELD: &[&str] = &["EBUSY"];

fn act(run: Run, words: &[&dyn AsRef<OsStr>]) -> Run {
    let words: Vec<OsString> = words.iter().map(|word| word.as_ref().to_owned()).collect();
    run.probe(&words)
}

/// A project with secrets in it.
fn project() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    scratch.file("project/.env", "canary");
    scratch.file("project/src/app/.env", "canary");
    scratch.file("project/src/app/main", "content");
    scratch.file("project/.git/hooks/pre-commit", "canary");
    scratch.file("project/.git/config", "content");
    let project = scratch.join("project");
    (scratch, project)
}

/// Asserts that an act is refused with `rules`, by read and by write grant, and that it works
/// in a copy of the project without them.
#[track_caller]
fn denied(rules: &[&str], words: &[&str], errnos: &[&str]) {
    let in_project = |project: &Path, word: &&str| match word.strip_prefix("./") {
        Some(below) => project.join(below).into_os_string(),
        None => OsString::from(word),
    };
    let run = |project: &Path, run: Run, rules: &[&str]| {
        let words: Vec<_> = words.iter().map(|word| in_project(project, word)).collect();
        rules.iter().fold(run, |run, rule| run.deny(in_project(project, rule))).probe(&words)
    };
    let (_scratch, project) = self::project();
    blocked(run(&project, Run::new().write(&project), rules), errnos);
    allowed(run(&project, Run::new().write(&project), &[]));
}

#[test]
fn literal_file() {
    require!("userns");
    denied(&["./.env"], &["read", "./.env"], CLOSED);
    denied(&["./.env"], &["write", "./.env"], FIXED);
    denied(&["./src/app/.env"], &["read", "./src/app/.env"], CLOSED);
}

#[test]
fn literal_directory() {
    require!("userns");
    denied(&["./.git/hooks"], &["list", "./.git/hooks"], CLOSED);
    denied(&["./.git/hooks"], &["read", "./.git/hooks/pre-commit"], CLOSED);
    denied(&["./.git/hooks"], &["stat", "./.git/hooks/pre-commit"], CLOSED);
    denied(&["./.git/hooks"], &["create", "./.git/hooks/post-commit"], FIXED);
    denied(&["./src"], &["read", "./src/app/main"], CLOSED);
}

#[test]
fn globs() {
    require!("userns");
    for rule in ["**/.env", "**/*env", "./**/.env", "**/app/.e??", "./src/*/.env", "**/.{env,x}"] {
        denied(&[rule], &["read", "./src/app/.env"], CLOSED);
    }
    denied(&["**/.git/hooks"], &["list", "./.git/hooks"], CLOSED);
    denied(&["**/.git/**"], &["read", "./.git/config"], CLOSED);
    denied(&["./src/[a-c]*"], &["list", "./src/app"], CLOSED);
}

#[test]
fn glob_relative_to_where_one_stands() {
    require!("userns");
    let scratch = Scratch::new();
    let key = scratch.file("[dir]/x.pem", "canary");
    let neighbour = scratch.file("[dir]/x.txt", "content");
    let run = || Run::new().cwd(scratch.join("[dir]")).read(".").deny("*.pem");
    blocked(act(run(), &[&"read", &key]), CLOSED);
    allowed(act(run(), &[&"read", &neighbour]));
}

#[test]
fn in_a_read_grant() {
    require!("userns");
    let (_scratch, project) = project();
    for (rule, path) in [
        ("**/.env", ".env"),
        ("**/.env", "src/app/.env"),
        ("**/.git/hooks", ".git/hooks/pre-commit"),
    ] {
        let read = |run: Run| act(run, &[&"read", &project.join(path)]);
        blocked(read(Run::new().read(&project).deny(rule)), CLOSED);
        allowed(read(Run::new().read(&project)));
    }
    let run = Run::new().read(&project).deny("**/.env");
    allowed(act(run, &[&"read", &project.join("src/app/main")]));
}

#[test]
fn symlinks_end_at_the_mask() {
    require!("userns");
    let (_scratch, project) = project();
    let before = project.join("before");
    symlink(".env", &before).unwrap();
    let inside = project.join("inside");
    let through = |run: Run| {
        let run = act(run.write(&project), &[&"symlink", &project.join(".env"), &inside]);
        act(run, &[&"read", &inside])
    };
    blocked(through(Run::new().deny("**/.env")), CLOSED);
    fs::remove_file(&inside).unwrap();
    allowed(through(Run::new()));
    blocked(act(Run::new().write(&project).deny("**/.env"), &[&"read", &before]), CLOSED);
    let root = Path::new("/proc/self/root").join(project.strip_prefix("/").unwrap());
    blocked(
        act(Run::new().write(&project).deny("**/.env"), &[&"read", &root.join(".env")]),
        CLOSED,
    );
}

#[test]
fn denied_symlink_closes_what_it_leads_to() {
    require!("userns");
    let (_scratch, project) = project();
    let link = project.join("secret");
    symlink("src/app/main", &link).unwrap();
    let run = || Run::new().write(&project);
    for path in [&link, &project.join("src/app/main")] {
        allowed(act(run(), &[&"read", path]));
        blocked(act(run().deny("**/secret"), &[&"read", path]), CLOSED);
    }
    blocked(act(run().deny("**/secret"), &[&"unlink", &link]), HELD);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn hard_link() {
    require!("userns");
    denied(&["**/.env"], &["hardlink", "./.env", "./link"], &["EXDEV", "EPERM"]);
    denied(&["**/.env"], &["hardlink", "./src/app/.env", "./src/app/link"], &["EXDEV", "EPERM"]);
}

#[test]
fn rename_of_it() {
    require!("userns");
    denied(&["**/.env"], &["rename", "./.env", "./other"], HELD);
    denied(&["**/.env"], &["rename", "./src/app/main", "./src/app/.env"], HELD);
    denied(&["**/hooks"], &["rename", "./.git/hooks", "./.git/other"], HELD);
}

#[test]
fn rename_of_what_is_above_it() {
    require!("userns");
    denied(&["**/.git/hooks"], &["rename", "./.git", "./other"], HELD);
    denied(&["**/.env"], &["rename", "./src/app", "./src/other"], HELD);
    denied(&["**/.env"], &["rename", "./src", "./other"], HELD);
    denied(&["**/.env"], &["rename", "./src/app", "./other"], &["EBUSY", "EXDEV"]);
    let (_scratch, project) = project();
    let script = "mv .git old && mkdir -p .git/hooks && echo bad > .git/hooks/pre-commit";
    let hook = project.join(".git/hooks/pre-commit");
    let run = Run::new().write(&project).cwd(&project).deny("**/.git/hooks").shell(script).run();
    assert_ne!(run.code, 0, "{run}");
    assert_eq!(fs::read_to_string(&hook).unwrap(), "canary");
    Run::new().write(&project).cwd(&project).shell(script).run().code_is(0);
    assert_eq!(fs::read_to_string(&hook).unwrap(), "bad\n");
}

#[test]
fn removing_it_or_putting_something_over_it() {
    require!("userns");
    denied(&["**/.env"], &["unlink", "./.env"], HELD);
    let (scratch, project) = project();
    let empty = scratch.dir("project/empty/inner");
    let run = |rules: bool| {
        let run = Run::new().write(&project);
        if rules { run.deny("**/inner") } else { run }
    };
    blocked(act(run(true), &[&"rmdir", &empty]), HELD);
    blocked(act(run(true), &[&"mkdir", &empty]), &["EEXIST"]);
    blocked(act(run(true), &[&"rmdir", &empty.parent().unwrap()]), HELD);
    blocked(act(run(true), &[&"chmod", &empty, &"777"]), FIXED);
    for way in ["umount", "remount-rw", "mount"] {
        blocked(act(run(true), &[&way, &empty]), &["EPERM", "EACCES", "ENOSYS"]);
    }
    allowed(act(run(false), &[&"chmod", &empty, &"755"]));
    allowed(act(act(run(false), &[&"rmdir", &empty]), &[&"mkdir", &empty]));
}

#[test]
fn chmod_opens_nothing() {
    require!("userns");
    denied(&["**/.env"], &["chmod", "./.env", "666"], FIXED);
    let (_scratch, project) = project();
    let run = Run::new().write(&project).deny("**/.env");
    let stat = allowed(act(run, &[&"stat", &project.join(".env")]));
    assert!(stat.detail.contains("size=0") && stat.detail.contains("mode=0000"), "{stat:?}");
}

#[test]
fn whole_grant() {
    require!("userns");
    let (scratch, project) = project();
    let file = project.join("src/app/main");
    for rule in [scratch.path().to_owned(), scratch.join("pro*"), "**/project".into()] {
        for run in [Run::new().read(&project), Run::new().write(&project)] {
            blocked(act(run.deny(&rule), &[&"read", &file]), ABSENT);
        }
    }
    let run = Run::new().read(&project).deny(scratch.path()).flag("--explain").shell("true").run();
    let told = format!("grants withdrawn: {}", project.display());
    assert!(run.code_is(0).text().contains(&told), "{run}");
    // A narrower grant does not bring it back.
    let both = Run::new().read(scratch.path()).write(&project).deny(&*project.join("src"));
    blocked(act(both.read(project.join("src/app")), &[&"read", &file]), CLOSED);
    allowed(act(Run::new().read(&project), &[&"read", &file]));
}

#[test]
fn file_grant() {
    require!("userns");
    let (_scratch, project) = project();
    let file = project.join(".env");
    allowed(act(Run::new().read(&file), &[&"read", &file]));
    for run in [Run::new().read(&file), Run::new().write(&file)] {
        blocked(act(run.deny("**/.env"), &[&"read", &file]), ABSENT);
    }
}

#[test]
fn odd_names() {
    require!("userns");
    let odd = [
        &b"with space"[..],
        b"new\nline",
        b"\xff\xfe",
        b"*",
        b"[x]",
        b"?",
        b"{a,b}",
        b"**",
        b"-dash",
        b"back\\slash",
        "üñí".as_bytes(),
    ];
    for name in odd {
        let scratch = Scratch::new();
        let name = OsString::from_vec(name.to_vec());
        let file = scratch.file(Path::new("dir").join(&name), "canary");
        let below = scratch.file(Path::new("grant").join(&name).join("below"), "canary");
        let run = || Run::new().write(scratch.join("grant")).write(scratch.join("dir"));
        for (rule, path) in [(&file, &file), (&scratch.join("grant").join(&name), &below)] {
            allowed(act(run(), &[&"read", path]));
            blocked(act(run().deny(rule), &[&"read", path]), CLOSED);
        }
    }
}

#[test]
fn characters_of_globs_match_no_more_than_they_say() {
    require!("userns");
    let scratch = Scratch::new();
    let (x, y) = (scratch.file("dir/x", "content"), scratch.file("dir/y", "content"));
    let run = || Run::new().read(scratch.join("dir")).deny(scratch.join("dir/[x]"));
    blocked(act(run(), &[&"read", &x]), CLOSED);
    allowed(act(run(), &[&"read", &y]));
}

#[test]
fn rule_that_matches_nothing() {
    require!("userns");
    let (_scratch, project) = project();
    for rule in [project.join("missing"), "/nowhere/at/all".into(), "**/no-such-name".into()] {
        let run = || Run::new().write(&project).deny(&rule);
        allowed(act(run(), &[&"read", &project.join(".env")]));
        assert_eq!(report(run())["status"], "enforced");
    }
}

#[test]
fn nothing_is_made_on_the_host() {
    require!("userns");
    let (scratch, project) = project();
    let before = scratch.tree();
    let modes = |tree: &[PathBuf]| -> Vec<u32> {
        tree.iter().map(|path| fs::symlink_metadata(path).unwrap().mode()).collect()
    };
    let modes_before = modes(&before);
    let run = Run::new().write(&project).deny("**/.env").deny("**/hooks").deny(project.join("no"));
    run.shell("true").run().code_is(0);
    assert_eq!(scratch.tree(), before);
    assert_eq!(modes(&before), modes_before);
    assert_eq!(fs::read_to_string(project.join(".env")).unwrap(), "canary");
}

#[test]
fn the_rest_of_the_grant_works() {
    require!("userns");
    let (_scratch, project) = project();
    let run = || Run::new().write(&project).deny("**/.env").deny("**/.git/hooks");
    let new = project.join("src/app/new");
    allowed(act(run(), &[&"create", &new]));
    let owner = fs::metadata(&new).unwrap();
    assert_eq!(owner.uid(), euid());
    allowed(act(run(), &[&"rename", &new, &project.join("src/app/renamed")]));
    allowed(act(run(), &[&"write", &project.join(".git/config")]));
    allowed(act(run(), &[&"hardlink", &project.join("src/app/main"), &project.join("src/app/m")]));
    allowed(act(run(), &[&"unlink", &project.join("src/app/renamed")]));
    allowed(act(run(), &[&"mkdir", &project.join("src/app/dir")]));
    allowed(act(run(), &[&"rename", &project.join("src/app/dir"), &project.join("src/app/d2")]));
    allowed(act(run(), &[&"rmdir", &project.join("src/app/d2")]));
    // The price of holding directories: between them a rename is one between file systems,
    // which mv knows how to do.
    blocked(
        act(run(), &[&"rename", &project.join("src/app/main"), &project.join("main")]),
        &["EXDEV"],
    );
    run().cwd(&project).shell("mv src/app/main main").run().code_is(0);
    assert_eq!(fs::read_to_string(project.join("main")).unwrap(), "content");
}

#[test]
fn git_commits_without_its_hooks() {
    require!("userns");
    let scratch = Scratch::new();
    let project = scratch.dir("project");
    let git = |run: Run, script: &str| run.cwd(&project).shell(script).run();
    if !has_program("git") {
        return;
    }
    let settle = "git init -q . && git config user.name x && git config user.email x@x";
    git(Run::bare(), settle).code_is(0);
    let hook = scratch.script("project/.git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    let commit = "echo x >> file && git add file && git commit -q -m x && git log --oneline";
    let run = || Run::new().write(&project);
    assert_ne!(git(run(), commit).code, 0, "the hook refuses");
    git(run().deny("**/.git/hooks"), commit).code_is(0);
    let replace = "echo '#!/bin/sh' > .git/hooks/pre-commit";
    assert_ne!(git(run().deny("**/.git/hooks"), replace).code, 0);
    assert!(fs::read_to_string(&hook).unwrap().contains("exit 1"));
    git(run(), replace).code_is(0);
}

#[test]
fn overlapping_rules() {
    require!("userns");
    let (_scratch, project) = project();
    let run = || {
        let run = Run::new().write(&project).read(project.join("src/app/main"));
        run.deny("**/.env").deny(project.join("src")).deny("**/app").deny(project.join("src/app"))
    };
    blocked(act(run(), &[&"read", &project.join("src/app/main")]), CLOSED);
    blocked(act(run(), &[&"read", &project.join(".env")]), CLOSED);
    allowed(act(run(), &[&"read", &project.join(".git/config")]));
}

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

#[test]
fn too_many_matches() {
    require!("userns");
    let scratch = Scratch::new();
    for number in 0..4100 {
        scratch.file(format!("dir/{number}.key"), "");
    }
    let run = || act(Run::new().write(scratch.join("dir")), &[&"list", &scratch.join("dir")]);
    let refused = run().deny("**/*.key").run();
    assert!(refused.is_clear_error().stderr.contains("more than 4096 paths"), "{refused}");
    refused.code_is(125);
    for number in 4090..4100 {
        fs::remove_file(scratch.join(format!("dir/{number}.key"))).unwrap();
    }
    let run = run().deny("**/*.key");
    blocked(act(run, &[&"read", &scratch.join("dir/4089.key")]), CLOSED);
}

/// The report's word on deny rules after a run.
fn report(run: Run) -> Value {
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    run.flag("--report").arg(&path).shell("true").run().code_is(0);
    let report: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    report["controls"]["deny"].clone()
}

#[test]
fn report_counts_and_names_what_is_not_covered() {
    require!("userns");
    let (_scratch, project) = project();
    let deny = report(Run::new().write(&project).deny("**/.env").deny("**/.git/hooks"));
    assert_eq!(deny["status"], "enforced");
    assert_eq!(deny["seen"], serde_json::json!(["3 held in place", "3 masked"]));
    let by = deny["by"].as_str().unwrap();
    for gap in ["come", "later", "host replaces", "hard links"] {
        assert!(by.contains(gap), "{gap}: {by}");
    }
    assert_eq!(report(Run::new().write(&project))["status"], "not_requested");
}

#[test]
fn what_is_not_covered_is_said_truly() {
    require!("userns");
    let (_scratch, project) = project();
    let run = || Run::new().write(&project).deny("**/.env");
    // These are the words of the report; when one of them no longer works, they must change.
    let new = project.join("src/.env");
    allowed(act(act(run(), &[&"create", &new]), &[&"read", &new]));
    let other = project.join("other-name");
    fs::hard_link(project.join(".env"), &other).unwrap();
    assert_eq!(allowed(act(run(), &[&"read", &other])).detail, "canary");
}

#[test]
fn swapped_for_something_else_during_set_up() {
    require!("userns");
    let (_scratch, project) = project();
    let (file, other) = (project.join(".env"), project.join("other"));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = fs::rename(&file, &other);
                let _ = symlink("src/app/main", &file);
                let _ = fs::rename(&other, &file);
            }
        });
        for _ in 0..30 {
            let finished = act(Run::new().read(&project).deny(&file), &[&"list", &project]).run();
            finished.has_no_panic();
            assert!([0, 125].contains(&finished.code), "{finished}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
