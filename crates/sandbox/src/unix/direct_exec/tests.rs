use super::*;
use crate::unix::fixture::Fixture;
use crate::unix::writable::Writable;

fn words(list: &[&str]) -> Vec<OsString> {
    list.iter().map(OsString::from).collect()
}

/// What is executed for a script with this first line, started as `tool --flag`.
fn started(f: &Fixture, line: &str) -> Result<(PathBuf, Vec<OsString>), Error> {
    let script = f.program("home/tool", format!("{line}\n"));
    let (cwd, bin) = (f.directory("home/project"), f.directory("bin"));
    let writable = Writable::default();
    let search = ProgramSearch {
        path: vec![bin],
        home: None,
        cwd: &cwd,
        variable: &|_| None,
        writable: &writable,
    };
    direct(&script, words(&["tool", "--flag"]), &search)
}

#[test]
fn what_the_kernel_does_alone_is_left_to_it() {
    let f = Fixture::new();
    let script = f.path("home/tool");
    for line in ["\x7fELF", "#!/bin/sh", "#! /bin/sh -eu", "#!", "# no interpreter"] {
        assert_eq!(
            started(&f, line).unwrap(),
            (script.clone(), words(&["tool", "--flag"])),
            "{line}"
        );
    }
}

#[test]
fn env_is_looked_up_for() {
    let f = Fixture::new();
    let node = f.program("bin/node", "\x7fELF");
    let (node, script) = (node.to_str().unwrap(), f.path("home/tool"));
    let script = script.to_str().unwrap();
    for (line, arguments) in [
        ("#!/usr/bin/env node", vec![node, script, "--flag"]),
        ("#! /usr/bin/env\tnode  ", vec![node, script, "--flag"]),
        ("#!/usr/bin/env -S node", vec![node, script, "--flag"]),
        ("#!/usr/bin/env -S node --a --b", vec![node, "--a", "--b", script, "--flag"]),
    ] {
        let wanted = (PathBuf::from(node), words(&arguments));
        assert_eq!(started(&f, line).unwrap(), wanted, "{line}");
    }
}

#[test]
fn scripts_of_scripts() {
    let f = Fixture::new();
    let node = f.program("bin/node", "\x7fELF");
    let middle = f.program("bin/middle", "#!/usr/bin/env node\n");
    let (program, arguments) = started(&f, &format!("#!{} -x", middle.display())).unwrap();
    assert_eq!(program, node);
    let tool = f.path("home/tool");
    let wanted = [node.as_os_str(), middle.as_os_str(), "-x".as_ref(), tool.as_os_str()];
    assert_eq!(arguments[..4], wanted.map(OsStr::to_owned));
}

#[test]
fn more_than_finding_a_program_is_said() {
    let f = Fixture::new();
    f.program("bin/node", "\x7fELF");
    for line in [
        "#!/usr/bin/env -i node",
        "#!/usr/bin/env -S -u X node",
        "#!/usr/bin/env -S A=b node",
        "#!/usr/bin/env -S node \"--a b\"",
        "#!/usr/bin/env node --a",
        "#!/usr/bin/env",
    ] {
        let error = started(&f, line).unwrap_err().to_string();
        assert!(error.contains("second exec"), "{line}: {error}");
    }
    assert!(matches!(started(&f, "#!/usr/bin/env nope"), Err(Error::NotFound { .. })));
}
