//! What a package keeps between its runs: its HOME, and what it wrote beside its own files.
//!
//! One directory for each source and name, and a lock beside it that is never removed:
//!
//! ```text
//! KEY.lock           shared by its runs, exclusive for who removes what is kept
//! KEY/about.json     whose it is
//! KEY/home/          HOME, of all its versions
//! KEY/layers/DIGEST/ upper/ and work/ of overlayfs, and a lock: one run at a time may write
//! KEY/told           what was said already
//! ```
//!
//! Stops: one package sees nothing of what another keeps, nor does the same name from another source. `mcp` decides
//! nothing by what is kept: manifests, programs and records are read from the store, which the layer lies over. A server
//! sees `home/` and the layer only. Leaves open: a package may change its own code for its own next runs; that is told.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use mcp_files::Links;
use mcp_package::store::{Source, make_private};
use mcp_package::{Digest, recipes};
use mcp_policy::{NetRule, NetworkMode, Policy, Sourced};
use mcp_sandbox::{LayerWriting, WritableLayer};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{paths, render};

mod written;

pub use written::{Written, size_of};

/// A package as the words on the command line name it, and where it came from.
pub struct Owner<'a> {
    pub source: &'a Source,
    pub name: &'a str,
    pub digest: &'a Digest,
    /// Its files in the store.
    pub root: &'a Path,
}

/// Whose a kept directory is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub package: String,
    pub source: String,
}

/// What one run has of it. While it lives, no process removes it.
pub struct Kept {
    about: About,
    directory: PathBuf,
    pub home: PathBuf,
    pub layer: Option<WritableLayer>,
    _in_use: Option<File>,
    _writing: Option<File>,
}

impl Kept {
    /// Where it would be, without making anything.
    pub fn planned(owner: &Owner<'_>) -> Option<Kept> {
        let (about, directory) = place(owner)?;
        let layer = layer_directory(&directory, owner.digest);
        let layer = WritableLayer::new(owner.root.to_owned(), layer, LayerWriting::Allowed);
        let home = directory.join("home");
        let layer = Some(layer).filter(|_| cfg!(target_os = "linux"));
        Some(Kept { about, directory, home, layer, _in_use: None, _writing: None })
    }

    /// `None` where there is no place for it.
    pub fn open(owner: &Owner<'_>) -> io::Result<Option<Kept>> {
        let Some((about, directory)) = place(owner) else {
            return Ok(None);
        };
        let in_use = lock_file(&directory)?;
        in_use.lock_shared()?;
        let home = directory.join("home");
        make_private(&home)?;
        write_about(&directory, &about)?;
        let (layer, writing) = match cfg!(target_os = "linux") {
            true => open_layer(owner, &directory).map(|(layer, writing)| (Some(layer), writing))?,
            false => (None, None),
        };
        let home = paths::real(&home)?;
        let (_in_use, _writing) = (Some(in_use), writing);
        Ok(Some(Kept { about, directory, home, layer, _in_use, _writing }))
    }

    /// Before the start: what an earlier run left that changes this one.
    pub fn tell_before(&self) {
        let Some(layer) = &self.layer else { return };
        let written = Written::look(layer);
        let name = render::plain(&self.about.package);
        if layer.writing == LayerWriting::OfAnotherRun && written.entries > 0 {
            render::say(&format!(
                "another run of {name} may write beside its files now; this one sees them, and cannot write there"
            ));
        }
        if written.entries == 0 && self.earlier_versions_wrote(layer) && self.is_news("earlier") {
            render::say(&format!(
                "another version of {name} keeps files beside its own, which this one does not see: mcp data show {name}"
            ));
        }
        if written.is_cut && self.is_news("unseen") {
            render::say(&format!(
                "{name} keeps files beside its own that could not all be examined: it may have changed its own files; \
                 mcp data remove {name} takes that back"
            ));
        }
        if written.changed > 0 && self.is_news(&format!("changed {}", written.changed)) {
            let which = render::plain(&written.first_changed.join(", "));
            let dots = if written.changed > written.first_changed.len() { ", …" } else { "" };
            render::say(&format!(
                "{name} changed its own files in an earlier run ({which}{dots}); mcp data remove {name} takes that back"
            ));
        }
    }

