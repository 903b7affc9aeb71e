//! Packages that try to be shown a file of the user's by what they say of themselves.

use std::fs;
use std::os::unix::fs::symlink;

use crate::require;
use crate::user::{User, text};

#[test]
fn a_program_that_is_a_link_out_is_not_started() {
    require!("userns");
    let user = User::new();
    let secret = user.scratch.script("home/.ssh/id_rsa", "#!/bin/sh\necho stolen\n");
    let source = user.package("source", "1.0.0", "");
    // The control: its own program starts.
    user.mcp(&["run", text(&source), "--", "getenv", "HOME"]).ok();
    fs::remove_file(source.join("bin/probe")).unwrap();
    symlink(&secret, source.join("bin/probe")).unwrap();
    let said = user.mcp(&["run", text(&source)]).fails(125, "not one of its own files");
    assert!(!said.out.contains("stolen"));
    let text_of = |command: &str| {
        format!("[package]\nname='acme/test'\nversion='1.0.0'\n[server]\ncommand='{command}'\n")
    };
    fs::write(source.join("mcp.toml"), text_of(text(&secret))).unwrap();
    user.mcp(&["run", text(&source)]).fails(125, "not one of its own files");
}

#[test]
fn variables_that_show_a_file_are_refused() {
    require!("userns");
    let user = User::new();
    let secret = user.scratch.file("home/.ssh/id_rsa", "hunter2");
    for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE"] {
        for table in ["env.set", "server.env"] {
            let source = user.package(
                "source",
                "1.0.0",
                &format!("[{table}]\n{name} = '{}'\n", text(&secret)),
            );
            user.mcp(&["run", text(&source), "--", "read", text(&secret)]).fails(125, name);
        }
    }
    // The control: a variable that shows nothing is set.
    let source = user.package("source", "1.0.0", "[server.env]\nMODE = 'fast'\n");
    user.mcp(&["run", text(&source), "--", "getenv", "MODE"]).ok().says("fast");
}

#[test]
fn a_directory_with_links_out_shows_nothing_through_them() {
    require!("userns");
    let user = User::new();
    let secret = user.scratch.file("home/secret", "hunter2");
    let source = user.package("source", "1.0.0", "");
    symlink(&secret, source.join("link")).unwrap();
    user.mcp(&["run", text(&source), "--", "read", text(&source.join("mcp.toml"))])
        .ok()
        .says("\"ok\":true");
    let said = user.mcp(&["run", text(&source), "--", "read", text(&source.join("link"))]);
    assert!(said.out.contains("\"ok\":false") && !said.out.contains("hunter2"), "{}", said.out);
    user.mcp(&["pack", text(&source)]).fails(125, "is absolute");
}

#[test]
fn the_store_cannot_be_written_from_inside() {
    require!("userns");
    let user = User::new();
    user.stored("1.0.0", "");
    let index = user.path("data/mcp/store/index.json");
    user.mcp(&["run", "acme/test", "--", "read", text(&index)]).says("\"ok\":false");
    user.mcp(&[
        "run",
        "acme/test",
        "--",
        "write",
        text(&user.path("data/mcp/store/grants/x.json")),
    ])
    .says("\"ok\":false");
    user.mcp(&["verify"]).ok();
}

#[test]
fn hostile_names_do_not_steer_the_terminal() {
    let user = User::new();
    let source = user.package("source", "1.0.0", "[network]\nallow = [\"\\u001b[2Jx\"]\n");
    let said = user.mcp(&["run", text(&source)]);
    assert_ne!(said.code, 0);
    assert!(!said.err.contains('\u{1b}'), "{:?}", said.err);
    // Nor do the names of its files.
    let path = user.scratch.file(
        "source/mcp.toml",
        "[package]\nname = 'acme/test'\nversion = '1.0.0'\n[server]\ncommand = \"./\\u001b[2Jx\"\n",
    );
    let run = || user.mcp(&["run", text(path.parent().unwrap())]);
    let missing = run().fails(2, "\\u{1b}[2Jx");
    std::os::unix::fs::symlink("/bin/true", user.path("source/\u{1b}[2Jx")).unwrap();
    let leads_out = run().fails(125, "\\u{1b}[2Jx");
    assert!(!missing.err.contains('\u{1b}') && !leads_out.err.contains('\u{1b}'));
}

#[test]
fn an_interpreter_of_another_version_is_refused_and_none_is_asked_outside() {
    require!("userns");
    let user = User::new();
    let asked = user.path("cwd/asked");
    user.scratch
        .script("bin/node", &format!("#!/bin/sh\necho asked >> {}\necho v20.1.0\n", text(&asked)));
    let manifest = |command: &str, range: &str| {
        format!(
            r#"{{"manifest_version": "0.3", "name": "t", "version": "1.0.0", "description": "", "author": {{"name": "a"}},
                "compatibility": {{"runtimes": {{"node": "{range}"}}}},
                "server": {{"type": "node", "entry_point": "x.js", "mcp_config": {{"command": "{command}", "args": []}}}}}}"#
        )
    };
    let source = user.scratch.dir("source");
    let run = |command: &str, range: &str| -> crate::user::Said {
        fs::write(source.join("manifest.json"), manifest(command, range)).unwrap();
        let path = format!("{}:/usr/bin:/bin", text(&user.path("bin")));
        user.command(&["run", text(&source)]).env("PATH", path).output().unwrap().into()
    };
    run("node", ">=22").fails(125, "needs node >=22").fails(125, "v20.1.0");
    // The control; and the answer is remembered.
    run("node", ">=18 <21").ok();
    run("node", ">=18").ok();
    let notes = fs::read_dir(user.path("data/mcp/store/notes")).unwrap().flatten();
    let notes: Vec<String> = notes.map(|note| fs::read_to_string(note.path()).unwrap()).collect();
    assert!(notes.len() == 1 && notes[0].ends_with("v20.1.0"), "{notes:?}");
    // Whoever is asked is asked inside, where that file cannot be written; outside it can.
    fs::copy(user.path("bin/node"), source.join("node")).unwrap();
    run("${__dirname}/node", ">=22");
    assert!(!asked.exists());
    std::process::Command::new(source.join("node")).output().unwrap();
    assert!(asked.exists());
}
