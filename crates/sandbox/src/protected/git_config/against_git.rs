//! The real git decides: what it reads from generated files, we read, and where it gives up, we do.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::pathname::Homes;
use super::source::Settings;
use crate::protected::git_leads::{self, Believe, GitFiles};
use crate::protected::link_chain::link_chain;
use crate::protected::user_settings::UserSettings;
use crate::protected::{git, is_named_git};
use crate::unix::fixture::Fixture;

/// Pieces of which texts are made: every character that means something, and most of what is around it.
const PIECES: &[&str] = &[
    "[core]\n",
    "[core]",
    "[Core \"A.b\"]\n",
    "[a \"b\\\"\\\\c\\d\"]",
    "[a.B.c]",
    "[",
    "]",
    "[]",
    "[a\t\"b\"]",
    "[a \"b]",
    "[core]hooksPath=x",
    "\thooksPath = ~/p/.githooks\n",
    "x",
    "X-1",
    "y = ",
    "=",
    " = ",
    "= a b\n",
    "k = \"q # ; q\" ; c\n",
    "k = a\\\n\tb\n",
    "k = a \\\n",
    "k = \\\"\\\\\\n\\t\\b\n",
    "k = a\t# c\n",
    "k =a;c\n",
    "k\n",
    "k ; c\n",
    "k = \"a\n",
    "\\",
    "\\q",
    "\"",
    "#",
    ";",
    "# c [\n",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "\x0b",
    "\0",
    "\u{feff}",
    "é",
    "_",
    "-",
    ".",
    "1",
    "[include]\n",
    "[Include] path = two\n",
    "path = two\n",
    "path = sub/three\n",
    "path = ../one\n",
    "path = ~/two\n",
    "path = ~nobody-there/two\n",
    "path\n",
    "path = sub\n",
    "[include]path=\"\\\\x\"\n",
    "path = %(prefix)/none\n",
    "path = :(optional)two\n",
    "path =\n",
];

fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    let ended = any::<bool>();
    (proptest::collection::vec((piece, ended), 0..10)).prop_map(|pieces| {
        let mut text = Vec::new();
        for (piece, ended) in pieces {
            text.extend(piece);
            // Or few texts would be without an error.
            if ended {
                text.push(b'\n');
            }
        }
        text
    })
}

fn git(directory: &Path, home: &Path, words: &[&str]) -> Option<Output> {
    let output = Command::new("git")
        .args(words)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH")?)
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "git"), "{error}");
            println!("SKIP: git: {error}");
            None
        }
    }
}

/// The origin, the key, and the value where there is one.
type Told = Vec<(PathBuf, Vec<u8>, Option<Vec<u8>>)>;

fn told_by_git(output: &[u8]) -> Told {
    let mut told = Vec::new();
    let mut parts = output.split(|c| *c == 0);
    while let (Some(origin), Some(setting)) = (parts.next(), parts.next()) {
        let origin = super::pathname::path(origin.strip_prefix(b"file:").unwrap_or(origin));
        let (key, value) = match setting.iter().position(|c| *c == b'\n') {
            None => (setting, None),
            Some(end) => (&setting[..end], Some(setting[end + 1..].to_vec())),
        };
        told.push((origin, key.to_vec(), value));
    }
    told
}

/// A line feed in a key ends it in what git tells.
fn told_by_us(settings: &Settings) -> Told {
    let all = settings.settings.iter();
    all.map(|(origin, setting)| {
        let spoken =
            [&setting.key[..], b"\n", setting.value.as_deref().unwrap_or_default()].concat();
        let end = spoken.iter().position(|c| *c == b'\n').unwrap_or(spoken.len());
        let value = (setting.value.is_some() || end < setting.key.len())
            .then(|| spoken[end + 1..].to_vec());
        (origin.clone(), spoken[..end].to_vec(), value)
    })
    .collect()
}

/// Before 2.45 a blank inside of a value was read as a space.
fn reads_blanks_as_spaces(fixture: &Fixture) -> Option<bool> {
    let file = fixture.file("blank", "[a]\nb = x\ty\n");
    let output =
        git(&fixture.home(), &fixture.home(), &["config", "--file", file.to_str()?, "a.b"])?;
    Some(output.stdout == b"x y\n")
}

