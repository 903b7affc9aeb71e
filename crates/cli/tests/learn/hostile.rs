//! A program that wants more than a person would give: other names for credentials, names that would break a policy, and variables.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::require;
use crate::support::mcp_path;
use crate::user::{Said, User};

const CANARY: &str = "canary of a private key";
const WITHHELD: &str = "asked for, not proposed: ";

/// A home with credentials, settings and notes.
fn home() -> User {
    let user = User::new();
    let scratch = &user.scratch;
    scratch.file("home/.ssh/id", CANARY);
    scratch.file("home/.config/gh/hosts.yml", CANARY);
    for at in 0..6 {
        scratch.file(format!("home/.config/app{at}/settings"), "x");
    }
    scratch.file("home/notes/plain", "x");
    scratch.dir("home/notes/below");
    user
}

/// `mcp learn --plain --yes FLAGS -- COMMAND`.
fn learn(user: &User, flags: &[&str], command: &[&str]) -> Said {
    user.mcp(&[&["learn", "--plain", "--yes"], flags, &["--"], command].concat())
}

/// A script that opens all of these, and fails where one of them cannot be opened.
fn opener(paths: &[impl AsRef<Path>]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| path.as_ref().to_str().unwrap()).collect();
    // A list of strings in JSON is one in Python.
    let paths = serde_json::to_string(&paths).unwrap();
    format!(
        "import sys\nfailed = 0\nfor path in {paths}:\n    try: open(path)\n    except OSError: failed = 1\nsys.exit(failed)"
    )
}

#[test]
fn credentials_by_another_name_are_not_proposed() {
    require!("userns");
    let user = home();
    let at = |name: &str| user.path("home").join(name).display().to_string();
    symlink(at(".ssh/id"), at("notes/link")).unwrap();
    symlink("../.ssh", at("notes/up")).unwrap();
    fs::hard_link(at(".ssh/id"), at("notes/hard")).unwrap();
    let names = [
        "notes/link",
        "notes/up/id",
        "notes/hard",
        "notes/../.ssh/id",
        "notes/below/../../.ssh/id",
        "notes//.././.ssh/id",
    ];
    for name in names {
        let said = learn(&user, &[], &["python3", "-S", "-c", &opener(&[at(name)])]).exits(1);
        assert!(said.err.contains(WITHHELD), "{name}\n{}", said.err);
        assert!(!said.out.contains("read = "), "{name}\n{}", said.out);
    }
    // The controls: a file that is none is proposed, and so is what a person asks for.
    learn(&user, &[], &["python3", "-S", "-c", &opener(&[at("notes/plain")])]).ok();
    let open = opener(&names[..3].iter().map(|name| at(name)).collect::<Vec<_>>());
    learn(&user, &["--sensitive"], &["python3", "-S", "-c", &open]).ok();
}

/// Many files behind a link do not stand for the directory that it leads to.
#[test]
fn a_link_to_a_directory_with_credentials_is_not_proposed() {
    require!("userns");
    let user = home();
    symlink(user.path("home/.config"), user.scratch.dir("links").join("all")).unwrap();
    let files: Vec<_> =
        (0..6).map(|at| user.path(&format!("links/all/app{at}/settings"))).collect();
    let said =
        learn(&user, &["-o", "learned.toml"], &["python3", "-S", "-c", &opener(&files)]).ok();
    let policy = fs::read_to_string(user.path("learned.toml")).unwrap();
    assert!(!policy.contains("/all\"") && !policy.contains(".config\""), "{policy}\n{}", said.err);
    let key = user.path("links/all/gh/hosts.yml").display().to_string();
    let read = ["run", "-q", "--policy", "learned.toml", "--", "cat", &key];
    assert_ne!(user.mcp(&read).code, 0, "{policy}");
}

/// A variable says that a program keeps its credentials elsewhere.
#[test]
fn places_that_variables_name_are_not_proposed() {
    require!("userns");
    let mut user = home();
    let moved = user.scratch.file("moved/hosts.yml", CANARY);
    let open = opener(&[&moved]);
    // The control: without the variable it is a file like others.
    learn(&user, &[], &["python3", "-S", "-c", &open]).ok();
    user.set("GH_CONFIG_DIR", moved.parent().unwrap().to_str().unwrap());
    let said = learn(&user, &[], &["python3", "-S", "-c", &open]).exits(1);
    assert!(said.err.contains(WITHHELD) && !said.out.contains("read = "), "{}", said.err);
}

/// A bind mount is another name too. It takes root to make one.
#[test]
fn a_bind_mount_of_credentials_is_not_proposed() {
    require!("userns", "root");
    let user = home();
    let place = user.scratch.dir("bound").display().to_string();
    let script = "mount --bind \"$1\" \"$2\" && exec \"$3\" learn --plain --yes -- sh -c \"cat '$2/gh/hosts.yml' '$2/app0/settings'; true\"";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(user.path("home/.config"))
        .arg(&place)
        .arg(mcp_path())
        .env("HOME", user.path("home"))
        .env_remove("XDG_STATE_HOME")
        .output()
        .unwrap();
    let said = Said::from(output).ok();
    let key = user.path("home/.config/gh/hosts.yml").display().to_string();
    assert!(said.err.contains(&format!("{WITHHELD}{key}")), "{}", said.err);
    // The control: what is none, under the same mount.
    assert!(said.out.contains("/bound/app0/settings\", # "), "{}\n{}", said.out, said.err);
}

