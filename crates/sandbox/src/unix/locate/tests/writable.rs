//! What a command may have put into a place that it may write.

use super::*;

/// Locates with the project writable, and says what is shown and what is not.
fn in_writable_project(f: &Fixture, path: &[&str], command: &str) -> Result<Located, Unshown> {
    let home = f.home();
    let cwd = f.directory("home/project");
    let place = |path| crate::core::request::Place {
        path,
        kind: crate::core::request::PlaceKind::Directory,
    };
    let writable = Writable::new(&[place(f.directory("granted"))], &[place(cwd.clone())], None);
    let search = ProgramSearch {
        path: path.iter().map(|directory| f.path(directory)).collect(),
        home: Some(&home),
        cwd: &cwd,
        variable: &|_| None,
        writable: &writable,
    };
    match locate(OsStr::new(command), &search) {
        Ok(located) => Ok(located),
        Err(Unlocated::Unshown(unshown)) => Err(unshown),
        Err(Unlocated::Error(error)) => panic!("{command}: {error}"),
    }
}

/// Only what lies outside of the project: the rest is granted.
fn outside(f: &Fixture, located: &Located) -> Vec<PathBuf> {
    let project = f.path("home/project");
    located.shown.iter().filter(|shown| !shown.starts_with(&project)).cloned().collect()
}

#[test]
fn links_that_the_command_may_have_made_show_nothing() {
    let f = Fixture::new();
    let key = f.program("keys/deploy", "#!/bin/sh\n");
    f.link("home/project/.venv/bin/zz", &key);
    let path = ["home/project/.venv/bin"];
    let unshown = in_writable_project(&f, &path, "zz").unwrap_err();
    assert_eq!((unshown.to, unshown.root), (key.clone(), f.path("home/project")));
    // By its own path, through a directory, by `..`, and by a trusted link that leads there.
    f.link("home/project/dir", f.path("keys"));
    f.link("links/tool", f.path("home/project/.venv/bin/zz"));
    let last = f.path("links/tool");
    for command in [".venv/bin/zz", "dir/deploy", "dir/../keys/deploy", last.to_str().unwrap()] {
        assert!(in_writable_project(&f, &[], command).is_err(), "{command}");
    }
    // Positive controls: without a link, and with an end that is granted or the system's.
    assert_eq!(outside(&f, &in_writable_project(&f, &["keys"], "deploy").unwrap()), [key]);
    let granted = f.program("granted/tool", "#!/bin/sh\n");
    f.link("home/project/.venv/bin/granted", granted);
    assert!(in_writable_project(&f, &path, "granted").is_ok());
    f.link("home/project/.venv/bin/sh", "/usr/bin/env");
    assert!(in_writable_project(&f, &path, "sh").is_ok());
}

#[test]
fn a_project_chooses_among_the_interpreters_of_version_managers() {
    let f = Fixture::new();
    let managed = "home/.local/share/uv/python/cpython-3.12";
    let other = "home/work/python";
    for prefix in [managed, other] {
        f.program(format!("{prefix}/bin/python3"), "\x7fELF");
        f.directory(format!("{prefix}/lib/python3.12"));
    }
    let path = ["home/project/.venv/bin"];
    let venv = |prefix: &str| {
        let _ = fs::remove_dir_all(f.path("home/project/.venv"));
        f.link("home/project/.venv/bin/python3", f.path(prefix).join("bin/python3"));
        let bin = f.path(prefix).join("bin");
        f.file("home/project/.venv/pyvenv.cfg", format!("home = {}\n", bin.display()));
        let python = f.path("home/project/.venv/bin/python3");
        f.program("home/project/.venv/bin/tool", format!("#!{}\n", python.display()));
        f.program("home/project/.venv/bin/straight", format!("#!{}/python3\n", bin.display()));
        f.program("home/project/.venv/bin/env", "#!/usr/bin/env python3\n");
    };
    for name in ["python3", "tool", "straight", "env"] {
        venv(managed);
        let found = in_writable_project(&f, &path, name).unwrap();
        assert_eq!(outside(&f, &found), [f.path(managed)], "{name}");
        assert_eq!(found.unshown, [], "{name}");
        venv(other);
        match in_writable_project(&f, &path, name) {
            Ok(found) => {
                assert_eq!(outside(&f, &found), [] as [PathBuf; 0], "{name}");
                assert!(!found.unshown.is_empty(), "{name}");
            }
            Err(unshown) => assert_eq!(unshown.read, f.path(other), "{name}"),
        }
        // Where the user has it on PATH, it is the user's choice.
        let path = ["home/project/.venv/bin", "home/work/python/bin"];
        let found = in_writable_project(&f, &path, name).unwrap();
        assert_eq!(outside(&f, &found), [f.path(other)], "{name}");
    }
}

