//! Installations, with an npm that only pretends: what it is given, and what it is not.

use std::fs;
use std::process::Command;

use crate::index::Index;
use crate::require;
use crate::support::mcp_path;
use crate::user::{Said, User};

#[test]
fn the_installation_has_the_token_and_the_index_and_scripts_have_neither() {
    require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    let words = ["pull", "npm:quick", "--allow-scripts"];
    let said: Said = index
        .command(&user, &words)
        .env("AWS_SECRET_ACCESS_KEY", "hunter4")
        .output()
        .unwrap()
        .into();
    said.ok();
    let seen = |verb: &str| fs::read_to_string(user.unpacked().join(verb)).unwrap();
    // The controls: it is reached, and the token of this registry is there.
    let install = seen("seen-install");
    assert!(install.contains("reached") && install.contains("hunter2"), "{install}");
    assert!(!install.contains("hunter3") && !install.contains("hunter4"), "{install}");
    let rebuild = seen("seen-rebuild");
    assert!(rebuild.contains("npm_config_cache"), "{rebuild}");
    assert!(!rebuild.contains("reached") && !rebuild.contains("hunter"), "{rebuild}");
    assert!(user.unpacked().join("built").exists());
    // What was downloaded is kept for the next installation, and no script has it.
    assert_eq!(downloads(&user), ["kept"]);
    assert!(!rebuild.contains("sees-downloads") && !rebuild.contains("downloads/npm"), "{rebuild}");
    assert!(install.contains("downloads/npm"), "{install}");
    user.mcp(&["gc"]).ok();
    assert_eq!(downloads(&user), [""; 0]);
}

/// The names of what is kept.
fn downloads(user: &User) -> Vec<String> {
    let names = |directory: std::path::PathBuf| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let all = user.path("cache/mcp/downloads");
    names(all.clone()).into_iter().flat_map(|name| names(all.join(name))).collect()
}

