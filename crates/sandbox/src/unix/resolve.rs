//! Policy and command line → a request: everything that needs a look at the host.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio as ChildStdio};

use mcp_policy::{
    CERTIFICATE_VARIABLES, NetRule, NetworkMode, Policy, Protocol, SecretRef, Sourced, Subprocess,
};

use crate::core::error::Error;
use crate::core::request::{HOME, Home, Link, Place, Request, Secret, Stdio, Unshown};
use crate::core::run_spec::RunSpec;
use crate::core::variables;
use crate::core::watched::Watching;
use crate::host_files::walk::walk;
use crate::identity::{self, ConfigScope};
use crate::unix::denials::Denials;
use crate::unix::direct_exec::direct;
use crate::unix::grants::{self, forbidden, place};
use crate::unix::locate::{
    Located, Looked, ProgramSearch, SystemPath, Unlocated, locate, without_parents,
};
use crate::unix::writable::Writable;
use crate::unix::{protect, sockets};

/// Always on PATH inside.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Only Linux has a root of its own.
const GIT_SETTINGS: ConfigScope =
    if cfg!(target_os = "linux") { ConfigScope::System } else { ConfigScope::Home };

pub fn resolve(spec: RunSpec, stdio: [Stdio; 3]) -> Result<Request, Error> {
    let RunSpec { policy, command, cwd, home, programs, identity } = spec;
    let host_home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let current =
        std::env::current_dir().or_else(|_| without_current_directory(&command, cwd.as_deref()))?;
    let mut links = Vec::new();
    let (mut read, mut write) = grants::resolve(&policy, home.as_deref(), &mut links)?;
    let writable = Writable::new(&read, &write, home.as_deref());
    let unix = allowed_sockets(&policy, &writable, &mut links)?;
    refuse_meeting_ports(&policy)?;

    let program = command.first().ok_or(Error::NotFound { command: String::new() })?;
    let host_path = host_path();
    let search = ProgramSearch {
        path: host_path.clone(),
        home: host_home.as_deref(),
        cwd: &current,
        variable: &|name| std::env::var(name).ok(),
        writable: &writable,
    };
    let mut located = locate_all(program, &programs, &search)?;

    let mut shown = shown_places(&located)?;
    links.extend(located.links.iter().cloned());
    let (mut env, held_back) = variables::inherited(&policy);
    let mut unshown = std::mem::take(&mut located.unshown);
    unshown.extend(show_variables(&env, &writable, &mut shown, &mut links));
    if policy.network.mode.value == NetworkMode::Host {
        unshown.extend(show_path(Path::new("/etc/resolv.conf"), &writable, &mut shown, &mut links));
    }

    let denials = Denials::find(&policy, &read, &write, &shown, home.as_deref())?;
    denials.spare(&located, home.as_deref())?;
    let withdrawn = denials.withdraw([&mut read, &mut write], &mut shown);

    let view = View { places: [&shown, &read, &write], denials: &denials };
    let start = start_directory(cwd, &current, &|path| view.is_there(path), &links)?;
    let secrets = secrets(&policy, &writable)?;
    // The command may have led these settings to another user's: only the user's own are taken.
    let is_own = |file: &Path| walk(file).is_ok_and(|way| writable.left_by(&way).is_none());
    let texts = identity::texts(identity, host_home.as_deref(), GIT_SETTINGS, &is_own);
    let path = inner_path(&located, &host_path, &|path| view.is_visible(path));
    env.extend(own_variables(&env, &secrets, path, &start, &texts));
    let (program, argv) = match policy.process.subprocess.value {
        Subprocess::Allowed => (located.program, command),
        Subprocess::Refused => direct(&located.program, command, &search)?,
    };
    let denied = denials.denied;
    let unprotected = protect::exceptions(&policy, &write)?;
    let protected = protect::find(&policy, &write, &unprotected)?;
    let other_names = protect::other_names(&protected, &write);
    links.extend(home_links(home.as_deref(), host_home.as_deref(), &[&read, &write]));
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
        unshown,
        home: home.map_or(Home::Ephemeral, Home::Kept),
        layer: None,
        scripts: Vec::new(),
        watching: Watching::Off,
        cwd: start,
        env,
        secrets,
        stdio,
    })
}