/// A name decides nothing about the rest of the policy, and reaches the terminal and the file in signs that do nothing.
#[test]
fn names_are_only_names() {
    require!("userns");
    let user = home();
    // Six would be their directory.
    let names = [
        "a\"]\n[network]\nallow = [\"*\"]\n#",
        "\u{1b}]0;title\u{7}",
        "\u{202e}gpj",
        "'''\"\"\"",
        "\\u0022 #",
    ];
    let paths: Vec<_> = (0..)
        .zip(names)
        .map(|(at, name)| user.scratch.file(format!("odd/{at}/{name}"), "x"))
        .collect();
    user.scratch.file("mine.toml", "# mine\n[network]\nallow = ['example.com'] # why\n");
    let open = opener(&paths);
    for (flag, file, allowed) in
        [("-o", "learned.toml", &[][..]), ("--merge", "mine.toml", &["example.com"])]
    {
        let said = learn(&user, &[flag, file], &["python3", "-S", "-c", &open]).ok();
        let text = fs::read_to_string(user.path(file)).unwrap();
        for shown in [&said.err, &said.out, &text] {
            let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!shown.contains(acts), "{shown:?}");
        }
        user.scratch.file("empty.toml", "");
        let said = user.mcp(&["policy", "diff", "empty.toml", file, "--json"]).exits(1);
        let changes: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let given = |key: &str| -> Vec<String> {
            let of_key = changes.as_array().unwrap().iter().filter(|change| change["key"] == key);
            of_key.map(|change| change["to"].as_str().unwrap().to_owned()).collect()
        };
        let mut read = given("filesystem.read");
        read.sort();
        let mut expected: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        expected.sort();
        assert_eq!(read, expected, "{text}");
        assert_eq!(given("network.allow"), allowed, "{text}");
    }
}

/// What lies in a granted directory stays closed, whatever the directory is called, and in a merged file too.
#[test]
fn credentials_in_a_granted_directory_stay_closed() {
    require!("userns");
    let user = home();
    for name in ["a", "b", "c", ".env"] {
        user.scratch.file(format!("[app]*/{name}"), name);
    }
    let place = user.path("[app]*").display().to_string();
    let needs = format!("cat '{place}/a' '{place}/b' '{place}/c'");
    let key = format!("{place}/.env");
    user.scratch.file("mine.toml", "# mine\n[filesystem]\ndeny = ['/srv/x']\n");
    for (flag, file) in [("-o", "learned.toml"), ("--merge", "mine.toml")] {
        let said = learn(&user, &[flag, file], &["sh", "-c", &needs]).ok();
        assert!(said.err.contains(&format!("{WITHHELD}{key}")), "{}", said.err);
        let text = fs::read_to_string(user.path(file)).unwrap();
        let read = |policy: &str| user.mcp(&["run", "-q", "--policy", policy, "--", "cat", &key]);
        assert_ne!(read(file).code, 0, "{text}");
        // The control: without that line it is open.
        let lines = text.lines().filter(|line| !line.contains(".env"));
        user.scratch.file("open.toml", &lines.map(|line| format!("{line}\n")).collect::<String>());
        assert_eq!(read("open.toml").ok().out, ".env");
    }
}

/// A server that names many variables in its own files is passed none that holds a credential.
#[test]
fn credentials_are_not_proposed_as_variables() {
    require!("userns");
    let mut user = home();
    for (name, value) in [
        ("GITHUB_TOKEN", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ("DATABASE_URL", "postgres://ada:secret@db.example.com/x"),
        ("HARMLESS_NAME", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"),
        ("LEARN_MODE", "fast"),
    ] {
        user.set(name, value);
    }
    let script = "import os\nfor name in ['GITHUB_TOKEN', 'DATABASE_URL', 'HARMLESS_NAME', 'LEARN_MODE']:\n    print(name, len(os.environ.get(name, '')))";
    let script = user.scratch.file("app/script.py", script).display().to_string();
    let said = learn(&user, &[], &["python3", "-S", &script]).ok();
    assert!(said.out.contains("[env]\nallow = [\n    \"LEARN_MODE\", # "), "{}", said.out);
    for name in ["GITHUB_TOKEN", "DATABASE_URL", "HARMLESS_NAME"] {
        assert!(!said.out.contains(name), "{}", said.out);
        let named = format!("{WITHHELD}{name} (a variable that holds a credential)");
        assert!(said.err.contains(&named), "{}", said.err);
    }
    // The control: asked for, they are passed by reference.
    let said = learn(&user, &["--sensitive"], &["python3", "-S", &script]).ok();
    assert!(said.out.contains("GITHUB_TOKEN = \"env:GITHUB_TOKEN\" # "), "{}", said.out);
    assert!(!said.out.contains("ghp_") && !said.err.contains("ghp_"), "{}", said.err);
}
