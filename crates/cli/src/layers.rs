//! User config, policy file and flags → the effective policy.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use mcp_files::Links;
use mcp_policy::{
    CERTIFICATE_VARIABLES, Defaults, EnvName, Layer, LayerBuilder, LayerKind, LayerSource, Policy,
    Protect, SecretRef,
};

use mcp_sandbox::platform;

use crate::args::{Limit, NetworkFlag, Permissions, Variable};
use crate::failure::Failure;
use crate::{paths, render};

/// A file larger than this is not one of ours; it is not even read to its end.
const LARGEST: u64 = 4 << 20;

/// What people said: the user's config, a policy file, flags.
pub struct People {
    pub layers: Vec<Layer>,
    env_files: Vec<EnvFile>,
}

/// An environment file that was read.
struct EnvFile {
    path: PathBuf,
    file: fs::File,
    /// Variables in it that show a file.
    showing: Vec<String>,
}

impl People {
    /// That no environment file was led elsewhere, or leads elsewhere, by a command that may write it.
    pub fn check(&self, policy: &Policy) -> Result<(), Failure> {
        for EnvFile { path, file, showing } in &self.env_files {
            if let Some(led) = platform::led_out(policy, path, file) {
                return Err(Failure::Refused(format!(
                    "not started: --env-file {} {}; name that file itself",
                    render::path(path),
                    render::plain(&led.why())
                )));
            }
            if let Some(name) = showing.first()
                && platform::is_writable(policy, path)
            {
                return Err(Failure::Refused(format!(
                    "not started: {name} in {}, which the command may write, would make a file visible; set it with --env {name}=…",
                    render::path(path)
                )));
            }
        }
        Ok(())
    }
}

pub fn effective(permissions: &Permissions, defaults: Defaults) -> Result<Policy, Failure> {
    effective_over(Vec::new(), permissions, defaults)
}

/// The same, over layers that a flag came to.
pub fn effective_over(
    mut layers: Vec<Layer>,
    permissions: &Permissions,
    defaults: Defaults,
) -> Result<Policy, Failure> {
    let mut people = of_people(permissions)?;
    layers.append(&mut people.layers);
    let policy = Policy::merge(&layers, defaults)?;
    people.check(&policy)?;
    Ok(policy)
}

pub fn of_people(permissions: &Permissions) -> Result<People, Failure> {
    let mut layers = Vec::new();
    let mut env_files = Vec::new();
    if let Some(path) = paths::config_file() {
        match fs::metadata(&path) {
            Ok(_) => layers.push(file(&path, LayerKind::UserConfig)?),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Failure::input(&path, &e)),
        }
    }
    if let Some(path) = &permissions.policy {
        layers.push(file(path, LayerKind::PolicyFile)?);
    }
    layers.push(command_line(permissions, &mut env_files)?);
    Ok(People { layers, env_files })
}

/// Every mistake of a policy file.
pub fn mistakes(path: &Path) -> Result<Vec<mcp_policy::Error>, Failure> {
    let (bytes, source) = text(path, LayerKind::PolicyFile)?;
    Ok(Layer::mistakes(&bytes, &source))
}

pub fn file(path: &Path, kind: LayerKind) -> Result<Layer, Failure> {
    let (bytes, source) = text(path, kind)?;
    Ok(Layer::from_bytes(&bytes, source)?)
}

/// A policy file as it would be with this text.
pub fn edited(path: &Path, text: &str) -> Result<Layer, Failure> {
    Ok(Layer::from_bytes(text.as_bytes(), source(path, LayerKind::PolicyFile)?)?)
}

fn text(path: &Path, kind: LayerKind) -> Result<(Vec<u8>, LayerSource), Failure> {
    let bytes = read(path)?;
    Ok((bytes, source(path, kind)?))
}

fn source(path: &Path, kind: LayerKind) -> Result<LayerSource, Failure> {
    let absolute = std::path::absolute(path).map_err(|e| Failure::file(path, &e))?;
    let base = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    Ok(LayerSource { kind, path: path.to_owned(), base, home: paths::home() })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(opened(path)?.1)
}

fn opened(path: &Path) -> Result<(fs::File, Vec<u8>), Failure> {
    let mut bytes = Vec::new();
    let file = mcp_files::open(path, Links::Follow)
        .and_then(|file| (&file).take(LARGEST).read_to_end(&mut bytes).map(|_| file))
        .map_err(|e| Failure::input(path, &e))?;
    Ok((file, bytes))
}

