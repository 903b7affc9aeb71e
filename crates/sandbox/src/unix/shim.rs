//! Version managers put stand-ins on PATH that look up the real program and execute it. They
//! need their manager's whole tree, so the launcher does their look-up itself.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The program behind a stand-in, or `None` when `file` is none.
///
/// Known: pyenv, asdf, mise (rtx), nodenv and rbenv (laid out as pyenv).
pub fn behind(
    file: &Path,
    cwd: &Path,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let shims = file.parent()?;
    if !shims.ends_with("shims") {
        return None;
    }
    let root = shims.parent()?;
    let name = file.file_name()?;
    let versions = root.join("versions");
    if versions.is_dir() {
        let tool = root.file_name()?.to_string_lossy().trim_start_matches('.').to_owned();
        return env_manager(root, &versions, &tool, name, cwd, variable);
    }
    let installs = root.join("installs");
    installs.is_dir().then(|| tool_versions(&installs, file, name, cwd))?
}

/// pyenv and its kin: `versions/X/bin/NAME`, X from `PYENV_VERSION`, `.python-version` or `version`.
fn env_manager(
    root: &Path,
    versions: &Path,
    tool: &str,
    name: &OsStr,
    cwd: &Path,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let language = match tool {
        "pyenv" => "python",
        "nodenv" => "node",
        "rbenv" => "ruby",
        _ => return greatest(versions, "", name),
    };
    let wanted = variable(&format!("{}_VERSION", tool.to_uppercase()))
        .or_else(|| nearest(cwd, &format!(".{language}-version")))
        .or_else(|| fs::read_to_string(root.join("version")).ok())
        .unwrap_or_default();
    wanted
        .split([':', '\n', ' '])
        .map(str::trim)
        .filter(|version| !version.is_empty())
        .find_map(|version| {
            let exact = versions.join(version).join("bin").join(name);
            if exact.is_file() { Some(exact) } else { greatest(versions, version, name) }
        })
        .or_else(|| greatest(versions, "", name))
}

/// asdf and mise: `installs/TOOL/X/bin/NAME`, X from `.tool-versions`.
fn tool_versions(installs: &Path, shim: &Path, name: &OsStr, cwd: &Path) -> Option<PathBuf> {
    let asked = nearest(cwd, ".tool-versions").unwrap_or_default();
    // asdf writes the tools that have the program into the stand-in.
    let text = fs::read_to_string(shim).unwrap_or_default();
    let named: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# asdf-plugin: "))
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    let mut tools: Vec<PathBuf> = match named.is_empty() {
        false => named.iter().map(|tool| installs.join(tool)).collect(),
        true => fs::read_dir(installs).ok()?.filter_map(|e| Some(e.ok()?.path())).collect(),
    };
    tools.sort();
    tools.iter().find_map(|tool| {
        let tool_name = tool.file_name()?.to_string_lossy().into_owned();
        let version = asked.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some(&tool_name)).then(|| words.next().map(str::to_owned))?
        });
        let exact = version.map(|version| tool.join(version).join("bin").join(name));
        exact.filter(|path| path.is_file()).or_else(|| greatest(tool, "", name))
    })
}

/// The contents of the nearest file of that name, from `cwd` upwards.
fn nearest(cwd: &Path, name: &str) -> Option<String> {
    cwd.ancestors().find_map(|directory| fs::read_to_string(directory.join(name)).ok())
}

/// The program in the greatest version below `versions` that starts with `wanted`.
fn greatest(versions: &Path, wanted: &str, name: &OsStr) -> Option<PathBuf> {
    let mut found: Vec<(Vec<u64>, PathBuf)> = fs::read_dir(versions)
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.to_owned();
            let program = path.join("bin").join(name);
            let fits = version
                .strip_prefix(wanted)
                .is_some_and(|rest| wanted.is_empty() || rest.is_empty() || rest.starts_with('.'));
            (fits && program.is_file()).then(|| (numbers(&version), program))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, program)| program)
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}
