//! Version managers put stand-ins on PATH that look up the real program and execute it. They
//! need their manager's whole tree, so the launcher does their look-up itself.
//!
//! Known: pyenv, nodenv and rbenv (laid out as pyenv), asdf, mise (rtx), Volta, rustup. fnm, nvm, conda
//! and uv put the program itself on PATH.

mod rustup;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::unix::peek;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behind {
    Program(PathBuf),
    /// The version is "system": the next program of that name on PATH, or else this one.
    Elsewhere(PathBuf),
}

/// Looks up a variable of the host's environment.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What stands behind a stand-in, or `None` when `file` is none.
pub fn behind(file: &Path, cwd: &Path, variable: Variable<'_>) -> Option<Behind> {
    let directory = file.parent()?;
    let root = directory.parent()?;
    let name = file.file_name()?;
    if directory.ends_with("bin") && root.join("tools/image").is_dir() {
        return volta(root, name, cwd).map(Behind::Program);
    }
    if !directory.ends_with("shims") {
        return rustup::behind(file, cwd, variable).map(Behind::Program);
    }
    let versions = root.join("versions");
    if versions.is_dir() {
        return env_manager(file, root, &versions, cwd, variable);
    }
    let installs = root.join("installs");
    installs.is_dir().then(|| tool_versions(&installs, file, cwd, variable))?
}

/// pyenv and its kin: `versions/X/bin/NAME`, X from `PYENV_VERSION`, `.python-version` or `version`.
fn env_manager(
    shim: &Path,
    root: &Path,
    versions: &Path,
    cwd: &Path,
    variable: Variable<'_>,
) -> Option<Behind> {
    let name = shim.file_name()?;
    let any = greatest(versions, "", name);
    let tool = root.file_name()?.to_string_lossy().trim_start_matches('.').to_owned();
    let language = match tool.as_str() {
        "pyenv" => "python",
        "nodenv" => "node",
        "rbenv" => "ruby",
        _ => return any.map(Behind::Program),
    };
    let wanted = variable(&format!("{}_VERSION", tool.to_uppercase()))
        .or_else(|| nearest(cwd, &format!(".{language}-version")))
        .or_else(|| peek::text(&root.join("version")))
        .unwrap_or_default();
    let wanted: Vec<&str> = wanted.split([':', '\n', ' ']).map(str::trim).collect();
    choose(versions, &wanted, name, shim, any)
}

/// asdf and mise: `installs/TOOL/X/bin/NAME`, X from the environment, `.tool-versions` or
/// `mise.toml`.
fn tool_versions(
    installs: &Path,
    shim: &Path,
    cwd: &Path,
    variable: Variable<'_>,
) -> Option<Behind> {
    let name = shim.file_name()?;
    // asdf writes the tools that have the program into the stand-in.
    let text = peek::text(shim).unwrap_or_default();
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
        let any = greatest(tool, "", name)?;
        let wanted = asked_for(&tool.file_name()?.to_string_lossy(), cwd, variable);
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        if wanted.is_empty() {
            return Some(Behind::Program(any));
        }
        choose(tool, &wanted, name, shim, Some(any))
    })
}

/// The versions of a tool that a person asked for, the nearest word only.
fn asked_for(tool: &str, cwd: &Path, variable: Variable<'_>) -> Vec<String> {
    let upper = tool.to_uppercase().replace('-', "_");
    let said = ["ASDF", "MISE"].iter().find_map(|who| variable(&format!("{who}_{upper}_VERSION")));
    if let Some(said) = said {
        return said.split_whitespace().map(str::to_owned).collect();
    }
    let home = variable("HOME").map(PathBuf::from);
    let directories = cwd.ancestors().chain(home.as_deref());
    let files = directories.flat_map(|directory| {
        [".tool-versions", "mise.toml", ".mise.toml"].map(|name| directory.join(name))
    });
    files
        .chain(home.iter().map(|home| home.join(".config/mise/config.toml")))
        .filter_map(|path| peek::text(&path))
        .find_map(|text| text.lines().find_map(|line| versions_in(line, tool)))
        .unwrap_or_default()
}

/// From `nodejs 20.1.0 18.2.0` or `node = "20"`.
fn versions_in(line: &str, tool: &str) -> Option<Vec<String>> {
    let line = line.split('#').next()?;
    let (key, rest) =
        line.split_once('=').or_else(|| line.trim().split_once(char::is_whitespace))?;
    let quotes = ['"', '\'', '[', ']', ','];
    let words = rest.split(|c: char| c.is_whitespace() || quotes.contains(&c));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    (key.trim().trim_matches(quotes) == tool && !words.is_empty()).then_some(words)
}

/// The first wanted version that has the program; any that has it is better than none.
fn choose(
    versions: &Path,
    wanted: &[&str],
    name: &OsStr,
    shim: &Path,
    any: Option<PathBuf>,
) -> Option<Behind> {
    let wanted: Vec<&str> = wanted.iter().copied().filter(|version| !version.is_empty()).collect();
    for version in &wanted {
        if *version == "system" {
            return Some(Behind::Elsewhere(shim.to_owned()));
        }
        // A name, never a way to somewhere else.
        if Path::new(version).components().count() != 1 || version.starts_with('.') {
            return None;
        }
        let exact = versions.join(version).join("bin").join(name);
        let program = if exact.is_file() { Some(exact) } else { greatest(versions, version, name) };
        if let Some(program) = program {
            return Some(Behind::Program(program));
        }
    }
    let any = any?;
    Some(if wanted.is_empty() { Behind::Elsewhere(any) } else { Behind::Program(any) })
}

/// Volta: `tools/image/node/X/bin/NAME`, X from `package.json` or the user's default; installed
/// packages below `tools/image/packages`.
fn volta(root: &Path, name: &OsStr, cwd: &Path) -> Option<PathBuf> {
    let image = root.join("tools/image");
    let project = cwd.ancestors().find_map(|directory| {
        json(&directory.join("package.json"))?
            .get("volta")?
            .get("node")?
            .as_str()
            .map(str::to_owned)
    });
    let chosen = || {
        let platform = json(&root.join("tools/user/platform.json"))?;
        platform.get("node")?.get("runtime")?.as_str().map(str::to_owned)
    };
    let node = image.join("node");
    let version = project.or_else(chosen).unwrap_or_default();
    let package = || {
        let entry = format!("tools/user/bins/{}.json", name.to_string_lossy());
        let entry = json(&root.join(entry))?;
        let package = entry.get("package")?.as_str()?.to_owned();
        let program = image.join("packages").join(package).join("bin").join(name);
        program.is_file().then_some(program)
    };
    greatest(&node, &version, name)
        .or_else(|| greatest(&node, "", name))
        .or_else(|| greatest(&image.join("yarn"), "", name))
        .or_else(|| greatest(&image.join("pnpm"), "", name))
        .or_else(package)
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_str(&peek::text(path)?).ok()
}

/// The contents of the nearest file of that name, from `cwd` upwards.
fn nearest(cwd: &Path, name: &str) -> Option<String> {
    cwd.ancestors().find_map(|directory| peek::text(&directory.join(name)))
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

#[cfg(test)]
mod tests;
