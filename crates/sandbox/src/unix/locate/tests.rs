use super::*;
use crate::unix::fixture::Fixture;

mod writable;

/// Locates with these directories on PATH, started in `home/project`.
fn try_locate(f: &Fixture, path: &[&str], command: impl AsRef<OsStr>) -> Result<Located, Error> {
    let writable = Writable::default();
    let home = f.home();
    let cwd = f.directory("home/project");
    locate(
        command.as_ref(),
        &ProgramSearch {
            path: path.iter().map(|directory| f.path(directory)).collect(),
            home: Some(&home),
            cwd: &cwd,
            variable: &|_| None,
            writable: &writable,
        },
    )
    .map_err(Error::from)
}

/// What is shown, once it is sure that no secret is.
fn located(f: &Fixture, path: &[&str], command: impl AsRef<OsStr>) -> Located {
    let located = try_locate(f, path, command).unwrap();
    f.keeps_secrets(&located.shown);
    for place in &located.shown {
        assert!(!fs::symlink_metadata(place).unwrap().is_symlink(), "{}", place.display());
    }
    located
}

fn shown(f: &Fixture, list: &[&str]) -> Vec<PathBuf> {
    list.iter().map(|place| f.path(place)).collect()
}

fn link_names(located: &Located) -> Vec<&Path> {
    located.links.iter().map(|link| link.at.as_path()).collect()
}

/// A node installation at `prefix`, with npm as a link into its modules.
fn node(f: &Fixture, prefix: &str) {
    f.program(format!("{prefix}/bin/node"), "\x7fELF");
    f.program(format!("{prefix}/lib/node_modules/npm/bin/npm-cli.js"), "#!/usr/bin/env node\n");
    f.link(format!("{prefix}/bin/npm"), "../lib/node_modules/npm/bin/npm-cli.js");
}

#[test]
fn nvm() {
    let f = Fixture::new();
    let prefix = "home/.nvm/versions/node/v20.1.0";
    node(&f, prefix);
    let bin = format!("{prefix}/bin");
    assert_eq!(
        located(&f, &[&bin], "node"),
        Located {
            program: f.path(&bin).join("node"),
            shown: shown(&f, &[prefix]),
            links: vec![],
            directories: shown(&f, &[&bin]),
            unshown: vec![],
        }
    );
    let npm = located(&f, &[&bin], "npm");
    assert_eq!(npm.program, f.path(&bin).join("npm"));
    assert!(npm.shown.contains(&f.path(prefix)));
    assert_eq!(npm.directories, shown(&f, &[&bin]));
}

/// fnm and Nix profiles put a directory on PATH that is reached through a link.
#[test]
fn fnm() {
    let f = Fixture::new();
    let prefix = "home/.local/share/fnm/node-versions/v20.1.0/installation";
    node(&f, prefix);
    let link = f.link("run/fnm_multishells/1_2", f.path(prefix));
    f.program("home/project/server", "#!/usr/bin/env node\n");
    let found = located(&f, &["run/fnm_multishells/1_2/bin"], "./server");
    assert_eq!(found.shown, shown(&f, &["home/project/server", prefix]));
    assert_eq!(link_names(&found), [link.as_path()]);
    assert_eq!(found.directories.last(), Some(&link.join("bin")));
}

#[test]
fn pyenv() {
    let f = Fixture::new();
    let prefix = "home/.pyenv/versions/3.11.7";
    f.program(format!("{prefix}/bin/python3.11"), "\x7fELF");
    f.link(format!("{prefix}/bin/python3"), "python3.11");
    f.directory(format!("{prefix}/lib/python3.11"));
    f.directory("home/.pyenv/versions/3.12.0/lib/python3.12");
    f.program("home/.pyenv/versions/3.12.0/bin/python3", "\x7fELF");
    f.program("home/.pyenv/shims/python3", "#!/usr/bin/env bash\n");
    f.file("home/.pyenv/version", "3.11.7\n");
    let found = located(&f, &["home/.pyenv/shims"], "python3");
    assert_eq!(found.program, f.path(prefix).join("bin/python3"));
    assert_eq!(found.shown, shown(&f, &[prefix]));
}

#[test]
fn a_shim_for_the_system_gives_way_to_the_next_on_path() {
    let f = Fixture::new();
    f.program("home/.pyenv/versions/3.12.0/bin/python3", "\x7fELF");
    let shim = f.program("home/.pyenv/shims/python3", "\x7fELF");
    let system = f.program("system/python3", "\x7fELF");
    f.file("home/.pyenv/version", "system\n");
    let path = ["home/.pyenv/shims", "system"];
    assert_eq!(located(&f, &path, "python3").program, system);
    assert_eq!(located(&f, &path[..1], "python3").program, shim);
}