#[test]
fn other_environments_and_scripts_are_not_the_commands_to_choose() {
    let f = Fixture::new();
    let managed = "home/.local/share/uv/python/cpython-3.12";
    f.program(format!("{managed}/bin/python3"), "\x7fELF");
    f.directory(format!("{managed}/lib/python3.12"));
    // An environment of another project, on the way to an interpreter that may be shown.
    let other = f.link("home/other/.venv/bin/python3", f.path(managed).join("bin/python3"));
    f.file("home/other/.venv/pyvenv.cfg", "home = /nowhere\n");
    f.link("home/project/.venv/bin/linked", &other);
    f.program("home/project/.venv/bin/said", format!("#!{}\n", other.display()));
    for name in ["linked", "said"] {
        let found = in_writable_project(&f, &["home/project/.venv/bin"], name).unwrap();
        assert_eq!(outside(&f, &found), [f.path(managed)], "{name}");
    }
    assert!(located(&f, &[], &other).shown.contains(&f.path("home/other/.venv")));
    // A script on PATH may hold anything; a compiled program does not.
    let deploy = f.program("home/bin/deploy", "#!/bin/sh\n");
    let compiled = f.program("home/bin/compiled", "\x7fELF");
    let path = ["home/project/bin", "home/bin"];
    f.program("home/project/bin/a", "#!/usr/bin/env deploy\n");
    f.program("home/project/bin/b", "#!/usr/bin/env compiled\n");
    let found = in_writable_project(&f, &path, "a").unwrap();
    assert_eq!((outside(&f, &found), found.unshown.len()), (vec![], 1));
    assert_eq!(outside(&f, &in_writable_project(&f, &path, "b").unwrap()), [compiled]);
    assert_eq!(outside(&f, &in_writable_project(&f, &path, "deploy").unwrap()), [deploy]);
}

/// Stand-ins and marks of an installation that the command may have made.
#[test]
fn what_is_writable_makes_no_installation_and_no_stand_in() {
    let f = Fixture::new();
    f.program("keys/bin/zz", "#!/bin/sh\n");
    f.directory("home/project/tools/image");
    let name = f.path("keys");
    let entry = format!("{{\"package\": \"{}\"}}", name.display());
    f.file("home/project/tools/user/bins/zz.json", entry);
    let own = f.program("home/project/bin/zz", "#!/bin/sh\n");
    let found = in_writable_project(&f, &["home/project/bin"], "zz").unwrap();
    assert_eq!((outside(&f, &found), found.program), (vec![], own));
    // The same place elsewhere is a stand-in.
    f.directory("volta/tools/image/packages");
    f.program("volta/tools/image/node/20/bin/node", "\x7fELF");
    f.directory("volta/tools/image/node/20/include/node");
    f.program("volta/bin/node", "#!/bin/sh\n");
    let found = in_writable_project(&f, &["volta/bin"], "node").unwrap();
    assert_eq!(found.program, f.path("volta/tools/image/node/20/bin/node"));

    let tool = f.program("tools/bin/tool", "\x7fELF");
    f.directory("home/project/lib/python3.12");
    f.link("tools/lib", f.path("home/project/lib"));
    assert_eq!(outside(&f, &in_writable_project(&f, &["tools/bin"], "tool").unwrap()), [tool]);
    f.directory("tools/conda-meta");
    let found = in_writable_project(&f, &["tools/bin"], "tool").unwrap();
    assert_eq!(outside(&f, &found), [f.path("tools")]);
}