    fn earlier_versions_wrote(&self, this: &WritableLayer) -> bool {
        let layers = self.directory.join("layers");
        let others = names(&layers).into_iter().map(|name| layers.join(name));
        others.filter(|other| other.file_name() != this.kept_in.file_name()).any(|other| {
            let other = WritableLayer::new(PathBuf::new(), other, LayerWriting::Allowed);
            Written::look(&other).entries > 0
        })
    }

    /// After the end, once: that something is kept, and where to look.
    pub fn tell_after(&self) {
        let Some(layer) = &self.layer else { return };
        if Written::look(layer).entries > 0 && self.is_news("kept") {
            let name = render::plain(&self.about.package);
            render::say(&format!(
                "what {name} writes beside its own files is kept for its next runs: mcp data show {name}"
            ));
        }
    }

    /// What a recipe proposes and was not given, once for each package: a proposal that no user followed is an answer, too.
    pub fn tell_recipe(&self, policy: &Policy) {
        let Some(recipe) = recipes::find(&self.about.package) else { return };
        let network = &policy.network;
        let has_host = |host: &str| {
            let named = |rule: &Sourced<NetRule>| rule.value.to_string().contains(host);
            network.mode.value == NetworkMode::Host || network.allow.iter().any(named)
        };
        let has = |name: &str| {
            let set = policy.env.set.keys().chain(policy.env.secrets.keys());
            set.into_iter().any(|set| set.as_str() == name)
                || policy.env.allow.iter().any(|pattern| pattern.value.matches(name))
        };
        let flags = recipe.flags(has_host, has);
        if !flags.is_empty() && self.is_news("recipe") {
            render::say(&format!(
                "{} ({}) usually needs {}; give what you want it to have",
                recipe.package,
                recipe.does,
                flags.join(" ")
            ));
        }
    }

    /// Whether this was not said yet. From now on it was.
    fn is_news(&self, line: &str) -> bool {
        let file = self.directory.join("told");
        let told = mcp_files::read_text(&file, 1 << 16, Links::Refuse).unwrap_or_default();
        if told.lines().any(|one| one == line) {
            return false;
        }
        // Said once too often is better than never.
        let _ = fs::write(&file, format!("{told}{line}\n"));
        true
    }
}

fn open_layer(owner: &Owner<'_>, directory: &Path) -> io::Result<(WritableLayer, Option<File>)> {
    let at = layer_directory(directory, owner.digest);
    for name in ["upper", "work"] {
        make_private(&at.join(name))?;
    }
    // It becomes the directory of the package as the command sees it, whose parents are closed outside.
    #[cfg(unix)]
    fs::set_permissions(at.join("upper"), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let lock = File::options().create(true).append(true).open(at.join("lock"))?;
    let (writing, lock) = match lock.try_lock() {
        Ok(()) => (LayerWriting::Allowed, Some(lock)),
        Err(_) => (LayerWriting::OfAnotherRun, None),
    };
    Ok((WritableLayer::new(owner.root.to_owned(), paths::real(&at)?, writing), lock))
}

fn layer_directory(directory: &Path, digest: &Digest) -> PathBuf {
    directory.join("layers").join(digest.hex())
}

fn place(owner: &Owner<'_>) -> Option<(About, PathBuf)> {
    let about = About { package: owner.name.to_owned(), source: owner.source.to_string() };
    let directory = paths::package_data()?.join(key(&about));
    Some((about, directory))
}

/// One path component: readable, and different for another source or name.
fn key(about: &About) -> String {
    let digest = Digest::of(format!("{}\0{}", about.source, about.package).as_bytes()).hex();
    let good = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '-' };
    let name: String = about.package.chars().map(good).take(64).collect();
    format!("{}-{}", name.trim_matches('-'), &digest[..16])
}

