//! Policy and command line → a request: everything that needs a look at the host.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio as ChildStdio};

use mcp_policy::{NetRule, NetworkMode, Origin, Policy, Protocol, SecretRef, Sourced, Subprocess};

use crate::error::Error;
use crate::identity::{self, Level};
use crate::request::{HOME, Home, Link, Place, PlaceKind, Request, Secret, Stdio};
use crate::unix::denials::Denials;
use crate::unix::direct::direct;
use crate::unix::locate::{Located, Search, locate, without_parents};
use crate::unix::walk::walk;
use crate::unix::{protect, sockets};
use crate::variables;
use crate::wish::Wish;

/// Variables whose value is a file that the program is to read.
const FILE_VARIABLES: [&str; 5] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// Always on PATH inside.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Only Linux has a root of its own.
const GIT_SETTINGS: Level = if cfg!(target_os = "linux") { Level::System } else { Level::Home };

pub fn resolve(wish: Wish, stdio: [Stdio; 3]) -> Result<Request, Error> {
    let Wish { policy, command, cwd, home, programs, identity } = wish;
    let host_home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let current = match std::env::current_dir() {
        Ok(current) => current,
        Err(_) => without_current_directory(&command, cwd.as_deref())?,
    };
    let mut links = Vec::new();
    let mut read = grants(&policy.filesystem.read, "read", &mut links)?;
    let mut write = grants(&policy.filesystem.write, "write", &mut links)?;
    let unix = match policy.network.mode.value {
        NetworkMode::Isolated => sockets::allowed(&policy.network.unix, &mut links)?,
        NetworkMode::Host => Vec::new(),
    };
    refuse_meeting_ports(&policy)?;

    let program = command.first().ok_or(Error::NotFound { command: String::new() })?;
    let host_path: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_else(|| SYSTEM_PATH.iter().map(PathBuf::from).collect());
    let search = Search {
        path: host_path.clone(),
        home: host_home.as_deref(),
        cwd: &current,
        variable: &|name| std::env::var(name).ok(),
    };
    let mut located = locate(program, &search)?;
    for program in &programs {
        // What is not there, or is of no installation, is the command's own problem.
        if let Ok(more) = locate(program, &search) {
            located.also(more);
        }
    }

    let mut shown = Vec::new();
    for path in &located.shown {
        shown.push(place(path).map_err(|why| Error::NotExecutable { path: path.clone(), why })?);
    }
    links.extend(located.links.iter().cloned());
    let (mut env, held_back) = variables::inherited(&policy);
    show_variables(&env, &mut shown, &mut links);
    if policy.network.mode.value == NetworkMode::Host {
        show_path(Path::new("/etc/resolv.conf"), &mut shown, &mut links);
    }

    let denials = Denials::find(&policy, &read, &write, &shown, home.as_deref())?;
    denials.spare(&located, home.as_deref())?;
    let withdrawn = denials.withdraw([&mut read, &mut write], &mut shown);

    let visible: Vec<&Place> = shown.iter().chain(&read).chain(&write).collect();
    let is_visible = |path: &Path| {
        visible.iter().any(|place| path.starts_with(&place.path)) && denials.rule(path).is_none()
    };
    // Above a grant there is a directory inside too, empty but for the way to it.
    let is_there = |path: &Path| {
        let above = |place: &&Place| path != Path::new("/") && place.path.starts_with(path);
        is_visible(path) || visible.iter().any(above)
    };
    let start = start_directory(cwd, &current, &is_there, &links)?;
    let secrets = secrets(&policy)?;
    let texts = identity::texts(identity, host_home.as_deref(), GIT_SETTINGS);
    // Not every git looks for it in /etc.
    let system_git = texts
        .first()
        .filter(|_| GIT_SETTINGS == Level::System)
        .map(|(at, _)| ("GIT_CONFIG_SYSTEM", at.clone().into_os_string()));
    for (name, value) in [
        ("PATH", inner_path(&located, &host_path, &is_visible)),
        ("HOME", HOME.into()),
        ("USER", "mcp".into()),
        ("LOGNAME", "mcp".into()),
        ("SHELL", "/bin/sh".into()),
        ("PWD", start.as_os_str().to_owned()),
    ]
    .into_iter()
    .chain(system_git)
    {
        let given = env.iter().map(|(have, _)| have).chain(secrets.iter().map(|(have, _)| have));
        if !given.into_iter().any(|have| have == name) {
            env.push((name.into(), value));
        }
    }
    let (program, argv) = match policy.process.subprocess.value {
        Subprocess::Allowed => (located.program, command),
        Subprocess::Refused => direct(&located.program, command, &search)?,
    };
    let denied = denials.denied;
    let unprotected = protect::exceptions(&policy, &write)?;
    let protected = protect::find(&policy, &write, &unprotected)?;
    let other_names = protect::other_names(&protected, &write);
    Ok(Request {
        policy,
        program,
        argv,
        shown,
        links: unique(links),
        read,
        write,
        unix,
        stray_sockets: Vec::new(),
        denied,
        withdrawn,
        other_names,
        protected,
        unprotected,
        texts,
        held_back,
        home: home.map_or(Home::Ephemeral, Home::Kept),
        cwd: start,
        env,
        secrets,
        stdio,
    })
}