fn command_line(given: &Permissions, env_files: &mut Vec<EnvFile>) -> Result<Layer, Failure> {
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(_) => without_current_directory(given)?,
    };
    let mut layer = Layer::command_line(cwd, paths::home());
    for path in &given.read {
        layer.read(path);
    }
    for path in &given.write {
        layer.write(path);
    }
    for path in &given.deny {
        layer.deny(path);
    }
    for path in &given.unprotect {
        layer.allow_write(path);
    }
    if given.protect {
        layer.protect(Protect::Usual);
    } else if given.no_protect {
        layer.protect(Protect::Nothing);
    }
    for rule in &given.allow_net {
        layer.allow_net(rule.clone());
    }
    for path in &given.allow_unix {
        layer.allow_unix(path);
    }
    for port in &given.listen {
        layer.listen(*port);
    }
    if given.system_trust {
        layer.system_trust();
    }
    match given.network {
        Some(NetworkFlag::Host) => {
            layer.network_host();
        }
        Some(NetworkFlag::Isolated) => {
            layer.network_isolated();
        }
        None => {}
    }
    if given.no_subprocess {
        layer.no_subprocess();
    }
    limits(given, &mut layer);
    for path in &given.env_file {
        env_files.push(env_file(path, &mut layer)?);
    }
    for variable in &given.env {
        match variable {
            Variable::Pass(pattern) => layer.env_allow(pattern.clone()),
            Variable::Set(name, value) => layer.env_set(name.clone(), value),
        };
    }
    for text in &given.secret {
        let (name, reference) = secret(text)?;
        layer.secret(name, reference);
    }
    Ok(layer.build()?)
}

/// The current directory was deleted: what is relative to it means nothing, and must not come to
/// mean something else.
fn without_current_directory(given: &Permissions) -> Result<PathBuf, Failure> {
    let anywhere =
        |path: &&PathBuf| path.is_absolute() || path.starts_with("~") || path.starts_with("**");
    let paths = [&given.read, &given.write, &given.deny, &given.unprotect, &given.allow_unix];
    match paths.into_iter().flatten().find(|path| !anywhere(path)) {
        None => Ok(PathBuf::from("/")),
        Some(path) => Err(Failure::Usage(format!(
            "{}: the current directory is gone; write the path in full",
            render::path(path)
        ))),
    }
}

fn limits(given: &Permissions, layer: &mut LayerBuilder) {
    if let Some(Limit(value)) = given.max_memory {
        layer.memory(value);
    }
    if let Some(Limit(value)) = given.max_cpu {
        layer.cpu(value);
    }
    if let Some(Limit(value)) = given.max_cpu_time {
        layer.cpu_time(value);
    }
    if let Some(Limit(value)) = given.max_io {
        layer.io(value);
    }
    if let Some(Limit(value)) = given.max_pids {
        layer.processes(value);
    }
    if let Some(Limit(value)) = given.max_fds {
        layer.open_files(value);
    }
    if let Some(Limit(value)) = given.max_file_size {
        layer.file_size(value);
    }
    if let Some(value) = given.max_tmp {
        layer.tmp_size(value);
    }
    if let Some(Limit(value)) = given.max_address_space {
        layer.address_space(value);
    }
    if let Some(Limit(value)) = given.timeout {
        layer.timeout(value);
    }
    if let Some(value) = given.grace {
        layer.grace(value);
    }
}

/// Never repeats the value: it may be the secret itself, given by mistake.
fn secret(text: &str) -> Result<(EnvName, SecretRef), Failure> {
    let parsed = text
        .split_once('=')
        .and_then(|(name, reference)| Some((name.parse().ok()?, reference.parse().ok()?)));
    parsed.ok_or_else(|| {
        Failure::Usage(
            "--secret: expected NAME=env:VARIABLE, NAME=file:PATH or NAME=cmd:COMMAND".to_owned(),
        )
    })
}

/// `NAME=VALUE` lines; blank lines and `#` comments pass. The value is taken as it stands, but
/// for one pair of quotes around all of it.
fn env_file(path: &Path, layer: &mut LayerBuilder) -> Result<EnvFile, Failure> {
    let (file, bytes) = opened(path)?;
    let mut showing = Vec::new();
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::Usage(format!("{}: is not UTF-8 text", render::path(path))))?;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{}:{number}", render::path(path));
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| Failure::Usage(format!("{place}: expected NAME=VALUE")))?;
        let name: EnvName =
            name.trim().parse().map_err(|e| Failure::Usage(format!("{place}: {e}")))?;
        if CERTIFICATE_VARIABLES.contains(&name.as_ref()) {
            showing.push(name.to_string());
        }
        layer.env_set(name, unquoted(value.trim()));
    }
    let path = std::path::absolute(path).map_err(|e| Failure::input(path, &e))?;
    Ok(EnvFile { path, file, showing })
}

fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}