fn lock_file(directory: &Path) -> io::Result<File> {
    if let Some(parent) = directory.parent() {
        make_private(parent)?;
    }
    File::options().create(true).append(true).open(directory.with_extension("lock"))
}

fn write_about(directory: &Path, about: &About) -> io::Result<()> {
    let file = directory.join("about.json");
    match file.exists() {
        true => Ok(()),
        false => fs::write(file, serde_json::to_vec(about)?),
    }
}

/// A kept directory, as `mcp data` sees it.
pub struct KeptDirectory {
    pub about: About,
    pub directory: PathBuf,
    pub layers: Vec<Layer>,
}

/// What one version wrote beside its own files.
pub struct Layer {
    /// The package's digest, in hexadecimal digits.
    pub digest: String,
    pub kept: WritableLayer,
}

/// All that is kept, in the order of names.
pub fn all() -> Result<Vec<KeptDirectory>, Failure> {
    let Some(data) = paths::package_data() else { return Ok(Vec::new()) };
    let mut all: Vec<KeptDirectory> = names(&data)
        .into_iter()
        .filter_map(|name| {
            let directory = data.join(name);
            let file = directory.join("about.json");
            let about = mcp_files::read_text(&file, 1 << 16, Links::Refuse).ok()?;
            let about: About = serde_json::from_str(&about).ok()?;
            let layers = names(&directory.join("layers"));
            let layers = layers.into_iter().map(|digest| layer(&directory, digest)).collect();
            Some(KeptDirectory { about, directory, layers })
        })
        .collect();
    all.sort_by(|a, b| a.about.package.cmp(&b.about.package));
    Ok(all)
}

/// What a package itself changed of its files, for its runs.
pub struct OwnChanges {
    pub files: usize,
    /// Whether some of what it wrote could not be looked at.
    pub is_cut: bool,
}

pub fn own_changes(digest: &Digest) -> OwnChanges {
    let found = all().unwrap_or_default();
    let layers = found.iter().flat_map(|one| &one.layers);
    let of_it = layers.filter(|layer| layer.digest == digest.hex());
    let none = OwnChanges { files: 0, is_cut: false };
    of_it.map(|layer| Written::look(&layer.kept)).fold(none, |all, one| OwnChanges {
        files: all.files + one.changed,
        is_cut: all.is_cut || one.is_cut,
    })
}

fn layer(directory: &Path, digest: String) -> Layer {
    let at = directory.join("layers").join(&digest);
    let parsed = Digest::from_hex(&digest).ok();
    let root = parsed.and_then(|digest| {
        let store = super::open_store().ok()?;
        Some(store.files_of(&digest))
    });
    let kept = WritableLayer::new(root.unwrap_or_default(), at, LayerWriting::Allowed);
    Layer { digest, kept }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

impl KeptDirectory {
    /// Removes all of it, unless a run uses it.
    pub fn remove(&self) -> Result<(), Failure> {
        let failed = |e: &io::Error| Failure::file(&self.directory, e);
        let lock = lock_file(&self.directory).map_err(|e| failed(&e))?;
        if lock.try_lock().is_err() {
            return Err(Failure::Refused(format!(
                "{} is running; end it first (mcp ps)",
                render::plain(&self.about.package)
            )));
        }
        mcp_files::remove_tree(&self.directory).map_err(|e| failed(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_component_and_of_one_source() {
        let about = |package: &str, source: &str| About {
            package: package.to_owned(),
            source: source.to_owned(),
        };
        let one = key(&about("npm:@scope/name", "npm:https://a"));
        assert!(one.starts_with("npm--scope-name-"), "{one}");
        for other in [
            about("npm:@scope/name", "npm:https://b"),
            about("npm:@scope-name", "npm:https://a"),
            about("../../etc", "file:/x"),
            about("", ""),
        ] {
            let key = key(&other);
            assert_ne!(key, one);
            assert!(!key.contains(['/', '.', '\\']), "{key}");
        }
    }
}