#[test]
fn settings_are_those_that_git_reads() {
    let fixture = Fixture::new();
    let home = fixture.directory("home");
    let Some(is_old) = reads_blanks_as_spaces(&fixture) else { return };
    let homes = Homes::at(&home);
    let one = fixture.path("project/one");
    let (read, refused) = (Cell::new(0), Cell::new(0));
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let mut runner = TestRunner::new(Config { cases: cases.unwrap_or(768), ..Config::default() });
    runner
        .run(&(text(), text(), text()), |(first, second, third)| {
            fixture.file("project/one", &first);
            fixture.file("project/two", &second);
            fixture.file("project/sub/three", &third);
            fixture.file("home/two", &second);
            let words = ["config", "--file", one.to_str().unwrap(), "--includes", "--list", "-z"];
            let words = [&words[..], &["--show-origin"]].concat();
            let output = git(&home, &home, &words).unwrap();
            let mut settings = Settings::default();
            settings.read(&one, &homes, &|_| true);
            let shown = String::from_utf8_lossy(&first);
            if !output.status.success() {
                refused.set(refused.get() + 1);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                prop_assert!(!settings.unreadable.is_empty(), "{shown:?}: git said {said}");
                return Ok(());
            }
            read.set(read.get() + 1);
            prop_assert!(settings.unreadable.is_empty(), "{shown:?}: {:?}", settings.unreadable);
            let spaced = |told: Told| -> Told {
                let blank = |c: u8| if matches!(c, b'\t' | b'\r') && is_old { b' ' } else { c };
                let value = |value: Vec<u8>| value.into_iter().map(blank).collect();
                told.into_iter().map(|(at, key, old)| (at, key, old.map(value))).collect()
            };
            prop_assert_eq!(spaced(told_by_us(&settings)), spaced(told_by_git(&output.stdout)));
            Ok(())
        })
        .unwrap();
    // Neither half may have been empty.
    let (read, refused) = (read.get(), refused.get());
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}

/// Where a repository of the user's may be: each makes `project`, which alone can be written, in an empty directory that
/// is also HOME, and says where git is started and whose settings are written to.
const LAYOUTS: &[(&str, &str, &str)] = &[
    ("git init -q project", "project", "project/.git/config"),
    ("git init -q project", "project", ".gitconfig"),
    ("git init -q project; mkdir -p .config/git", "project", ".config/git/config"),
    ("git init -q --bare project/bare", "project/bare", "project/bare/config"),
    ("git init -q --separate-git-dir away project", "project", "away/config"),
    ("mkdir project; git init -q --separate-git-dir project/in project/tree", "project/tree", "project/in/config"),
    ("git init -q .; mkdir project", "project", ".git/config"),
    (
        "git init -q main; cd main; git commit -q --allow-empty -m x; git worktree add -q ../project",
        "project",
        "main/.git/config",
    ),
    (
        "git init -q project; cd project; git commit -q --allow-empty -m x; git worktree add -q side",
        "project/side",
        "project/.git/config",
    ),
    (
        "git init -q project; cd project; git commit -q --allow-empty -m x; git worktree add -q ../side",
        "project",
        "project/.git/config",
    ),
    (
        "git init -q other; git -C other commit -q --allow-empty -m x; git init -q project; cd project
         git -c protocol.file.allow=always submodule --quiet add ../other sub",
        "project/sub",
        "project/.git/modules/sub/config",
    ),
];

/// Ways to name a directory of hooks; some do not exist, and some lead elsewhere.
const HOOK_PATHS: &[&str] = &[
    ".githooks",
    "./a/../.githooks",
    "../project/.githooks",
    "~/project/.githooks",
    "~/project",
    "a/b/_",
    "..",
    "hooks",
    "~/elsewhere",
    "link/hooks",
    "a b/hooks",
    "é",
    "~/project/link",
    "../../project/x",
    ".git/hooks2",
    "..//project/h",
];

/// Ways to write a setting down.
const SPELLINGS: &[&str] = &[
    "[core]\n\thooksPath = @\n",
    "[core]hookspath=@",
    "[CORE]\r\nHOOKSPATH = @\r\n",
    "[core]hooksPath=\"@\"#c\n",
    "[core]\nhooksPath = @\t; c\n",
    "[core]\nhooksPath = \\\n @\n",
    "[core]\nhooksPath = first\nhooksPath = @\n",
    "[include]path=more\n",
    "[includeIf \"gitdir:**\"]\npath = ./more\n",
    "[include]\npath = ~/more\n",
];