/// A server on every address of its port (0.0.0.0) would meet the sandbox's own listener there.
fn refuse_meeting_ports(policy: &Policy) -> Result<(), Error> {
    for port in policy.network.listen.iter().map(|port| port.value) {
        let meets = |rule: &&Sourced<NetRule>| {
            let listed = rule.value.ports.listed().unwrap_or_default();
            rule.value.protocol == Protocol::Tcp && listed.contains(&port)
        };
        if let Some(rule) = policy.network.allow.iter().find(meets) {
            return Err(Error::Input {
                what: format!("--listen {port}"),
                why: format!(
                    "{} is reached on the same port; have the server listen on another one",
                    rule.value
                ),
            });
        }
    }
    Ok(())
}

/// The current directory was deleted: nothing may be relative to it.
fn without_current_directory(command: &[OsString], cwd: Option<&Path>) -> Result<PathBuf, Error> {
    let program = command.first().map(Path::new).filter(|path| path.components().count() > 1);
    match program.into_iter().chain(cwd).find(|path| path.is_relative()) {
        None => Ok(PathBuf::from("/")),
        Some(path) => Err(Error::Input {
            what: path.display().to_string(),
            why: "the current directory is gone; write the path in full".to_owned(),
        }),
    }
}

fn unique(mut links: Vec<Link>) -> Vec<Link> {
    links.sort();
    links.dedup();
    links
}

fn grants(
    paths: &[Sourced<PathBuf>],
    key: &str,
    links: &mut Vec<Link>,
) -> Result<Vec<Place>, Error> {
    let mut places = Vec::new();
    for Sourced { value: path, origin } in paths {
        let flag = match origin {
            Origin::CommandLine { .. } => format!("--{key}"),
            place => format!("{place}: {key}"),
        };
        let refuse = |why: String| Error::Grant { flag: flag.clone(), path: path.clone(), why };
        let walked = walk(path).map_err(|e| refuse(reason(&e)))?;
        if let Some(why) = forbidden(&walked.real) {
            return Err(refuse(why));
        }
        links.extend(walked.links);
        places.push(place(&walked.real).map_err(refuse)?);
    }
    Ok(places)
}

/// Why a host path is shown to nobody, whoever asks.
fn forbidden(real: &Path) -> Option<String> {
    for own in ["/proc", "/dev"] {
        if real.starts_with(own) {
            return Some(format!(
                "the sandbox has a {own} of its own, and the host's is a way out"
            ));
        }
    }
    if real == Path::new("/") {
        return Some("the whole host is no sandbox; name directories below /".to_owned());
    }
    let hides_home = Path::new(HOME).starts_with(real) && real != Path::new(HOME);
    hides_home.then(|| "would hide the command's own HOME; name directories below it".to_owned())
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            "does not exist (create it first, or leave it out)".to_owned()
        }
        std::io::ErrorKind::NotADirectory => "a part of it is not a directory".to_owned(),
        _ => error.to_string(),
    }
}

fn place(path: &Path) -> Result<Place, String> {
    let kind = fs::symlink_metadata(path).map_err(|e| reason(&e))?.file_type();
    let kind = if kind.is_dir() {
        PlaceKind::Directory
    } else if kind.is_file() {
        PlaceKind::File
    } else if kind.is_socket() {
        return Err("is a unix socket; allow it with --allow-unix".to_owned());
    } else {
        return Err("is neither a file nor a directory".to_owned());
    };
    Ok(Place { path: path.to_owned(), kind })
}

/// Shows a file that is there; one that is not is the program's own problem.
fn show_path(path: &Path, shown: &mut Vec<Place>, links: &mut Vec<Link>) {
    if let Ok(walked) = walk(path)
        && forbidden(&walked.real).is_none()
        && let Ok(place) = place(&walked.real)
    {
        shown.push(place);
        links.extend(walked.links);
    }
}

