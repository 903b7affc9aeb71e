//! Every file of every client, and how its servers stand.

use std::path::{Path, PathBuf};

use mcp_clients::journal::{self, Record};
use mcp_clients::{
    Bytes, Client, Document, Entry, Error, Fault, Found, Kind, Original, Scope, Stdio,
    Surroundings, System,
};

use super::own_path::{self, Own};
use super::weak_entries;
use crate::args::wire::Selection;
use crate::failure::Failure;
use crate::{paths, render};

/// What all verbs here need to know.
pub struct WireContext {
    pub home: PathBuf,
    pub project: Option<PathBuf>,
    pub own: Own,
    pub journal: PathBuf,
    pub records: Vec<Record>,
}

pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl WireContext {
    pub fn new(selection: &Selection, binary: Option<&Path>) -> Result<WireContext, Failure> {
        let no_home =
            || Failure::Usage("HOME is not set; mcp wire looks for files in it".to_owned());
        let home = paths::home().ok_or_else(no_home)?;
        let project = selection.project.as_deref();
        let project = project.map(|path| paths::real(path).map_err(|e| Failure::input(path, &e)));
        let journal = paths::wire().ok_or_else(no_home)?;
        let records = journal::records(&journal).map_err(|e| Failure::file(&journal, &e))?;
        Ok(WireContext {
            home,
            project: project.transpose()?,
            own: Own::find(binary)?,
            journal,
            records,
        })
    }

    pub fn surroundings(&self) -> Surroundings<'static> {
        Surroundings {
            system: System::of_this_program(),
            home: self.home.clone(),
            variable: &variable,
        }
    }
}

/// The clients that were named, or all.
pub fn clients(ids: &[String]) -> Result<Vec<&'static Client>, Failure> {
    if ids.is_empty() {
        return Ok(mcp_clients::all().iter().collect());
    }
    let one = |id: &String| {
        let id = &id.to_lowercase();
        mcp_clients::find(id).ok_or_else(|| {
            let near = mcp_clients::all().iter().filter(|client| {
                client.id.contains(id.as_str())
                    || id.contains(&client.id)
                    || client.name.to_lowercase().contains(id)
            });
            let near: Vec<&str> = near.map(|client| client.id.as_str()).collect();
            let hint = match near.is_empty() {
                true => "mcp wire --status lists them".to_owned(),
                false => format!("there is: {}", near.join(", ")),
            };
            Failure::Usage(format!("--client {}: no such client; {hint}", render::plain(id)))
        })
    };
    ids.iter().map(one).collect()
}

/// One file, with the clients that read it.
pub struct File {
    pub found: Found,
    pub clients: Vec<&'static Client>,
    pub content: Result<Content, Error>,
}

pub struct Content {
    pub original: Original,
    pub document: Document,
    pub servers: Vec<SurveyedServer>,
}

pub struct SurveyedServer {
    pub client: &'static Client,
    pub entry: Entry,
    pub state: State,
}

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Wired,
    /// Behind `mcp run`, with the walls taken away.
    Open(Vec<String>),
    /// Behind an mcp that is gone or another one.
    Elsewhere,
    Unwired,
    /// A person said that it stays.
    Left,
    Remote(String),
    NoCommand,
    Odd(&'static str),
}

impl State {
    pub fn word(&self) -> &'static str {
        match self {
            State::Wired => "wired",
            State::Open(_) => "open",
            State::Elsewhere => "elsewhere",
            State::Unwired => "not wired",
            State::Left => "left",
            State::Remote(_) => "remote",
            State::NoCommand => "no command",
            State::Odd(_) => "odd",
        }
    }

    /// Whether `--check` has to speak of it.
    pub fn is_trouble(&self) -> bool {
        matches!(self, State::Unwired | State::Open(_) | State::Elsewhere | State::Odd(_))
    }
}

/// Looks at all files that are there.
pub fn files(scene: &WireContext, selection: &Selection) -> Result<Vec<File>, Failure> {
    let here = scene.surroundings();
    let mut files: Vec<(PathBuf, File)> = Vec::new();
    for client in clients(&selection.client)? {
        let found = match &scene.project {
            Some(project) => mcp_clients::projects_files(client, project),
            None => mcp_clients::user_files(client, &here),
        };
        for found in found {
            let real = paths::real(&found.path).unwrap_or_else(|_| found.path.clone());
            match files.iter_mut().find(|(other, _)| *other == real) {
                Some((_, file)) => join(file, found, scene),
                None => files.push((real, load(found, scene))),
            }
        }
    }
    let mut files: Vec<File> = files.into_iter().map(|(_, file)| file).collect();
    if !selection.server.is_empty() {
        for content in files.iter_mut().filter_map(|file| file.content.as_mut().ok()) {
            content.servers.retain(|server| selection.server.contains(&server.entry.name));
        }
        let none =
            files.iter().all(|file| file.content.as_ref().is_ok_and(|one| one.servers.is_empty()));
        if none {
            let names: Vec<String> =
                selection.server.iter().map(|name| render::plain(name)).collect();
            return Err(Failure::Usage(format!(
                "--server {}: no client has a server of that name; mcp wire --status lists them",
                names.join(", ")
            )));
        }
    }
    Ok(files)
}

