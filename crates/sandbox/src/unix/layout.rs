//! How interpreters and tools are laid out on disk: which directory a program needs around it.
//!
//! A program in `PREFIX/bin` needs `PREFIX`, but not every parent of a `bin` is a prefix:
//! `~/bin` would show the home directory, `~/.cargo/bin` a registry token. So a prefix below the
//! home directory must look like one.

use std::path::{Path, PathBuf};

/// Trees that hold many tools which refer to each other by absolute path.
const WHOLE: [&str; 4] =
    ["/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew", "/opt/homebrew"];

/// What must be shown so that the program at `file` (without symlinks in its path, but perhaps a
/// symlink itself) can run: a directory around it, or the file alone.
pub fn surroundings(file: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    if let Some(whole) = WHOLE.iter().find(|whole| file.starts_with(whole)) {
        return vec![PathBuf::from(whole)];
    }
    if let Some(modules) = outermost_modules(file) {
        return vec![modules];
    }
    let Some(prefix) = prefix(file) else {
        return vec![file.to_owned()];
    };
    let in_home = home.is_some_and(|home| prefix.starts_with(home));
    if home.is_some_and(|home| home.starts_with(&prefix)) || prefix == Path::new("/") {
        return vec![file.to_owned()];
    }
    if home.is_some_and(|home| prefix == home.join(".local")) {
        // pip's user installs: the script needs its packages, and nothing else of ~/.local.
        let mut shown = vec![file.to_owned()];
        shown.extend(python_libraries(&prefix));
        return shown;
    }
    if in_home && !looks_like_prefix(&prefix) { vec![file.to_owned()] } else { vec![prefix] }
}

fn prefix(file: &Path) -> Option<PathBuf> {
    let directory = file.parent()?;
    let name = directory.file_name()?;
    (name == "bin" || name == "sbin" || name == "libexec")
        .then(|| directory.parent().map(Path::to_owned))?
}

/// `…/node_modules` of a project, for programs that npm linked into it.
fn outermost_modules(file: &Path) -> Option<PathBuf> {
    let outermost = file.ancestors().filter(|a| a.ends_with("node_modules")).last()?;
    // A global install: the prefix holds node itself and is found by its own rule.
    let global = outermost.parent().is_some_and(|parent| parent.ends_with("lib"));
    if global {
        let prefix = outermost.parent()?.parent()?;
        return (prefix != Path::new("/") && looks_like_prefix(prefix)).then(|| prefix.to_owned());
    }
    Some(outermost.to_owned())
}

fn looks_like_prefix(prefix: &Path) -> bool {
    let marks = [
        "pyvenv.cfg",
        "conda-meta",
        "lib/node_modules",
        "include/node",
        "pkg/tool",
        "lib/rustlib",
        "lib/ruby",
        "lib/jvm",
        "release",
        "lib/modules",
    ];
    marks.iter().any(|mark| prefix.join(mark).exists()) || !python_libraries(prefix).is_empty()
}

fn python_libraries(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(prefix.join("lib")) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().is_some_and(|name| {
                let name = name.to_string_lossy();
                name.starts_with("python3") || name.starts_with("pypy")
            })
        })
        .filter(|path| path.is_dir())
        .collect()
}