#[test]
fn without_the_flag_no_script_is_run_and_the_second_start_needs_nobody() {
    require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    let run = ["run", "npm:quick", "--", "one", "two"];
    let said: Said = index.command(&user, &run).output().unwrap().into();
    said.ok().says(r#"["one","two"]"#);
    assert!(!user.unpacked().join("built").exists());
    // No npm, no registry: what is in the store is enough, by either name.
    fs::remove_file(user.path("bin/npm")).unwrap();
    fs::write(user.path("home/.npmrc"), "registry=http://127.0.0.1:9/\n").unwrap();
    for reference in ["npm:quick", "npm:quick@1.2.3"] {
        user.mcp(&["run", reference, "--", "again"]).ok().says(r#"["again"]"#);
    }
}

/// The index knows the version; an installation to learn it would take a minute.
#[test]
fn an_update_installs_nothing_where_nothing_is_newer() {
    require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    let mcp = |words: &[&str]| -> Said { index.command(&user, words).output().unwrap().into() };
    mcp(&["pull", "npm:current"]).ok();
    let same = mcp(&["update", "npm:current"]).ok();
    assert!(same.out.contains("1.2.3 is the newest"), "{}", same.out);
    assert!(!same.err.contains("installing"), "{}", same.err);
    // The control: the index has a newer one, which only npm can tell whether it fits.
    mcp(&["pull", "npm:quick"]).ok();
    let newer = mcp(&["update", "npm:quick"]).ok();
    assert!(newer.err.contains("installing"), "{}", newer.err);
    assert!(newer.err.contains("not 9.9.9: it needs Node.js >=99"), "{}", newer.err);
}

/// npm installs a version that this Node.js does not fit where there is no other, and where a person named it.
#[test]
fn a_version_that_needs_another_node_says_which() {
    require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    for (package, is_told) in [("unfit", true), ("fit", false)] {
        for reference in [format!("npm:{package}"), format!("npm:{package}@1.2.3")] {
            let said: Said = index.command(&user, &["pull", &reference]).output().unwrap().into();
            let said = said.ok();
            let told =
                said.err.contains("unfit 1.2.3 needs Node.js ^98 || >=99, and this one is v");
            assert_eq!(told, is_told, "{}", said.err);
        }
    }
}

/// What was not run is named, and is run when a person wants it, though the package is in the store.
#[test]
fn scripts_that_were_not_run_are_named_and_can_be_run_later() {
    require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    let mcp = |words: &[&str]| -> Said { index.command(&user, words).output().unwrap().into() };
    let first = mcp(&["run", "npm:scripted", "--", "one"]).ok();
    assert!(first.err.contains("the scripts of scripted"), "{}", first.err);
    assert!(first.err.contains("mcp pull --allow-scripts npm:scripted"), "{}", first.err);
    assert!(
        first.err.contains("1.2.3 was installed, not 9.9.9: it needs Node.js >=99"),
        "{}",
        first.err
    );
    let built = |said: Said| {
        assert!(said.out.contains(r#"["two"]"#), "{}", said.err);
        let all = fs::read_dir(user.path("data/mcp/store/unpacked")).unwrap().flatten();
        all.filter(|package| package.path().join("root/built").exists()).count()
    };
    assert_eq!(built(mcp(&["run", "npm:scripted", "--", "two"]).ok()), 0);
    assert_eq!(built(mcp(&["run", "--allow-scripts", "npm:scripted", "--", "two"]).ok()), 1);
    // Neither with the flag nor without it is there anything left to do.
    fs::remove_file(user.path("bin/npm")).unwrap();
    for flags in [&["--allow-scripts"][..], &[]] {
        let words = [&["run"], flags, &["npm:scripted", "--", "two"]].concat();
        let said = mcp(&words).ok();
        assert!(!said.err.contains("installing"), "{}", said.err);
        assert_eq!(built(said), 1);
    }
}

#[test]
fn an_installation_reaches_what_a_person_names_and_says_what_it_wanted() {
    require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    let said: Said = index.command(&user, &["pull", "npm:elsewhere"]).output().unwrap().into();
    let said = said.fails(125, "the cause").fails(125, "--install-net codeload.example");
    assert!(!said.err.contains("complete log"), "{}", said.err);
    // Scripts reach no host; one that is named they do.
    for (named, reached) in [(None, false), (Some("127.0.0.7"), true)] {
        let user = User::new();
        let listener = std::net::TcpListener::bind("127.0.0.7:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let files = format!("http://127.0.0.7:{port}");
        let index = Index::at(&user, "127.0.0.1", Some(files)).unwrap();
        let rule = format!("127.0.0.7:{port}");
        let mut words = vec!["pull", "npm:quick", "--allow-scripts"];
        if named.is_some() {
            words.extend(["--install-net", &rule]);
        }
        let said: Said = index.command(&user, &words).output().unwrap().into();
        said.ok();
        let seen = fs::read_to_string(user.unpacked().join("seen-rebuild")).unwrap();
        assert_eq!(seen.contains("reached-files"), reached, "{named:?}: {seen}");
        assert!(!seen.contains("hunter2") && !seen.contains("reached\n"), "{seen}");
    }
}

/// A recipe proposes, once, what was not given; it gives nothing.
#[test]
fn a_recipe_is_proposed_once() {
    require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    let run = |flags: &[&str]| {
        let words = [&["run"], flags, &["npm:tavily-mcp", "--", "one"]].concat();
        let said: Said = index.command(&user, &words).output().unwrap().into();
        said.ok().err
    };
    let said = run(&["--env", "TAVILY_API_KEY=x"]);
    assert!(said.contains("usually needs --allow-net api.tavily.com; give"), "{said}");
    assert!(!run(&[]).contains("usually needs"));
    user.mcp(&["data", "remove", "npm:tavily-mcp"]).ok();
    let all = ["--env", "TAVILY_API_KEY=x", "--allow-net", "api.tavily.com"];
    assert!(!run(&all).contains("usually needs"));
    let said = run(&[]);
    assert!(said.contains("--secret TAVILY_API_KEY=env:TAVILY_API_KEY"), "{said}");
}

/// On a file system of its own, which is small: the disk of the tests is for others, too.
#[test]
fn an_installation_that_fills_the_disk_is_ended() {
    require!("userns");
    for (package, is_ended) in [("quick", false), ("endless", true)] {
        let user = User::new();
        let Some(index) = Index::new(&user) else { return };
        let given = index.command(&user, &[]);
        let mut command = user.place(Command::new("unshare"));
        let script = "mount -t tmpfs -o size=64m data \"$XDG_DATA_HOME\" || exit 77; \"$0\" pull \"$1\"; code=$?; \
                      du -sk \"$XDG_DATA_HOME/mcp/store/staging\"; exit $code";
        command.args(["-rm", "sh", "-c", script]).arg(mcp_path()).arg(format!("npm:{package}"));
        command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let said: Said = command.output().unwrap().into();
        if said.code == 77 || said.err.contains("unshare:") {
            println!("SKIP: mount: {}", said.err);
            return;
        }
        if !is_ended {
            said.ok();
            continue;
        }
        let said = said.fails(125, "npm install was ended: the disk is nearly full");
        let left: u64 = said.out.split_whitespace().next().unwrap().parse().unwrap();
        assert!(left < 1024, "{left} KiB stay in staging");
    }
}

#[test]
fn quiet_is_quiet() {
    require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    for (flags, is_silent) in [(&["--quiet"][..], true), (&[], false)] {
        let words = [&["run"], flags, &["npm:quick", "--", "one"]].concat();
        let said: Said = index.command(&user, &words).output().unwrap().into();
        let said = said.ok();
        assert_eq!(said.err.is_empty(), is_silent, "{}", said.err);
        user.mcp(&["remove", "npm:quick"]).ok();
    }
}

/// An installation takes long enough for an update of `mcp` itself.
#[test]
fn a_first_run_goes_on_after_mcp_was_replaced() {
    require!("userns");
    let user = User::new();
    let own = user.path("mcp");
    fs::copy(mcp_path(), &own).unwrap();
    let replaced = own.clone();
    let replace = move || {
        let _ = fs::remove_file(&replaced);
        fs::write(&replaced, "not even a program").unwrap();
    };
    let Some(index) = Index::doing(&user, "127.0.0.1", None, replace) else { return };
    let run = ["run", "npm:quick", "--", "one"];
    let given = index.command(&user, &run);
    let mut command = user.place(Command::new(&own));
    command.args(run).envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said: Said = command.output().unwrap().into();
    said.ok().says(r#"["one"]"#);
    // The control: it was replaced before it could start again.
    assert_eq!(fs::read_to_string(&own).unwrap(), "not even a program");
}

/// What only this machine can reach is not for metadata to name; the index that a person configured is.
#[test]
fn metadata_opens_no_way_to_this_machine() {
    require!("userns");
    let listener = std::net::TcpListener::bind("127.0.0.9:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let installed = |host: &'static str, files: Option<String>| {
        let user = User::new();
        let index = Index::at(&user, host, files)?;
        let said: Said = index.command(&user, &["pull", "npm:quick"]).output().unwrap().into();
        let said = said.ok();
        Some((said.err, fs::read_to_string(user.unpacked().join("seen-install")).unwrap()))
    };
    for spelling in ["127.0.0.9", "2130706441", "0x7f000009", "0177.0.0.9", "127.9"] {
        let files = format!("http://{spelling}:{port}");
        let Some((said, seen)) = installed("127.0.0.1", Some(files)) else { return };
        assert!(said.contains("not a public address"), "{spelling}: {said}");
        assert!(
            seen.contains("reached\n") && !seen.contains("reached-files"),
            "{spelling}: {seen}"
        );
    }
    // The control: the same address, as the configured index.
    let (said, seen) = installed("127.0.0.9", None).unwrap();
    assert!(seen.contains("reached\n") && !said.contains("public"), "{said}{seen}");
}

/// pip is asked what it is configured with outside of a sandbox, and must not come from here.
#[test]
fn nothing_of_the_current_directory_is_run() {
    let user = User::new();
    let trap = "import pathlib\npathlib.Path(__file__).with_name('ran').write_text('x')\n";
    user.scratch.file("cwd/pip.py", trap);
    let mut command = user.command(&["pull", "pypi:x"]);
    let output = command.env("PIP_INDEX_URL", "http://127.0.0.1:9/").output().unwrap();
    let said: Said = output.into();
    assert_eq!(said.code, 125, "{}", said.err);
    assert!(!user.path("cwd/ran").exists());
    // The control: it is what Python would have taken.
    let python = std::process::Command::new("python3")
        .args(["-m", "pip", "config", "list"])
        .current_dir(user.path("cwd"))
        .output();
    assert!(python.is_err() || user.path("cwd/ran").exists());
}

#[test]
fn what_is_missing_is_named_with_how_to_get_it() {
    let user = User::new();
    for (reference, word) in [("npm:x", "nodejs"), ("pypi:x", "python3")] {
        let mut command = user.command(&["pull", reference]);
        let said: Said = command.env("PATH", user.path("cwd")).output().unwrap().into();
        said.fails(125, word);
    }
}
