//! Paths as a person would type them after a flag.

use std::path::{Path, PathBuf};

use super::facts::Facts;
use crate::commands::run::quoted;
use crate::paths;

/// The directory that a file lies in, unless that holds everything of the user's: then the file alone.
pub fn directory_of(path: &Path, facts: &Facts) -> PathBuf {
    let above = path.parent().unwrap_or(path);
    // `../new` lies in the home, by another spelling.
    let real = paths::real(above).unwrap_or_else(|_| above.to_owned());
    match path.file_name() {
        Some(name) if holds_everything(&real, facts) => real.join(name),
        _ if holds_everything(&real, facts) => path.to_owned(),
        _ => above.to_owned(),
    }
}

pub fn holds_everything(path: &Path, facts: &Facts) -> bool {
    let is_shared = ["/", "/tmp", "/var/tmp", "/etc", "/var", "/run", "/usr", "/opt"]
        .iter()
        .any(|shared| path == Path::new(shared));
    is_shared || facts.home.as_ref().is_some_and(|home| home.starts_with(path))
}

/// `.`, a path below the current directory, or the whole path; quoted where a shell wants that.
pub fn typed(path: &Path, facts: &Facts) -> String {
    let path: PathBuf = path.components().collect();
    let below = path.strip_prefix(&facts.here).ok();
    match below {
        Some(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Some(below) => quoted(below.as_os_str()),
        None => quoted(path.as_os_str()),
    }
}