#[test]
fn uv_tool() {
    let f = Fixture::new();
    let python = "home/.local/share/uv/python/cpython-3.12.3-linux-x86_64-gnu";
    f.program(format!("{python}/bin/python3.12"), "\x7fELF");
    f.link(format!("{python}/bin/python3"), "python3.12");
    f.directory(format!("{python}/lib/python3.12"));
    let short = f.link("home/.local/share/uv/python/cpython-3.12", f.path(python));
    let tool = "home/.local/share/uv/tools/server";
    let interpreter = f.link(format!("{tool}/bin/python"), short.join("bin/python3.12"));
    let config = format!("home = {}\nuv = 0.5\n", short.join("bin").display());
    f.file(format!("{tool}/pyvenv.cfg"), config);
    f.program(format!("{tool}/bin/server"), format!("#!{}\n", interpreter.display()));
    let link = f.link("home/.local/bin/server", f.path(tool).join("bin/server"));
    let found = located(&f, &["home/.local/bin"], "server");
    assert_eq!(found.program, link);
    let mut places = found.shown.clone();
    places.sort();
    assert_eq!(places, shown(&f, &[python, tool]));
    for needed in [&link, &interpreter, &short] {
        assert!(link_names(&found).contains(&needed.as_path()), "{}", needed.display());
    }
}

#[test]
fn virtual_environment_with_copied_interpreter_shows_its_base() {
    let f = Fixture::new();
    f.program("python/bin/python3", "\x7fELF");
    f.directory("python/lib/python3.12");
    f.program("home/venv/bin/python3", "\x7fELF");
    f.file("home/venv/pyvenv.cfg", format!("home = {}\n", f.path("python/bin").display()));
    let found = located(&f, &[], f.path("home/venv/bin/python3"));
    assert_eq!(found.shown, shown(&f, &["home/venv", "python"]));
    assert_eq!(found.directories, shown(&f, &["home/venv/bin", "python/bin"]));
}

#[test]
fn project_modules() {
    let f = Fixture::new();
    node(&f, "node");
    f.program("home/project/node_modules/x/cli.js", "#!/usr/bin/env node\n");
    let link = f.link("home/project/node_modules/.bin/x", "../x/cli.js");
    let found = located(&f, &["node/bin"], "node_modules/.bin/x");
    assert_eq!(found.program, link);
    assert_eq!(found.shown, shown(&f, &["home/project/node_modules", "node"]));
}

/// npm's own prefix set to the home directory, or to ~/.local.
#[test]
fn global_modules_at_home() {
    let f = Fixture::new();
    node(&f, "node");
    for prefix in ["home", "home/.local"] {
        f.program(format!("{prefix}/lib/node_modules/x/cli.js"), "#!/usr/bin/env node\n");
        f.link(format!("{prefix}/bin/x"), "../lib/node_modules/x/cli.js");
        let found = located(&f, &[&format!("{prefix}/bin"), "node/bin"], "x");
        let modules = format!("{prefix}/lib/node_modules");
        assert_eq!(found.shown, shown(&f, &[&modules, "node"]));
    }
}

#[test]
fn single_files_are_shown_alone() {
    let f = Fixture::new();
    for place in ["home/bin", "home/.cargo/bin", "home/go/bin", "home/project/bin", "home"] {
        let tool = f.program(format!("{place}/tool"), "\x7fELF");
        assert_eq!(located(&f, &[place], "tool").shown, [tool]);
    }
}

#[test]
fn user_install_of_a_python_script() {
    let f = Fixture::new();
    f.program("python/bin/python3", "\x7fELF");
    f.directory("python/lib/python3.12");
    let packages = f.directory("home/.local/lib/python3.12");
    let text = format!("#!{}\n", f.path("python/bin/python3").display());
    let script = f.program("home/.local/bin/tool", text);
    let found = located(&f, &["home/.local/bin"], "tool");
    assert_eq!(found.shown, [script, packages, f.path("python")]);
}