fn load(found: Found, scene: &WireContext) -> File {
    let clients = vec![found.client];
    let content = read(&found, scene);
    File { found, clients, content }
}

/// The same file, read by another client, which may know other keys.
fn join(file: &mut File, found: Found, scene: &WireContext) {
    if !file.clients.contains(&found.client) {
        file.clients.push(found.client);
    }
    if let Ok(content) = &mut file.content
        && let Ok(entries) = content.document.entries(found.client, &found.servers)
    {
        for entry in entries {
            if !content.servers.iter().any(|server| server.entry.trail == entry.trail) {
                let state = state(&entry, &content.original.real, scene);
                content.servers.push(SurveyedServer { client: found.client, entry, state });
            }
        }
    }
}

fn read(found: &Found, scene: &WireContext) -> Result<Content, Error> {
    let original = mcp_clients::read(&found.path)?;
    let fault = |fault: Fault| Error::Fault { path: found.path.clone(), fault };
    let text = Bytes::new(&original.bytes).ok_or_else(|| not_text(&found.path, &original.bytes))?;
    let document = Document::parse(found.format(), text.text).map_err(fault)?;
    let entries = document.entries(found.client, &found.servers).map_err(fault)?;
    let server = |entry: Entry| SurveyedServer {
        client: found.client,
        state: state(&entry, &original.real, scene),
        entry,
    };
    let servers = entries.into_iter().map(server).collect();
    Ok(Content { original, document, servers })
}

fn not_text(path: &Path, bytes: &[u8]) -> Error {
    let good = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let text = String::from_utf8_lossy(&bytes[..good]);
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    Error::Fault { path: path.to_owned(), fault: Fault::new(line, column, "is not UTF-8 text") }
}

fn state(entry: &Entry, file: &Path, scene: &WireContext) -> State {
    match &entry.kind {
        Kind::Stdio(stdio) => state_of_words(stdio, entry, file, scene),
        Kind::Remote { url } => State::Remote(url.clone()),
        Kind::Odd { why } => State::Odd(why),
        _ => State::NoCommand,
    }
}

fn state_of_words(stdio: &Stdio, entry: &Entry, file: &Path, scene: &WireContext) -> State {
    let is_run = stdio.args.first().is_some_and(|word| word == "run");
    if is_run && scene.own.is_same(&stdio.command) {
        let wide = weak_entries::opened_wide(&stdio.args, &scene.home);
        return if wide.is_empty() { State::Wired } else { State::Open(wide) };
    }
    if is_run && own_path::looks_like_ours(&stdio.command) {
        return State::Elsewhere;
    }
    match journal::is_left(&scene.records, file, &entry.trail, &stdio.words()) {
        true => State::Left,
        false => State::Unwired,
    }
}

/// The files of Windows' clients, seen from WSL: named, never edited.
pub fn windows_side() -> Vec<PathBuf> {
    let release = mcp_files::read_text(
        Path::new("/proc/sys/kernel/osrelease"),
        4096,
        mcp_files::Links::Follow,
    );
    match release {
        Ok(release) if release.to_lowercase().contains("microsoft") => {
            below_mount(Path::new("/mnt"))
        }
        _ => Vec::new(),
    }
}

fn below_mount(mount: &Path) -> Vec<PathBuf> {
    let users = std::fs::read_dir(mount.join("c/Users")).into_iter().flatten().flatten();
    let none = |_: &str| None;
    let mut files = Vec::new();
    for user in users.filter(|user| user.path().is_dir()) {
        let there = Surroundings { system: System::Windows, home: user.path(), variable: &none };
        files.extend(mcp_clients::clients_in(&there).into_iter().map(|found| found.path));
    }
    files.sort();
    files
}

pub fn is_project(found: &Found) -> bool {
    matches!(found.scope, Scope::Project(_))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_of_windows_are_named_from_wsl() {
        let mount = std::env::temp_dir().join(format!("mcp-wsl-{}", std::process::id()));
        let files = [
            "c/Users/me/AppData/Roaming/Claude/claude_desktop_config.json",
            "c/Users/me/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            "c/Users/me/.cursor/mcp.json",
        ];
        for file in files {
            let path = mount.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "{}").unwrap();
        }
        let found = below_mount(&mount);
        std::fs::remove_dir_all(&mount).unwrap();
        for file in files {
            assert!(found.contains(&mount.join(file)), "{file}: {found:?}");
        }
        assert_eq!(found.len(), files.len());
    }
}