fn show_variables(env: &[(OsString, OsString)], shown: &mut Vec<Place>, links: &mut Vec<Link>) {
    for (name, value) in env {
        let path = Path::new(value);
        let shown_anyway = ["/etc/ssl", "/etc/pki", "/usr"].iter().any(|s| path.starts_with(s));
        if FILE_VARIABLES.iter().any(|known| name == known) && path.is_absolute() && !shown_anyway {
            show_path(path, shown, links);
        }
    }
}

/// Where the located programs are, then what else of the host's PATH can be seen inside.
fn inner_path(
    located: &Located,
    host_path: &[PathBuf],
    is_visible: &dyn Fn(&Path) -> bool,
) -> OsString {
    let system = SYSTEM_PATH.map(Path::new);
    let is_own = |directory: &&PathBuf| {
        !directory.starts_with("/usr") && !system.contains(&directory.as_path())
    };
    // Not by its name: PATH may lead through links that are made again inside.
    let reachable = |directory: &&PathBuf| walk(directory).is_ok_and(|w| is_visible(&w.real));
    let host_path = host_path.iter().filter(is_own).filter(reachable);
    let wanted = located.directories.iter().filter(is_own).chain(host_path).map(PathBuf::as_path);
    let mut directories: Vec<&Path> = Vec::new();
    for directory in wanted.chain(system) {
        if directory.is_absolute() && !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    std::env::join_paths(directories).unwrap_or_else(|_| "/usr/bin:/bin".into())
}

/// The current directory where it is there inside, else HOME.
fn start_directory(
    asked: Option<PathBuf>,
    current: &Path,
    is_there: &dyn Fn(&Path) -> bool,
    links: &[Link],
) -> Result<PathBuf, Error> {
    let Some(asked) = asked else {
        let seen = is_there(current) && current.is_dir();
        return Ok(if seen { current.to_owned() } else { HOME.into() });
    };
    let path = without_parents(current.join(&asked));
    // What the host has below /tmp is not in the private one.
    let inside = [HOME, "/usr"].iter().any(|own| path.starts_with(own))
        || ["/", "/tmp", "/var/tmp"].iter().any(|own| path == Path::new(own));
    let linked = links.iter().any(|link| path.starts_with(&link.at));
    if inside || linked || is_there(&path) {
        return Ok(path);
    }
    Err(Error::Grant {
        flag: "--cwd".to_owned(),
        path: asked,
        why: "is not visible inside (add --read or --write for it)".to_owned(),
    })
}

fn secrets(policy: &Policy) -> Result<Vec<(OsString, Secret)>, Error> {
    let mut secrets = Vec::new();
    for (name, reference) in &policy.env.secrets {
        let bad = |why: String| Error::Input { what: format!("secret {name}"), why };
        let value = fetch(&reference.value).map_err(bad)?;
        if value.is_empty() {
            return Err(bad(format!("{} gave an empty value", reference.value)));
        }
        if value.as_bytes().contains(&0) {
            return Err(bad(format!("the value of {} contains a NUL byte", reference.value)));
        }
        secrets.push((OsString::from(name.as_ref()), Secret::new(value)));
    }
    Ok(secrets)
}

fn fetch(reference: &SecretRef) -> Result<OsString, String> {
    match reference {
        SecretRef::Env(name) => std::env::var_os(AsRef::<str>::as_ref(name))
            .ok_or_else(|| format!("{name} is not set in this environment")),
        SecretRef::File(path) => {
            let file = fs::File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok(without_newline(&bounded(file)?))
        }
        SecretRef::Command(command) => from_command(command),
    }
}

fn from_command(command: &str) -> Result<OsString, String> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdout(ChildStdio::piped())
        .spawn()
        .map_err(|e| format!("could not run its command: {e}"))?;
    // Closed when read, so that a command with more to say ends as well.
    let said = child.stdout.take().map_or(Ok(Vec::new()), bounded);
    let status = child.wait().map_err(|e| format!("could not wait for its command: {e}"))?;
    let said = said?;
    if status.success() {
        Ok(without_newline(&said))
    } else {
        Err(format!("its command failed ({status})"))
    }
}

/// The kernel takes no longer string at the start of a program.
const LARGEST_SECRET: u64 = 128 * 1024;

fn bounded(from: impl std::io::Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(LARGEST_SECRET + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > LARGEST_SECRET {
        return Err("is larger than 128 KiB".to_owned());
    }
    Ok(bytes)
}

/// Files and commands end with a line feed that is not part of the value.
fn without_newline(bytes: &[u8]) -> OsString {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(test)]
mod tests;
