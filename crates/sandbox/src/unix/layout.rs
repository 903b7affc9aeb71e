//! How interpreters and tools are laid out on disk: which directory a program needs around it.
//!
//! A program in `PREFIX/bin` needs `PREFIX`, but not every parent of a `bin` is a prefix:
//! `~/bin` would show the home directory, `~/.cargo/bin` a registry token, a project's `bin` its
//! `.env`. So a prefix must look like one, and a home directory never is.

use std::path::{Path, PathBuf};

use crate::host_files::walk::walk;
use crate::unix::shim::Variable;
use crate::unix::writable::Writable;

/// Trees that hold many tools which refer to each other by absolute path.
const WHOLE: [&str; 4] =
    ["/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew", "/opt/homebrew"];

/// Where software is installed by hand, each piece in a directory of its own.
const INSTALLED: &str = "/opt";

/// Directories whose entries are people's homes, whichever user runs us.
const HOMES: [&str; 4] = ["/home", "/var/home", "/export/home", "/Users"];

/// What must be shown so that the program at `file` (without symlinks in its path, but perhaps a
/// symlink itself) can run: a directory around it, or the file alone. `home` has no symlinks
/// in its path either. What the command may write makes no directory an installation.
pub fn surroundings(file: &Path, home: Option<&Path>, writable: &Writable) -> Vec<PathBuf> {
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
    if installed || looks_like_prefix(&prefix, writable) {
        vec![prefix]
    } else {
        vec![file.to_owned()]
    }
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
fn looks_like_prefix(prefix: &Path, writable: &Writable) -> bool {
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
    let is_mark = |mark: &Path| mark.exists() && writable.is_untouched(mark);
    marks.iter().any(|mark| is_mark(&prefix.join(mark)))
        || python_libraries(prefix).iter().any(|library| is_mark(library))
}

/// Where version managers keep what they install, each version in a directory of its own: the variable that moves the
/// manager's directory, where that is below HOME else, and what of it holds the versions.
const MANAGERS: [(&str, &str, &str); 10] = [
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", ""),
    ("PYENV_ROOT", ".pyenv", "versions"),
    ("NODENV_ROOT", ".nodenv", "versions"),
    ("RBENV_ROOT", ".rbenv", "versions"),
    ("NVM_DIR", ".nvm", "versions/node"),
    ("FNM_DIR", ".local/share/fnm", "node-versions"),
    ("VOLTA_HOME", ".volta", "tools/image"),
    ("ASDF_DATA_DIR", ".asdf", "installs"),
    ("MISE_DATA_DIR", ".local/share/mise", "installs"),
    ("RUSTUP_HOME", ".rustup", "toolchains"),
];

/// Whether a program is in a version that a version manager installed, or in a store that every user may read. A
/// project may choose among those: its virtual environment was made from one, its `.python-version` names one.
pub fn is_managed(
    real: &Path,
    home: Option<&Path>,
    variable: Variable<'_>,
    writable: &Writable,
) -> bool {
    if ["/nix/store", "/gnu/store"].iter().any(|store| real.starts_with(store)) {
        return true;
    }
    let versions = MANAGERS.iter().filter_map(|(name, usual, below)| {
        let moved = variable(name).map(PathBuf::from).filter(|moved| moved.is_absolute());
        let versions = moved.or_else(|| Some(home?.join(usual)))?.join(below);
        walk(&versions).ok().filter(|walked| writable.touched_by(walked).is_none())
    });
    let is_home = |at: &Path| is_home(at) || home.is_some_and(|home| home.starts_with(at));
    versions
        .into_iter()
        .any(|at| !is_home(&at.real) && real.starts_with(&at.real) && real != at.real)
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