fn made(home: &Path, script: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(home).env_clear().env("HOME", home);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "a")
            .env(format!("GIT_{who}_EMAIL"), "a@example.org");
    }
    command.output().is_ok_and(|output| output.status.success())
}

/// Where git looks for hooks, as a command in the project would have to reach it: what is protected covers it, or it is
/// outside of what the command may write.
#[test]
fn hooks_are_protected_where_git_looks_for_them() {
    let probe = Fixture::new();
    if git(&probe.home(), &probe.home(), &["--version"]).is_none() {
        return;
    }
    let inside = Cell::new(0);
    for (number, (layout, started, file)) in LAYOUTS.iter().enumerate() {
        let fixture = Fixture::new();
        let home = fixture.path("h");
        fixture.directory("h");
        assert!(made(&home, layout), "{layout}");
        fixture.directory("h/project/real");
        fixture.link("h/project/link", "real");
        let before = std::fs::read(home.join(file)).unwrap_or_default();
        // Every path with some spellings, every spelling with some paths, others in each layout.
        let paths = HOOK_PATHS.iter().enumerate();
        let pairs = paths.flat_map(|(at, path)| [0, 3, 7].map(|step| (path, at + number + step)));
        for (path, spelling) in pairs {
            let spelling = SPELLINGS[spelling % SPELLINGS.len()];
            let config = home.join(file);
            let setting = format!("[core]\n\thooksPath = {path}\n");
            std::fs::write(config.with_file_name("more"), &setting).unwrap();
            std::fs::write(home.join("more"), &setting).unwrap();
            std::fs::write(
                &config,
                [&before[..], b"\n", spelling.replace('@', path).as_bytes()].concat(),
            )
            .unwrap();
            let at = home.join(started);
            let mut command = Command::new("git");
            command.args(["rev-parse", "--show-cdup"]).current_dir(&at).env_clear();
            command.env("HOME", &home).env("GIT_CONFIG_NOSYSTEM", "1");
            command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
            let top = command.output().unwrap();
            assert!(top.status.success(), "{layout} {spelling:?}: {top:?}");
            // Hooks run at the top of the work tree.
            let top = at.join(String::from_utf8_lossy(&top.stdout).trim_end_matches('\n'));
            let mut command = Command::new("git");
            command.args(["rev-parse", "--git-path", "hooks"]).current_dir(&top).env_clear();
            command.env("HOME", &home).env("GIT_CONFIG_NOSYSTEM", "1");
            command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
            let told = command.output().unwrap();
            let told = told.stdout.strip_suffix(b"\n").unwrap_or(&told.stdout);
            let hook = link_chain(&top.join(super::pathname::path(told)).join("pre-commit")).end;
            let project = home.join("project");
            let shown = format!("{layout}: {path} as {spelling:?} in {file}: {}", hook.display());
            let covered = covered(&project, &home);
            match hook.starts_with(&project) {
                true => {
                    inside.set(inside.get() + 1);
                    let is_covered = covered.iter().any(|place| hook.starts_with(place));
                    assert!(is_covered, "{shown}\n{covered:#?}");
                }
                false => {
                    assert!(covered.iter().all(|place| place.starts_with(&project)), "{shown}")
                }
            }
        }
    }
    assert!(inside.get() > 200, "{}", inside.get());
}

/// What is closed in a project, there or not yet.
fn covered(project: &Path, home: &Path) -> Vec<PathBuf> {
    let mut repositories = BTreeMap::new();
    let mut git_links = Vec::new();
    let mut pending = vec![project.to_owned()];
    while let Some(directory) = pending.pop() {
        if git::is_directory(&directory) {
            let top = is_named_git(&directory).then(|| directory.parent().map(Path::to_owned));
            repositories.insert(directory.clone(), top.flatten());
        }
        for entry in std::fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => pending.push(entry.path()),
                _ if is_named_git(&entry.path()) => git_links.push(entry.path()),
                _ => {}
            }
        }
    }
    let found = GitFiles {
        repositories: &repositories,
        git_links,
        links: Vec::new(),
        directories: Vec::new(),
        roots: &[project],
        allowed: &[],
        believe: Believe::All,
    };
    let leads = git_leads::follow(&found, &UserSettings::of_home(home));
    assert!(leads.unreadable.is_empty(), "{:?}", leads.unreadable);
    leads.leads.into_iter().map(|lead| lead.path).collect()
}
