//! How interpreters and tools are laid out on disk: which directory a program needs around it.
//!
//! A program in `PREFIX/bin` needs `PREFIX`, but not every parent of a `bin` is a prefix:
//! `~/bin` would show the home directory, `~/.cargo/bin` a registry token, a project's `bin` its
//! `.env`. So a prefix must look like one, and a home directory never is.

use std::path::{Path, PathBuf};

/// Trees that hold many tools which refer to each other by absolute path.
const WHOLE: [&str; 4] =
    ["/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew", "/opt/homebrew"];

/// Where software is installed by hand, each piece in a directory of its own.
const INSTALLED: &str = "/opt";

/// Directories whose entries are people's homes, whoever runs us.
const HOMES: [&str; 4] = ["/home", "/var/home", "/export/home", "/Users"];

/// What must be shown so that the program at `file` (without symlinks in its path, but perhaps a
/// symlink itself) can run: a directory around it, or the file alone. `home` has no symlinks
/// in its path either.
pub fn surroundings(file: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    if let Some(whole) = WHOLE.iter().find(|whole| file.starts_with(whole)) {
        return vec![PathBuf::from(whole)];
    }
    if let Some(modules) = outermost_modules(file) {
        return vec![modules];
    }
    let Some(prefix) = prefix(file) else { return vec![file.to_owned()] };
    if is_home(&prefix) || home.is_some_and(|home| home.starts_with(&prefix)) {
        return vec![file.to_owned()];
    }
    if prefix.ends_with(".local") {
        // pip's user installs: the script needs its packages, and nothing else of ~/.local.
        let mut shown = vec![file.to_owned()];
        shown.extend(python_libraries(&prefix));
        return shown;
    }
    let installed = prefix.parent().is_some_and(|parent| parent.starts_with(INSTALLED))
        && home.is_none_or(|home| !prefix.starts_with(home));
    if installed || looks_like_prefix(&prefix) { vec![prefix] } else { vec![file.to_owned()] }
}

fn prefix(file: &Path) -> Option<PathBuf> {
    let directory = file.parent()?;
    let name = directory.file_name()?;
    (name == "bin" || name == "sbin" || name == "libexec")
        .then(|| directory.parent().map(Path::to_owned))?
}

fn is_home(prefix: &Path) -> bool {
    let parent = prefix.parent();
    prefix == Path::new("/root")
        || HOMES.map(Path::new).contains(&prefix)
        || parent.is_none_or(|parent| HOMES.map(Path::new).contains(&parent))
}

/// `…/node_modules` of a project or a global install. Node itself is found by its own rule.
fn outermost_modules(file: &Path) -> Option<PathBuf> {
    file.ancestors().filter(|a| a.ends_with("node_modules")).last().map(Path::to_owned)
}

/// Files that only an installation has: a project with a `bin` of its own must not pass for one.
fn looks_like_prefix(prefix: &Path) -> bool {
    let marks = [
        "pyvenv.cfg",
        "conda-meta",
        "lib/node_modules",
        "include/node",
        "pkg/tool",
        "lib/rustlib",
        "lib/ruby",
        "lib/perl5",
        "lib/jvm.cfg",
        "jre/lib/rt.jar",
    ];
    marks.iter().any(|mark| prefix.join(mark).exists()) || !python_libraries(prefix).is_empty()
}

fn python_libraries(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(prefix.join("lib")) else {
        return Vec::new();
    };
    let mut libraries: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().is_some_and(|name| {
                let name = name.to_string_lossy();
                name.starts_with("python3") || name.starts_with("pypy")
            })
        })
        .filter(|path| path.is_dir())
        .collect();
    libraries.sort();
    libraries
}

#[cfg(test)]
mod tests;
