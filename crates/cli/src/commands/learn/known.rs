//! Places of credentials by what they are, and not by their names: a bind mount or a hard link is another name for one, and a
//! variable may say that a program keeps them elsewhere.
//!
//! Bounded: of the files in each such place the first thousand are known.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use mcp_learn::{path_reason, secret_places};

/// Entries of one place of credentials that are looked at for hard links.
#[cfg(unix)]
const MOST_ENTRIES: usize = 1_000;

/// Where programs keep what they usually keep below the home directory.
const MOVED: &[(&str, &str)] = &[
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
    ("GNUPGHOME", ".gnupg"),
    ("KUBECONFIG", ".kube/config"),
    ("DOCKER_CONFIG", ".docker"),
    ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
    ("AWS_CONFIG_FILE", ".aws/config"),
    ("AZURE_CONFIG_DIR", ".azure"),
    ("CLOUDSDK_CONFIG", ".config/gcloud"),
    ("GOOGLE_APPLICATION_CREDENTIALS", ".config/gcloud/credentials.json"),
    ("GH_CONFIG_DIR", ".config/gh"),
    ("CARGO_HOME", ".cargo"),
    ("NPM_CONFIG_USERCONFIG", ".npmrc"),
    ("PGPASSFILE", ".pgpass"),
    ("NETRC", ".netrc"),
    ("PASSWORD_STORE_DIR", ".password-store"),
    ("SOPS_AGE_KEY_FILE", ".age/keys.txt"),
    ("CODEX_HOME", ".codex"),
    ("CLAUDE_CONFIG_DIR", ".claude"),
];

/// A device and a number on it.
type Identity = (u64, u64);

/// The usual names of places, by what they are.
pub struct Known {
    home: Option<PathBuf>,
    names: HashMap<Identity, PathBuf>,
}

impl Known {
    pub fn of(home: Option<&Path>) -> Known {
        let mut known = Known { home: home.map(Path::to_owned), names: HashMap::new() };
        let variable = |(name, below): &(&str, &str)| {
            let places = std::env::split_paths(&std::env::var_os(name)?).collect::<Vec<_>>();
            Some((places, home?.join(below)))
        };
        for (places, name) in MOVED.iter().filter_map(variable) {
            for place in places {
                known.add(&place, &name);
            }
        }
        for place in secret_places(home) {
            known.add(&place, &place);
        }
        known.add_hard_links();
        known
    }

    /// The name that a place without links usually has, where that is another one.
    pub fn name_of(&self, real: &Path) -> Option<PathBuf> {
        let name = real.ancestors().find_map(|above| {
            let name = self.names.get(&identity(above)?)?;
            Some(name.join(real.strip_prefix(above).ok()?))
        })?;
        // What is joined with nothing ends with a slash.
        let name: PathBuf = name.components().collect();
        (name != real).then_some(name)
    }

    /// Whether a place is one of credentials, whatever it is called.
    pub fn is_secret(&self, place: &Path) -> bool {
        let name = identity(place).and_then(|identity| self.names.get(&identity));
        name.is_some_and(|name| path_reason(name, self.home.as_deref()).is_some())
    }

    fn add(&mut self, place: &Path, name: &Path) {
        let Ok(real) = std::fs::canonicalize(place) else { return };
        let Some(identity) = identity(&real) else { return };
        // Of two names the one without links is the usual one.
        if real == name || !self.names.contains_key(&identity) {
            self.names.insert(identity, name.to_owned());
        }
    }

    #[cfg(unix)]
    fn add_hard_links(&mut self) {
        use std::os::unix::fs::MetadataExt;
        let is_secret = |name: &&PathBuf| path_reason(name, self.home.as_deref()).is_some();
        let is_place = |name: &&PathBuf| {
            // What is above such a place holds other things too.
            !secret_places(self.home.as_deref())
                .any(|other| other != **name && other.starts_with(name))
        };
        let places = self.names.values().filter(is_secret).filter(is_place);
        let places: Vec<PathBuf> = places
            .filter(|name| self.home.as_ref().is_some_and(|home| name.starts_with(home)))
            .cloned()
            .collect();
        for place in places {
            let mut pending = vec![place];
            let mut left = MOST_ENTRIES;
            while let Some(directory) = pending.pop() {
                for entry in
                    std::fs::read_dir(&directory).into_iter().flatten().flatten().take(left)
                {
                    left -= 1;
                    let Ok(found) = entry.metadata() else { continue };
                    if found.is_dir() {
                        pending.push(entry.path());
                    } else if found.is_file() && found.nlink() > 1 {
                        self.names.insert((found.dev(), found.ino()), entry.path());
                    }
                }
            }
        }
    }

    #[cfg(not(unix))]
    fn add_hard_links(&mut self) {}
}

#[cfg(unix)]
fn identity(real: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::symlink_metadata(real).ok()?;
    Some((found.dev(), found.ino()))
}

/// Windows has no other names that a program could make up without being an administrator.
#[cfg(not(unix))]
fn identity(_: &Path) -> Option<Identity> {
    None
}
