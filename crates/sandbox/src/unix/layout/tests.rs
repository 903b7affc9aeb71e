use super::*;
use crate::unix::fixture::Fixture;
use crate::unix::writable::Writable;

fn surroundings(file: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    super::surroundings(file, home, &Writable::default())
}

/// What is shown for a program at `at`, below a home that lies elsewhere.
fn absolute(at: &str) -> Vec<PathBuf> {
    surroundings(Path::new(at), Some(Path::new("/home/me")))
}

fn paths(list: &[&str]) -> Vec<PathBuf> {
    list.iter().map(PathBuf::from).collect()
}

#[test]
fn stores_are_shown_whole() {
    for (file, whole) in [
        ("/nix/store/abc-nodejs-20.1.0/bin/node", "/nix/store"),
        ("/gnu/store/abc-python-3.10/bin/python3", "/gnu/store"),
        ("/opt/homebrew/Cellar/node/20.1.0/bin/node", "/opt/homebrew"),
        ("/opt/homebrew/bin/node", "/opt/homebrew"),
        ("/home/linuxbrew/.linuxbrew/Cellar/uv/0.5/bin/uv", "/home/linuxbrew/.linuxbrew"),
    ] {
        assert_eq!(absolute(file), paths(&[whole]));
    }
}

#[test]
fn a_home_is_never_a_prefix_whoever_runs_us() {
    for home in ["/home/me", "/home/other", "/root", "/var/home/x", "/Users/x", "/home", "/"] {
        let file = Path::new(home).join("bin/tool");
        for own in [None, Some("/home/me"), Some("/root"), Some("/")] {
            assert_eq!(
                surroundings(&file, own.map(Path::new)),
                std::slice::from_ref(&file),
                "{own:?}"
            );
        }
    }
    let above = Path::new("/data/people/bin/tool");
    assert_eq!(surroundings(above, Some(Path::new("/data/people/me"))), [above]);
}

#[test]
fn only_installations_have_a_prefix() {
    assert_eq!(absolute("/opt/tool/bin/tool"), paths(&["/opt/tool"]));
    assert_eq!(absolute("/opt/bin/tool"), paths(&["/opt/bin/tool"]));
    assert_eq!(absolute("/srv/app/bin/tool"), paths(&["/srv/app/bin/tool"]));
    assert_eq!(absolute("/srv/app/tool"), paths(&["/srv/app/tool"]));
    let at_home = Path::new("/opt/me/x/bin/tool");
    assert_eq!(surroundings(at_home, Some(Path::new("/opt/me"))), [at_home]);
}

#[test]
fn marks_of_an_installation() {
    let f = Fixture::new();
    for mark in ["pyvenv.cfg", "conda-meta/history", "include/node/node.h", "lib/rustlib/x"] {
        let name = mark.replace('/', "-");
        let program = f.program(format!("home/{name}/bin/tool"), "");
        f.file(format!("home/{name}/{mark}"), "");
        let shown = surroundings(&program, Some(&f.home()));
        assert_eq!(shown, [f.path(format!("home/{name}"))]);
        f.keeps_secrets(&shown);
    }
    // Neither a project's own directories nor a compiler's output are marks.
    for unmarked in ["release/x", "lib/modules/x", "lib/tool.js", "package.json", "python3/x"] {
        let program = f.program("home/project/bin/tool", "");
        f.file(Path::new("home/project").join(unmarked), "");
        assert_eq!(surroundings(&program, Some(&f.home())), [program], "{unmarked}");
    }
}

#[test]
fn user_installs_show_python_packages_and_nothing_else() {
    let f = Fixture::new();
    let script = f.program("home/.local/bin/tool", "");
    let new = f.directory("home/.local/lib/python3.12");
    let old = f.directory("home/.local/lib/python3.9");
    f.directory("home/.local/lib/other");
    let shown = surroundings(&script, Some(&f.home()));
    assert_eq!(shown, [script.clone(), new, old]);
    f.keeps_secrets(&shown);
    assert_eq!(surroundings(&script, None), shown);
}

/// `npm config set prefix ~` and `~/.local` are common, and neither shows what is beside it.
#[test]
fn global_npm_installs_show_their_modules_alone() {
    let f = Fixture::new();
    for prefix in ["home", "home/.local", "home/project"] {
        let script = f.program(format!("{prefix}/lib/node_modules/x/bin/cli.js"), "");
        let shown = surroundings(&script, Some(&f.home()));
        assert_eq!(shown, [f.path(format!("{prefix}/lib/node_modules"))]);
        f.keeps_secrets(&shown);
    }
    assert_eq!(
        absolute("/srv/app/node_modules/a/node_modules/b/bin/b.js"),
        paths(&["/srv/app/node_modules"])
    );
}
