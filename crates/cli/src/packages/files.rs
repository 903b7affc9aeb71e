//! A package's files on this machine, and who it is: a directory as it is, or a package of the store.

use std::path::{Path, PathBuf};

use mcp_files::Links;
use mcp_package::Digest;
use mcp_package::manifest::{Files, Manifest, Places, Platform, ServerJson};
use mcp_package::store::{self, Ready, Source, Store, Stored, Under};

use super::open_store;
use crate::failure::Failure;
use crate::{paths, render};

#[derive(Debug, Clone)]
pub struct Identity {
    pub reference: String,
    pub digest: Digest,
}

/// A package's files, and who it is.
pub struct PackageFiles {
    pub identity: Identity,
    /// What grants are remembered under, with the source and the digest.
    pub name: String,
    /// None for what an older `mcp` stored without it; that is shown, and not run.
    pub source: Option<Source>,
    pub root: PathBuf,
    pub files: Files,
    pub server_json: Option<ServerJson>,
    /// Keeps the files where they are until the run is over. None for a directory.
    pub ready: Option<Ready>,
}

/// A package that was changed may fail by that alone: then this is what there is to say.
pub fn telling(ready: Option<&Ready>, failure: Failure) -> Failure {
    check(ready).err().unwrap_or(failure)
}

/// That the files are what they were.
pub fn check(ready: Option<&Ready>) -> Result<(), Failure> {
    if let Some(ready) = ready.filter(|ready| !ready.is_as_recorded()) {
        open_store()?.ready(&ready.digest)?;
    }
    Ok(())
}

pub fn from_store(name: &str, stored: &Stored, mut ready: Ready) -> Result<PackageFiles, Failure> {
    let server_json = ready.server_json.take().map(|text| ServerJson::read(&text)).transpose()?;
    Ok(PackageFiles {
        identity: Identity { reference: stored.name.clone(), digest: ready.digest },
        name: name.to_owned(),
        source: stored.source.clone(),
        root: ready.root.clone(),
        files: store::read_manifests(&ready.root)?,
        server_json,
        ready: Some(ready),
    })
}

/// A directory as it is, or a bundle file by way of the store.
pub fn on_disk(path: &Path) -> Result<PackageFiles, Failure> {
    let path = match (path.strip_prefix("~"), paths::home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    let real = paths::real(&path).map_err(|e| Failure::input(&path, &e))?;
    let name = real
        .to_str()
        .ok_or_else(|| Failure::Usage(format!("{}: is not UTF-8", render::path(&real))))?;
    if real.is_dir() {
        let files = store::read_manifests(&real)?;
        // There is no digest of a directory that is being worked on; what it asks for has one.
        let digest = Digest::of(format!("{:?}\n{:?}", files.mcpb, files.ours).as_bytes());
        return Ok(PackageFiles {
            identity: Identity { reference: name.to_owned(), digest },
            name: name.to_owned(),
            source: Some(Source::file(&real)),
            files,
            server_json: None,
            ready: None,
            root: real,
        });
    }
    let store = open_store()?;
    let stored = bundle_in_store(&store, &real, name)?;
    from_store(name, &stored, store.hold(&stored.digest)?)
}

/// Hashed at every start; taken in only when it is another one.
fn bundle_in_store(store: &Store, path: &Path, name: &str) -> Result<Stored, Failure> {
    let source = Source::file(path);
    let find = || -> Result<Option<Stored>, Failure> {
        let is_it = |one: &Stored| one.name == name && one.source.as_ref() == Some(&source);
        Ok(store.list()?.into_iter().find(is_it))
    };
    if let Some(stored) = find()?
        && let Ok(manifest) = store.manifest(&stored.digest)
    {
        let file = mcp_files::open(path, Links::Follow).map_err(|e| Failure::input(path, &e))?;
        let (digest, _) = Digest::of_reader(file).map_err(|e| Failure::input(path, &e))?;
        if manifest.bundle()?.digest == digest {
            return Ok(stored);
        }
    }
    let names = [name.to_owned()];
    store.add_bundle(path, Under::Names { names: &names, source: &source }, None)?;
    find()?.ok_or_else(|| {
        Failure::Refused(format!("{}: was removed from the store meanwhile", render::plain(name)))
    })
}

/// The manifest, and what its variables stand for.
pub fn read(package: &PackageFiles) -> Result<(Manifest, Places), Failure> {
    let home = paths::home();
    let mut manifest =
        Manifest::read(&package.files, &Platform::current(), package.root.clone(), home.clone())?;
    if let Some(server) = &package.server_json {
        server.onto(&mut manifest);
    }
    let beside = |name: &str, variable: &str| {
        let home = home.as_ref()?;
        Some(user_directory(home, variable).unwrap_or_else(|| home.join(name)))
    };
    let places = Places {
        directory: package.root.clone(),
        desktop: beside("Desktop", "XDG_DESKTOP_DIR"),
        documents: beside("Documents", "XDG_DOCUMENTS_DIR"),
        downloads: beside("Downloads", "XDG_DOWNLOAD_DIR"),
        home,
    };
    Ok((manifest, places))
}

/// What a desktop calls its directories: `XDG_DESKTOP_DIR="$HOME/Schreibtisch"`.
fn user_directory(home: &Path, variable: &str) -> Option<PathBuf> {
    let file = home.join(".config/user-dirs.dirs");
    let text = mcp_files::read_text(&file, 1 << 20, Links::Follow).ok()?;
    let line =
        text.lines().find_map(|line| line.trim().strip_prefix(variable)?.strip_prefix('='))?;
    let value = line.trim().trim_matches('"');
    let path = match value.strip_prefix("$HOME/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(value),
    };
    path.is_absolute().then_some(path)
}