/// Sockets of the host that a person named; with the host's network all of them are there.
fn allowed_sockets(
    policy: &Policy,
    writable: &Writable,
    links: &mut Vec<Link>,
) -> Result<Vec<Place>, Error> {
    match policy.network.mode.value {
        NetworkMode::Isolated => sockets::allowed(&policy.network.unix, writable, links),
        NetworkMode::Host => Ok(Vec::new()),
    }
}

/// What is granted below the user's home, in the new HOME under the same name: `~/notes` means the same inside.
fn home_links(kept: Option<&Path>, host_home: Option<&Path>, grants: &[&[Place]]) -> Vec<Link> {
    let home = host_home.and_then(|home| home.canonicalize().ok());
    let Some(home) = home.filter(|_| cfg!(target_os = "linux") && kept.is_none()) else {
        return Vec::new();
    };
    if home.starts_with(HOME) || Path::new(HOME).starts_with(&home) {
        return Vec::new();
    }
    let granted: Vec<&Path> =
        grants.iter().flat_map(|all| all.iter()).map(|place| &*place.path).collect();
    let is_below =
        |path: &Path| granted.iter().any(|other| path != *other && path.starts_with(other));
    let link = |path: &&Path| {
        let name = path.strip_prefix(&home).ok().filter(|name| !name.as_os_str().is_empty())?;
        // One above it is linked already.
        (!is_below(path)).then(|| Link { at: Path::new(HOME).join(name), to: path.to_path_buf() })
    };
    granted.iter().filter_map(link).collect()
}

/// Where the user's programs are.
fn host_path() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_else(|| SYSTEM_PATH.iter().map(PathBuf::from).collect())
}

/// What is shown for a program, opened.
fn shown_places(located: &Located) -> Result<Vec<Place>, Error> {
    let mut shown = Vec::new();
    for path in &located.shown {
        shown.push(place(path).map_err(|why| Error::NotExecutable { path: path.clone(), why })?);
    }
    Ok(shown)
}

/// What the command will see of the host's files.
struct View<'a> {
    places: [&'a [Place]; 3],
    denials: &'a Denials<'a>,
}

impl View<'_> {
    fn is_visible(&self, path: &Path) -> bool {
        let mut places = self.places.iter().copied().flatten();
        places.any(|place| path.starts_with(&place.path)) && self.denials.rule(path).is_none()
    }

    /// Above a grant there is a directory inside too, empty but for the way to it.
    fn is_there(&self, path: &Path) -> bool {
        let mut places = self.places.iter().copied().flatten();
        self.is_visible(path)
            || path != Path::new("/") && places.any(|place| place.path.starts_with(path))
    }
}

/// The command's program, and the others that its text names.
fn locate_all(
    program: &OsStr,
    programs: &[OsString],
    search: &ProgramSearch<'_>,
) -> Result<Located, Error> {
    let mut located = locate(program, search)?;
    let system = if programs.is_empty() { None } else { Some(SystemPath::new(search)) };
    for program in programs {
        let mut more = match system.as_ref().map(|system| system.look(program)) {
            Some(Looked::Found(found)) => Ok(found),
            Some(Looked::Missing) => continue,
            _ => locate(program, search),
        };
        if let Err(Unlocated::Unshown(unshown)) = more {
            located.unshown.push(unshown);
            // Inside, that one leads nowhere, and shells go on to the next.
            more = locate(program, &search.untouched());
        }
        // What is not there, or is of no installation, is the command's own problem.
        if let Ok(more) = more {
            located.also(more);
        }
    }
    Ok(located)
}

