use super::*;
use crate::unix::fixture::Fixture;

const NONE: Variable<'static> = &|_| None;

fn program(path: PathBuf) -> Option<Behind> {
    Some(Behind::Program(path))
}

fn pyenv(f: &Fixture) -> PathBuf {
    for version in ["3.9.1", "3.10.12", "3.11.7"] {
        f.program(format!("home/.pyenv/versions/{version}/bin/python"), "");
    }
    f.program("home/.pyenv/shims/python", "#!/usr/bin/env bash\n")
}

fn python(f: &Fixture, version: &str) -> Option<Behind> {
    program(f.path(format!("home/.pyenv/versions/{version}/bin/python")))
}

#[test]
fn pyenv_asks_the_variable_then_the_project_then_the_user() {
    let f = Fixture::new();
    let shim = pyenv(&f);
    let cwd = f.directory("home/project/deep");
    let by = |variable| behind(&shim, &cwd, variable);
    f.file("home/.pyenv/version", "3.9.1\n");
    assert_eq!(by(NONE), python(&f, "3.9.1"));
    f.file("home/project/.python-version", "3.10\n");
    assert_eq!(by(NONE), python(&f, "3.10.12"));
    let said: Variable<'_> = &|name| (name == "PYENV_VERSION").then(|| "3.11.7".to_owned());
    assert_eq!(by(said), python(&f, "3.11.7"));
}

#[test]
fn pyenv_takes_the_first_listed_version_that_has_the_program() {
    let f = Fixture::new();
    let shim = pyenv(&f);
    let find = |version: &str| {
        f.file("home/.pyenv/version", version);
        behind(&shim, &f.home(), NONE)
    };
    assert_eq!(find("2.7.18\n3.9.1\n"), python(&f, "3.9.1"));
    // Not 3.11.7: a version is more than the letters it starts with.
    assert_eq!(find("3.1\n3.9.1"), python(&f, "3.9.1"));
    assert_eq!(find("gone"), python(&f, "3.11.7"));
    assert_eq!(find("system"), Some(Behind::Elsewhere(shim.clone())));
}

#[test]
fn without_any_word_the_system_comes_first() {
    let f = Fixture::new();
    let shim = pyenv(&f);
    let newest = f.path("home/.pyenv/versions/3.11.7/bin/python");
    assert_eq!(behind(&shim, &f.home(), NONE), Some(Behind::Elsewhere(newest)));
}

#[test]
fn asdf_reads_tool_versions_of_the_project_and_of_home() {
    let f = Fixture::new();
    for version in ["18.2.0", "20.1.0", "9.0.0"] {
        f.program(format!("home/.asdf/installs/nodejs/{version}/bin/node"), "");
    }
    f.program("home/.asdf/installs/another/1.0/bin/node", "");
    let shim = f.program(
        "home/.asdf/shims/node",
        "#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.1.0\nexec asdf exec \"node\" \"$@\"\n",
    );
    let node =
        |version: &str| program(f.path(format!("home/.asdf/installs/nodejs/{version}/bin/node")));
    let cwd = f.directory("work/deep");
    let home = f.home().to_str().unwrap().to_owned();
    let variable: Variable<'_> = &|name| (name == "HOME").then(|| home.clone());
    let find = || behind(&shim, &cwd, variable);
    assert_eq!(find(), node("20.1.0"));
    f.file("home/.tool-versions", "python 3.11\nnodejs 9.0.0\n");
    assert_eq!(find(), node("9.0.0"));
    f.file("work/.tool-versions", "nodejs 18.2.0 # long-term\n");
    assert_eq!(find(), node("18.2.0"));
    // A nearer file that does not name the tool says nothing about it.
    f.file("work/deep/.tool-versions", "python 3.12\n");
    assert_eq!(find(), node("18.2.0"));
    let said: Variable<'_> = &|name| (name == "ASDF_NODEJS_VERSION").then(|| "9.0.0".to_owned());
    assert_eq!(behind(&shim, &cwd, said), node("9.0.0"));
    f.file("work/deep/.tool-versions", "nodejs system\n");
    assert_eq!(find(), Some(Behind::Elsewhere(shim.clone())));
}

