//! File systems whose server takes `CONFIG` for `config` without the kernel's knowledge: a mount closes one spelling
//! alone, so a run that would rest on it does not start.

use std::fs;
use std::path::{Path, PathBuf};

use crate::require;
use crate::support::fuse::{Fuse, Names};
use crate::support::{Preparation, Run, Scratch, allowed, blocked, skip};

fn mounted(names: Names) -> Option<(Scratch, PathBuf, Fuse)> {
    let scratch = Scratch::new();
    let project = scratch.open_dir("project");
    match Fuse::mount(&project, names) {
        Ok(fuse) => Some((scratch, project, fuse)),
        Err(why) => {
            skip("fuse", why);
            None
        }
    }
}

/// As root and as an ordinary user.
fn runs() -> [fn() -> Run; 2] {
    [Run::new, || Run::new().flag("--no-log").prepare(Preparation::Uid(1001))]
}

fn protecting(run: Run, project: &Path) -> Run {
    run.flag("--protect").write(project)
}

#[test]
fn a_server_that_folds_names_stops_the_run() {
    require!("userns", "root");
    for names in [Names::Folded, Names::FoldedApart] {
        let Some((_scratch, project, _fuse)) = mounted(names) else {
            return;
        };
        // It does what is feared.
        assert!(fs::read(project.join(".git/CONFIG")).unwrap().starts_with(b"[core]"));
        for run in runs() {
            let refused = protecting(run(), &project).shell("true").run();
            refused.code_is(125);
            assert!(refused.stderr.contains("ignores case in names"), "{refused}");
            for rule in ["**/.env", "sub/.env", "SUB/.env", "sub/.ENV"] {
                for run in [run().write(&project), run().read(&project)] {
                    let refused = run.cwd(&project).deny(rule).shell("cat .ENV sub/.ENV").run();
                    refused.code_is(125);
                    assert!(!refused.text().contains("canary"), "{refused}");
                    assert!(refused.stderr.contains("ignores case in names"), "{refused}");
                }
            }
            // Nothing closed rests on names here.
            let open =
                run().read(&project).probe(&["read".as_ref(), project.join(".ENV").as_os_str()]);
            assert!(open.run().outcomes.last().unwrap().ok);
        }
    }
}

#[test]
fn a_server_that_minds_case_is_as_good_as_any() {
    require!("userns", "root");
    let Some((_scratch, project, _fuse)) = mounted(Names::Exact) else {
        return;
    };
    for run in runs() {
        protecting(run(), &project).shell("true").run().code_is(0);
        let secret = project.join("sub/.env");
        let read = |run: Run| run.probe(&["read".as_ref(), secret.as_os_str()]);
        blocked(read(run().write(&project).deny("**/.env")), &["EACCES"]);
        allowed(read(run().write(&project)));
    }
}

/// Two files whose names differ in their case alone are two files.
#[test]
fn names_in_both_cases_are_no_reason() {
    require!("userns");
    let scratch = Scratch::new();
    let closed = scratch.file("project/.env", "canary");
    let open = scratch.file("project/.ENV", "content");
    let read = |path: &Path| {
        let run = Run::new().write(scratch.join("project")).deny("**/.env");
        run.probe(&["read".as_ref(), path.as_os_str()])
    };
    blocked(read(&closed), &["EACCES"]);
    allowed(read(&open));
}
