//! Ways around a deny rule that a command may try: links, other names, removal, modes, and a swap at the start.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::deny::{CLOSED, FIXED, HELD, act, denied, project};
use crate::require;
use crate::support::{Run, allowed, blocked};

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
