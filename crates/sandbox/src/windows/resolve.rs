//! Policy and command line → a request: everything that needs a look at the host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp_policy::windows_path::Spelling;
use mcp_policy::{Origin, Sourced, WindowsPath};

use crate::core::error::Error;
use crate::core::request::{HOME, Home, Place, PlaceKind, Request};
use crate::core::run_spec::RunSpec;
use crate::core::variables;
use crate::identity::{self, ConfigScope};
use crate::windows::denials::Denials;
use crate::windows::locate::{self, Located};
use crate::windows::{protect, secrets, stdio};

pub fn resolve(spec: RunSpec) -> Result<Request, Error> {
    let RunSpec { policy, command, cwd, home, programs, identity } = spec;
    let current = std::env::current_dir()
        .map_err(|source| Error::Io { doing: "find the current directory".to_owned(), source })?;
    let mut read = grants(&policy.filesystem.read, "read")?;
    let mut write = grants(&policy.filesystem.write, "write")?;
    let program = command.first().ok_or(Error::NotFound { command: String::new() })?;
    let located = locate::locate(program, &current)?;
    let mut shown = Vec::new();
    // What is not there is the command's own problem.
    let more = programs.iter().filter_map(|name| locate::locate(name, &current).ok());
    for path in more.flat_map(|more| more.shown) {
        shown.extend(place(&path));
    }
    for path in &located.shown {
        shown.push(place(path).map_err(|why| Error::NotExecutable { path: path.clone(), why })?);
    }
    let denials = Denials::find(&policy, [&read, &write, &shown], home.as_deref())?;
    denials.spare(&located, home.as_deref())?;
    let withdrawn = denials.withdraw([&mut read, &mut write], &mut shown);
    let unprotected = protect::exceptions(&policy, &write)?;
    let protected = protect::find(&policy, &write, &unprotected)?;
    let visible: Vec<PathBuf> =
        shown.iter().chain(&read).chain(&write).map(|place| place.path.clone()).collect();
    let start = start_directory(cwd, &current, &visible)?;
    let (mut env, held_back) = variables::inherited(&policy);
    let path = inner_path(&located, &visible);
    if !env.iter().any(|(name, _)| name.eq_ignore_ascii_case("PATH")) {
        env.push(("PATH".into(), path));
    }
    let mut command = command;
    if let Some(script) = &located.script {
        command.insert(1.min(command.len()), script.clone().into_os_string());
    }
    let texts = identity::texts(identity, git_home().as_deref(), ConfigScope::Home, &|_| true);
    Ok(Request {
        secrets: secrets::fetch_all(&policy)?,
        texts,
        stdio: stdio::inspect()?,
        shown,
        read,
        write,
        denied: denials.denied.clone(),
        withdrawn,
        protected,
        unprotected,
        held_back,
        unshown: Vec::new(),
        home: home.map_or(Home::Ephemeral, Home::Kept),
        cwd: start,
        env,
        ..Request::bare(policy, located.program, command)
    })
}

/// Where the user's git looks for settings.
fn git_home() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    named("HOME").or_else(|| named("USERPROFILE"))
}

fn grants(paths: &[Sourced<PathBuf>], key: &str) -> Result<Vec<Place>, Error> {
    let mut places = Vec::new();
    for Sourced { value: path, origin } in paths {
        let flag = match origin {
            Origin::CommandLine { .. } => format!("--{key}"),
            place => format!("{place}: {key}"),
        };
        let refuse = |why: String| Error::Grant { flag: flag.clone(), path: path.clone(), why };
        written(path).map_err(|why| refuse(why.to_owned()))?;
        let real = locate::plain(path).map_err(|e| refuse(reason(&e)))?;
        if real.parent().is_none() {
            let why = "the whole drive is no sandbox; name directories below it";
            return Err(refuse(why.to_owned()));
        }
        places.push(place(&real).map_err(refuse)?);
    }
    Ok(places)
}

/// As a person wrote it: streams, devices and servers are refused before the system is asked.
fn written(path: &Path) -> Result<(), &'static str> {
    let text = path.to_str().ok_or("is not valid Unicode")?;
    // What `..` means depends on links; the system resolves both.
    let names: Vec<&str> = text.split(['\\', '/']).filter(|name| *name != "..").collect();
    // So it does with short names, which the system itself hands out (`%TEMP%` of a user with a long name).
    WindowsPath::parse(&names.join("\\"), Spelling::Resolved).map(drop)
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            "does not exist (create it first, or leave it out)".to_owned()
        }
        _ => error.to_string(),
    }
}

fn place(path: &Path) -> Result<Place, String> {
    let metadata = std::fs::symlink_metadata(path).map_err(|e| reason(&e))?;
    let kind = if metadata.is_dir() {
        PlaceKind::Directory
    } else if metadata.is_file() {
        PlaceKind::File
    } else {
        return Err("is neither a file nor a directory".to_owned());
    };
    Ok(Place { path: path.to_owned(), kind })
}

/// Where the program is, the system, and what else of the host's PATH can be read inside.
fn inner_path(located: &Located, visible: &[PathBuf]) -> OsString {
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    let root = PathBuf::from(root);
    let files = std::env::var_os("ProgramFiles").map(PathBuf::from);
    let mut directories: Vec<PathBuf> =
        located.program.parent().map(Path::to_owned).into_iter().collect();
    directories.extend([
        root.join("System32"),
        root.clone(),
        root.join(r"System32\WindowsPowerShell\v1.0"),
    ]);
    let host = std::env::var_os("PATH").unwrap_or_default();
    for directory in std::env::split_paths(&host) {
        let readable = visible.iter().chain(&files).any(|place| directory.starts_with(place));
        if readable && directory.is_absolute() && !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    std::env::join_paths(directories).unwrap_or_else(|_| root.join("System32").into())
}

/// The current directory where it is there inside, else HOME.
fn start_directory(
    asked: Option<PathBuf>,
    current: &Path,
    visible: &[PathBuf],
) -> Result<PathBuf, Error> {
    let is_there = |path: &Path| visible.iter().any(|place| path.starts_with(place));
    let Some(asked) = asked else {
        let seen = locate::plain(current).ok().filter(|path| is_there(path));
        return Ok(seen.unwrap_or_else(|| HOME.into()));
    };
    if asked.starts_with(HOME) {
        return Ok(asked);
    }
    let refuse = |why: String| Error::Grant { flag: "--cwd".to_owned(), path: asked.clone(), why };
    let real = locate::plain(&current.join(&asked)).map_err(|e| refuse(reason(&e)))?;
    match is_there(&real) {
        true => Ok(real),
        false => Err(refuse("is not visible inside (add --read or --write for it)".to_owned())),
    }
}