/// As on hosts where /home is a link: the real path of the home directory is another one.
#[test]
fn a_home_behind_a_link_is_still_home() {
    let f = Fixture::new();
    f.file("real/.ssh/id", "canary");
    f.file("real/pyvenv.cfg", "");
    let tool = f.program("real/bin/tool", "\x7fELF");
    let home = f.link("linked", "real");
    let cwd = f.home();
    let writable = Writable::default();
    let search = ProgramSearch {
        path: vec![],
        home: Some(&home),
        cwd: &cwd,
        variable: &|_| None,
        writable: &writable,
    };
    let found = locate(home.join("bin/tool").as_os_str(), &search).map_err(Error::from).unwrap();
    assert_eq!(found.shown, [tool]);
    assert_eq!(found.program, home.join("bin/tool"));
    assert_eq!(link_names(&found), [home.as_path()]);
}

#[test]
fn interpreter_lines() {
    let f = Fixture::new();
    node(&f, "node");
    let script = f.path("home/project/script");
    for line in [
        "#!/usr/bin/env node",
        "#!/usr/bin/env -S node --flag",
        "#!/usr/bin/env -S NODE_ENV=x node",
        &format!("#! {} --flag", f.path("node/bin/node").display()),
        &format!("#!\t{}\t", f.path("node/bin/node").display()),
        "#!../../node/bin/node",
    ] {
        f.program("home/project/script", format!("{line}\n// body\n"));
        let found = located(&f, &["node/bin"], "./script");
        assert_eq!(found.shown, [script.clone(), f.path("node")], "{line}");
        assert_eq!(found.directories.last(), Some(&f.path("node/bin")), "{line}");
    }
    for plain in ["", "#!", "#! \n", "# !/bin/sh\n", "\x7fELF"] {
        f.program("home/project/script", plain);
        let found = located(&f, &[], "./script");
        assert_eq!(found.shown, std::slice::from_ref(&script), "{plain:?}");
    }
}

#[test]
fn scripts_of_scripts_end() {
    let f = Fixture::new();
    let end = f.program("d/end", "\x7fELF");
    let middle = f.program("d/middle", format!("#!{}\n", end.display()));
    let script = f.program("d/script", format!("#!{}\n", middle.display()));
    assert_eq!(located(&f, &["d"], "script").shown, [script, middle, end]);
    let endless = f.path("d/endless");
    f.program("d/endless", format!("#!{}\n", endless.display()));
    assert_eq!(located(&f, &["d"], "endless").shown, [endless]);
}

#[test]
fn dot_dot_needs_nothing_of_where_it_started() {
    let f = Fixture::new();
    let tool = f.program("home/other/tool", "\x7fELF");
    assert_eq!(located(&f, &[], "../other/tool").program, tool);
    assert_eq!(located(&f, &["home/project/../other"], "tool").program, tool);
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf8() {
    // Apple's file systems refuse such names.
    let f = Fixture::new();
    let name = OsString::from_vec(b"tool-\xff".to_vec());
    let tool = f.program(Path::new("d").join(&name), "\x7fELF");
    assert_eq!(located(&f, &["d"], &name).program, tool);
    let interpreter = [b"#!".as_slice(), tool.as_os_str().as_bytes(), b"\n"].concat();
    let script = f.program("d/script", interpreter);
    assert_eq!(located(&f, &["d"], "script").shown, [script, tool]);
}

#[test]
fn the_first_on_path_that_can_run_wins() {
    let f = Fixture::new();
    f.directory("a/tool");
    f.file("b/tool", "");
    let tool = f.program("c/tool", "\x7fELF");
    f.program("d/tool", "\x7fELF");
    assert_eq!(located(&f, &["missing", "a", "b", "c", "d"], "tool").program, tool);
}

#[test]
fn refusals_and_their_codes() {
    let f = Fixture::new();
    f.directory("d/directory");
    f.file("d/plain", "");
    f.link("d/dangling", "nowhere");
    f.link("d/loop", "loop");
    f.program("d/no-interpreter", "#!/no/such/interpreter\n");
    for (command, code, said) in [
        ("missing", 127, "missing: command not found"),
        ("./missing", 127, "./missing: command not found"),
        ("", 127, "\"\": command not found"),
        ("dangling", 127, "dangling: command not found"),
        ("loop", 127, "loop: command not found"),
        ("directory", 126, "is a directory"),
        ("../../d/directory", 126, "is a directory"),
        ("plain", 126, "is not executable"),
        ("/dev/null", 126, "is not a regular file"),
        ("no-interpreter", 126, "/no/such/interpreter: No such file"),
    ] {
        let error = try_locate(&f, &["d"], command).unwrap_err();
        assert_eq!(error.exit_code(), code, "{command}: {error}");
        assert!(error.to_string().contains(said), "{command}: {error}");
    }
}
