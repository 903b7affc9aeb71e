//! The files of each client that are there.

use std::path::{Path, PathBuf};

use crate::client::{Client, FileAt, Format, NotCovered};
use crate::place::{Surroundings, System, matching};

/// A file that a client reads its servers from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found {
    /// The client that reads the file.
    pub client: &'static Client,
    /// The path of the file.
    pub path: PathBuf,
    /// Whose file it is.
    pub scope: Scope,
    /// The keys that lead to the servers in this file.
    pub servers: Vec<Vec<String>>,
    /// A remark about the file, where the client has several.
    pub note: Option<String>,
}

/// Whose file a configuration file is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The user's own.
    User,
    /// In a project, which may be shared with others.
    Project(PathBuf),
}

impl Found {
    /// A file that is not there yet.
    #[must_use]
    pub fn new(client: &'static Client, path: PathBuf, scope: Scope) -> Found {
        Found { client, path, scope, servers: client.servers.clone(), note: None }
    }

    /// By the name of the file where a client takes several formats.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.path.extension().and_then(|end| end.to_str()) {
            Some("toml") => Format::Toml,
            Some("yaml" | "yml") => Format::Yaml,
            Some("json") if self.client.format == Format::Yaml => Format::Json,
            _ => self.client.format,
        }
    }
}

fn on(
    system: System,
    linux: &Option<String>,
    macos: &Option<String>,
    windows: &Option<String>,
) -> Option<String> {
    match system {
        System::Linux => linux.clone(),
        System::Macos => macos.clone(),
        System::Windows => windows.clone(),
    }
}

/// Where a client's own files would be, the first of them being the one it makes itself.
fn user_patterns(client: &Client, here: &Surroundings<'_>) -> Vec<(PathBuf, Option<FileAt>)> {
    let mut patterns = Vec::new();
    let value = |variable: &str| (here.variable)(variable).filter(|value| !value.is_empty());
    let moved = client
        .overrides
        .iter()
        .filter(|one| !one.additional)
        .find_map(|one| Some(PathBuf::from(one.path.replace("{}", &value(&one.variable)?))));
    for (at, file) in client.files.iter().enumerate() {
        let template = on(here.system, &file.linux, &file.macos, &file.windows);
        match (at, &moved) {
            (0, Some(moved)) => patterns.push((moved.clone(), Some(file.clone()))),
            _ => {
                let path = template.and_then(|template| here.expand(&template));
                patterns.extend(path.map(|path| (path, Some(file.clone()))));
            }
        }
    }
    for one in client.overrides.iter().filter(|one| one.additional) {
        if let Some(value) = value(&one.variable) {
            patterns.push((PathBuf::from(one.path.replace("{}", &value)), None));
        }
    }
    patterns
}

/// The files of a client that are there, for this user.
#[must_use]
pub fn user_files(client: &'static Client, here: &Surroundings<'_>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (pattern, file) in user_patterns(client, here) {
        for path in matching(&pattern) {
            if found.iter().any(|other| other.path == path) {
                continue;
            }
            let servers = file.as_ref().and_then(|file| file.servers.clone());
            found.push(Found {
                client,
                path,
                scope: Scope::User,
                servers: servers.unwrap_or_else(|| client.servers.clone()),
                note: file.as_ref().and_then(|file| file.note.clone()),
            });
        }
    }
    found
}

/// The file that a client would make for its first server.
#[must_use]
pub fn first_file(client: &'static Client, here: &Surroundings<'_>) -> Option<Found> {
    let (path, file) = user_patterns(client, here).into_iter().next()?;
    let servers = file.and_then(|file| file.servers).unwrap_or_else(|| client.servers.clone());
    let is_plain = !path.to_string_lossy().contains('*');
    is_plain.then_some(Found { client, path, scope: Scope::User, servers, note: None })
}

/// The files of a client in a project.
#[must_use]
pub fn projects_files(client: &'static Client, project: &Path) -> Vec<Found> {
    let paths = client.project.iter().flat_map(|path| matching(&project.join(path)));
    let found = |path| Found {
        client,
        path,
        scope: Scope::Project(project.to_owned()),
        servers: client.servers.clone(),
        note: None,
    };
    paths.map(found).collect()
}

/// What of a client is there and is not reached: the reason, and the file where there is one.
#[must_use]
pub fn not_covered(client: &Client, here: &Surroundings<'_>) -> Vec<(String, Option<PathBuf>)> {
    let mut out = Vec::new();
    for one in &client.not_covered {
        let NotCovered { what, linux, macos, windows, variable } = one;
        if let Some(variable) = variable {
            if (here.variable)(variable).is_some() {
                out.push((format!("{what} ({variable})"), None));
            }
            continue;
        }
        if linux.is_none() && macos.is_none() && windows.is_none() {
            out.push((what.clone(), None));
            continue;
        }
        let path = on(here.system, linux, macos, windows).and_then(|path| here.expand(&path));
        let files = path.map(|path| matching(&path)).unwrap_or_default();
        out.extend(files.into_iter().map(|path| (what.clone(), Some(path))));
    }
    out
}

/// Files that may list the commands a client may start, with their format and keys.
#[must_use]
pub fn allowlist_files(
    client: &Client,
    here: &Surroundings<'_>,
) -> Vec<(PathBuf, Format, Vec<String>)> {
    let lists = client.allowlists.iter().filter_map(|list| {
        let path = on(here.system, &list.linux, &list.macos, &list.windows)?;
        let path = here.expand(&path).filter(|path| path.is_file())?;
        Some((path, list.format, list.keys.clone()))
    });
    lists.collect()
}

/// Files of clients of another system's user, for instance of Windows seen from WSL.
#[must_use]
pub fn clients_in(here: &Surroundings<'_>) -> Vec<Found> {
    crate::client::all().iter().flat_map(|client| user_files(client, here)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The build of the Windows Store reads another file; both are found.
    #[test]
    fn claude_desktop_of_the_windows_store_is_in_another_place() {
        let home = std::env::temp_dir().join(format!("mcp-store-path-{}", std::process::id()));
        let name = "claude_desktop_config.json";
        let usual = home.join("AppData/Roaming/Claude").join(name);
        let of_store = home
            .join("AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude")
            .join(name);
        for path in [&usual, &of_store] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "{}").unwrap();
        }
        let none = |_: &str| None;
        let here = Surroundings { system: System::Windows, home: home.clone(), variable: &none };
        let client = crate::client::find("claude-desktop").unwrap();
        let found: Vec<PathBuf> =
            user_files(client, &here).into_iter().map(|found| found.path).collect();
        std::fs::remove_dir_all(&home).unwrap();
        assert_eq!(found, [usual, of_store]);
    }
}