#[test]
fn mise_shims_are_links_to_mise_itself() {
    let f = Fixture::new();
    let root = "home/.local/share/mise";
    let mise = f.program("home/.local/bin/mise", "");
    for version in ["20.1.0", "22.3.0"] {
        f.program(format!("{root}/installs/node/{version}/bin/node"), "");
    }
    f.link(format!("{root}/installs/node/20"), "./20.1.0");
    f.link(format!("{root}/installs/node/latest"), "./22.3.0");
    let shim = f.link(format!("{root}/shims/node"), mise);
    let node = |version: &str| program(f.path(format!("{root}/installs/node/{version}/bin/node")));
    let cwd = f.home().join("project");
    let find = || behind(&shim, &cwd, NONE);
    assert_eq!(find(), node("22.3.0"));
    f.file("home/project/mise.toml", "[tools]\nnode = \"20\"\n");
    assert_eq!(find(), node("20"));
}

#[test]
fn volta_knows_the_default_the_project_and_packages() {
    let f = Fixture::new();
    let image = "home/.volta/tools/image";
    for version in ["18.0.0", "20.1.0", "22.0.0"] {
        f.program(format!("{image}/node/{version}/bin/node"), "");
    }
    let tsc = f.program(format!("{image}/packages/typescript/bin/tsc"), "");
    let own = f.program("home/.volta/bin/volta-shim", "");
    let node_shim = f.link("home/.volta/bin/node", &own);
    let tsc_shim = f.link("home/.volta/bin/tsc", &own);
    let cwd = f.home().join("project");
    let node = |version: &str| program(f.path(format!("{image}/node/{version}/bin/node")));
    let find = |shim: &Path| behind(shim, &cwd, NONE);
    assert_eq!(find(&node_shim), node("22.0.0"));
    f.file("home/.volta/tools/user/platform.json", r#"{"node":{"runtime":"20.1.0"}}"#);
    assert_eq!(find(&node_shim), node("20.1.0"));
    f.file("home/project/package.json", r#"{"volta":{"node":"18.0.0"}}"#);
    assert_eq!(find(&node_shim), node("18.0.0"));
    f.file("home/.volta/tools/user/bins/tsc.json", r#"{"package":"typescript"}"#);
    assert_eq!(find(&tsc_shim), program(tsc));
    assert_eq!(find(&own), None);
}

#[test]
fn an_ordinary_program_is_no_shim() {
    let f = Fixture::new();
    assert_eq!(behind(&f.program("home/bin/tool", ""), &f.home(), NONE), None);
    assert_eq!(behind(&f.program("home/shims/tool", ""), &f.home(), NONE), None);
    assert_eq!(behind(Path::new("/"), Path::new("/"), NONE), None);
}

#[test]
fn a_version_is_a_name_and_no_way_to_somewhere_else() {
    let f = Fixture::new();
    let shim = pyenv(&f);
    f.program("home/outside/bin/python", "");
    let find = |version: &str| {
        f.file("home/.pyenv/version", version);
        behind(&shim, &f.home(), NONE)
    };
    assert_eq!(find("3.9.1"), python(&f, "3.9.1"));
    for version in ["../../outside", "3.9.1/../../../outside", "..", "."] {
        assert_eq!(find(version), None, "{version}");
    }
}

#[test]
fn rustup_stands_for_the_programs_of_a_toolchain() {
    let f = Fixture::new();
    f.program("home/.cargo/bin/rustup", "");
    let shim = f.path("home/.cargo/bin/cargo");
    std::os::unix::fs::symlink("rustup", &shim).unwrap();
    for toolchain in ["stable-x86_64-unknown-linux-gnu", "1.80.0-x86_64-unknown-linux-gnu"] {
        f.program(format!("home/.rustup/toolchains/{toolchain}/bin/cargo"), "");
    }
    let cargo = |name: &str| program(f.path(format!("home/.rustup/toolchains/{name}/bin/cargo")));
    let home = f.home().display().to_string();
    let only_home: Variable<'_> = &|name| (name == "HOME").then(|| home.clone());
    assert_eq!(behind(&shim, &f.home(), only_home), None);
    f.file("home/.rustup/settings.toml", "default_toolchain = \"stable\"\n");
    assert_eq!(behind(&shim, &f.home(), only_home), cargo("stable-x86_64-unknown-linux-gnu"));
    f.file("home/project/rust-toolchain.toml", "[toolchain]\nchannel = \"1.80.0\" # old\n");
    let project = f.path("home/project");
    assert_eq!(behind(&shim, &project, only_home), cargo("1.80.0-x86_64-unknown-linux-gnu"));
    let both: Variable<'_> = &|name| match name {
        "RUSTUP_TOOLCHAIN" => Some("../../evil".to_owned()),
        other => only_home(other),
    };
    assert_eq!(behind(&shim, &project, both), None);
    assert_eq!(behind(&f.path("home/.cargo/bin/rustup"), &project, only_home), None);
}
