//! Variables that the user's environment has, the server's own files name, and the command did not get.
//!
//! The files are read only after a failure, and not without bound. Only names are compared and told, never a value.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use mcp_files::Links;
use mcp_sandbox::Request;

use super::facts::{Argument, Facts, Kind, PathState, Role};
use super::{Hint, Runs};

const MOST_FILES: usize = 2_000;
const MOST_BYTES: u64 = 32 << 20;
const LARGEST: u64 = 8 << 20;
const DEEPEST: usize = 6;
const MOST_NAMES: usize = 4;

/// Of the session, on every desktop, named by much code and needed by little.
const SESSION: &[&str] = &[
    "COLORTERM",
    "COLUMNS",
    "DEBUG",
    "DESKTOP_SESSION",
    "DISPLAY",
    "EDITOR",
    "HISTSIZE",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LOGNAME",
    "LS_COLORS",
    "MAIL",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NO_COLOR",
    "OLDPWD",
    "PAGER",
    "PATH",
    "PWD",
    "SHELL",
    "SHLVL",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "SUDO_USER",
    "TEMP",
    "TERM",
    "TERM_PROGRAM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "VISUAL",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "_",
];
const SESSION_BEGINS: &[&str] =
    &["BASH_", "CARGO_", "DBUS_", "GPG_", "LC_", "MCP_", "RUST", "XDG_", "npm_"];

/// What the server is made of, and what it does not get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInputs {
    pub files: Vec<PathBuf>,
    pub dropped: BTreeSet<String>,
}

impl ServerInputs {
    pub fn of(runs: Runs, request: &Request, arguments: &[Argument]) -> ServerInputs {
        let files = match runs {
            Runs::Agent => Vec::new(),
            Runs::Package => request.read.iter().map(|place| own(&place.path, request)).collect(),
            Runs::Command => command(request, arguments),
        };
        if files.is_empty() {
            return ServerInputs::default();
        }
        let given = |name: &OsStr| {
            request.env.iter().any(|(given, _)| given == name)
                || request.secrets.iter().any(|(given, _)| given == name)
        };
        let told = |name: &str| request.held_back.iter().any(|held| held.name == name);
        let dropped = std::env::vars_os()
            .filter(|(name, value)| !value.is_empty() && !given(name))
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| !told(name) && !is_of_session(name))
            .collect();
        ServerInputs { files, dropped }
    }
}

fn is_of_session(name: &str) -> bool {
    name.len() < 4
        || SESSION.contains(&name)
        || SESSION_BEGINS.iter().any(|start| name.starts_with(start))
}

/// A script with what lies beside it; a program that is not the system's.
fn command(request: &Request, arguments: &[Argument]) -> Vec<PathBuf> {
    let is_script = |argument: &&Argument| {
        argument.role == Role::Script
            && argument.kind == Kind::File
            && argument.seen != PathState::Hidden
    };
    if let Some(script) = arguments.iter().find(is_script) {
        return script.path.parent().map(Path::to_owned).into_iter().collect();
    }
    if is_of_system(&request.program) { Vec::new() } else { vec![request.program.clone()] }
}

pub fn is_of_system(program: &Path) -> bool {
    ["/usr", "/bin", "/sbin", "/nix"].iter().any(|place| program.starts_with(place))
}

/// Of an installed package its own directory, not those of what it depends on.
fn own(root: &Path, request: &Request) -> PathBuf {
    let script = request.argv.iter().skip(1).map(Path::new).find(|word| word.starts_with(root));
    let Some(script) = script else {
        return root.to_owned();
    };
    let modules = root.join("node_modules");
    let Ok(below) = script.strip_prefix(&modules) else {
        return root.to_owned();
    };
    let scoped = below.to_string_lossy().starts_with('@');
    below.components().take(if scoped { 2 } else { 1 }).fold(modules, |path, part| path.join(part))
}

pub fn after(facts: &Facts) -> Option<Hint> {
    let names = named(&facts.server);
    let first: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
    if first.is_empty() {
        return None;
    }
    let flags: Vec<String> = first.iter().map(|name| format!("-e {name}")).collect();
    let (are, were) = if first.len() == 1 { ("is", "was") } else { ("are", "were") };
    Some(Hint::new(
        "variables",
        format!(
            "{} {are} set here and named in the server's files, and {were} not passed on (add {})",
            first.join(", "),
            flags.join(" ")
        ),
    ))
}

/// Those of the dropped names that stand in a file, as whole words.
pub fn named(server: &ServerInputs) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if server.dropped.is_empty() {
        return found;
    }
    each_file(&server.files, &mut |text| {
        found.extend(words(text).filter(|word| server.dropped.contains(*word)).map(str::to_owned));
    });
    found
}

/// The text of each file of the server's own, within bounds.
fn each_file(files: &[PathBuf], read: &mut impl FnMut(&[u8])) {
    let mut budget = Budget { files: MOST_FILES, bytes: MOST_BYTES };
    for path in files {
        walk(path, 0, &mut budget, read);
    }
}

struct Budget {
    files: usize,
    bytes: u64,
}

fn walk(path: &Path, depth: usize, budget: &mut Budget, read: &mut impl FnMut(&[u8])) {
    let Ok(found) = std::fs::symlink_metadata(path) else { return };
    if found.is_file() {
        if budget.files == 0 || found.len() > LARGEST.min(budget.bytes) {
            return;
        }
        budget.files -= 1;
        budget.bytes -= found.len();
        let mut bytes = Vec::new();
        let opened = mcp_files::open(path, Links::Refuse);
        if opened.is_ok_and(|file| file.take(LARGEST).read_to_end(&mut bytes).is_ok()) {
            read(&bytes);
        }
        return;
    }
    if !found.is_dir() || depth > DEEPEST {
        return;
    }
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_other = name.starts_with('.')
            || ["node_modules", "target", "__pycache__"].contains(&name.as_str());
        if !is_other {
            walk(&entry, depth + 1, budget, read);
        }
    }
}

/// Names as programs write them: letters, digits and underscores, from 4 to 100 of them.
fn words(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes
        .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .filter(|word| (4..=100).contains(&word.len()))
        .filter_map(|word| std::str::from_utf8(word).ok())
}