/// The variables that every command has, unless the user gives others of that name.
fn own_variables(
    env: &[(OsString, OsString)],
    secrets: &[(OsString, Secret)],
    path: OsString,
    start: &Path,
    texts: &[(PathBuf, String)],
) -> Vec<(OsString, OsString)> {
    // Not every git looks for it in /etc.
    let system_git = texts
        .first()
        .filter(|_| GIT_SETTINGS == ConfigScope::System)
        .map(|(at, _)| ("GIT_CONFIG_SYSTEM", at.clone().into_os_string()));
    let is_given = |name: &str| {
        env.iter().any(|(given, _)| given == name) || secrets.iter().any(|(given, _)| given == name)
    };
    [
        ("PATH", path),
        ("HOME", HOME.into()),
        ("USER", "mcp".into()),
        ("LOGNAME", "mcp".into()),
        ("SHELL", "/bin/sh".into()),
        ("PWD", start.as_os_str().to_owned()),
    ]
    .into_iter()
    .chain(system_git)
    .filter(|(name, _)| !is_given(name))
    .map(|(name, value)| (name.into(), value))
    .collect()
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

/// Shows a file that is there; one that is not is the program's own problem. What is not shown, because something
/// writable leads to it.
fn show_path(
    path: &Path,
    writable: &Writable,
    shown: &mut Vec<Place>,
    links: &mut Vec<Link>,
) -> Option<Unshown> {
    let walked = walk(path).ok().filter(|walked| forbidden(&walked.real).is_none())?;
    if let Some(root) = writable.left_by(&walked) {
        let (at, root, to) = (path.to_owned(), root.to_owned(), walked.real);
        return Some(Unshown { at, root, read: to.clone(), to });
    }
    if let Ok(place) = place(&walked.real) {
        shown.push(place);
        links.extend(walked.links);
    }
    None
}

fn show_variables(
    env: &[(OsString, OsString)],
    writable: &Writable,
    shown: &mut Vec<Place>,
    links: &mut Vec<Link>,
) -> Vec<Unshown> {
    let is_certificate = |name: &OsStr| CERTIFICATE_VARIABLES.iter().any(|known| name == *known);
    let paths =
        env.iter().filter(|(name, _)| is_certificate(name)).map(|(_, path)| Path::new(path));
    let shown_anyway =
        |path: &Path| ["/etc/ssl", "/etc/pki", "/usr"].iter().any(|s| path.starts_with(s));
    let paths = paths.filter(|path| path.is_absolute() && !shown_anyway(path));
    paths.filter_map(|path| show_path(path, writable, shown, links)).collect()
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
    let is_missing =
        path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
    let why = match is_missing {
        true => "does not exist",
        false => "is not visible inside (add --read or --write for it)",
    };
    Err(Error::Grant { flag: "--cwd".to_owned(), path: asked, why: why.to_owned() })
}

fn secrets(policy: &Policy, writable: &Writable) -> Result<Vec<(OsString, Secret)>, Error> {
    let mut secrets = Vec::new();
    for (name, reference) in &policy.env.secrets {
        let bad = |why: String| Error::Input { what: format!("secret {name}"), why };
        let value = fetch(&reference.value, writable).map_err(bad)?;
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

fn fetch(reference: &SecretRef, writable: &Writable) -> Result<OsString, String> {
    match reference {
        SecretRef::Env(name) => std::env::var_os(AsRef::<str>::as_ref(name))
            .ok_or_else(|| format!("{name} is not set in this environment")),
        SecretRef::File(path) => {
            let told = |why: String| format!("{}: {why}", path.display());
            let file =
                mcp_files::open(path, mcp_files::Links::Follow).map_err(|e| told(e.to_string()))?;
            if let Some(led) = writable.led_out(path, &file) {
                return Err(told(format!("{}; name that file itself", led.why())));
            }
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
