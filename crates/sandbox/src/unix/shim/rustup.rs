//! rustup: every name beside it on PATH is rustup itself, and stands for a program of a toolchain in
//! `toolchains/X/bin`, X from `RUSTUP_TOOLCHAIN`, `rust-toolchain.toml` or the user's settings.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Variable, nearest};
use crate::unix::peek;

pub fn behind(file: &Path, cwd: &Path, variable: Variable<'_>) -> Option<PathBuf> {
    let name = file.file_name()?;
    let manager = file.with_file_name("rustup");
    if name == "rustup" || !is_same(file, &manager) {
        return None;
    }
    let home = variable("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&variable("HOME")?).join(".rustup")))?;
    let wanted = variable("RUSTUP_TOOLCHAIN")
        .or_else(|| nearest(cwd, "rust-toolchain.toml").and_then(|text| value(&text, "channel")))
        .or_else(|| nearest(cwd, "rust-toolchain").map(|text| channel(&text)))
        .or_else(|| value(&peek::text(&home.join("settings.toml"))?, "default_toolchain"))?;
    // A name, never a way to somewhere else.
    if Path::new(&wanted).components().count() != 1 || wanted.starts_with('.') {
        return None;
    }
    let toolchains = home.join("toolchains");
    let program = |toolchain: &str| {
        let program = toolchains.join(toolchain).join("bin").join(name);
        program.is_file().then_some(program)
    };
    program(&wanted).or_else(|| {
        // `stable` is `stable-x86_64-unknown-linux-gnu` on the disk.
        let names = std::fs::read_dir(&toolchains)
            .ok()?
            .filter_map(|e| e.ok()?.file_name().into_string().ok());
        let mut fitting: Vec<String> = names
            .filter(|name| name.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('-')))
            .collect();
        fitting.sort();
        fitting.iter().find_map(|name| program(name))
    })
}

/// A link to it, or, as older releases have it, another name of the same file.
fn is_same(file: &Path, manager: &Path) -> bool {
    let id = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    id(manager).is_some_and(|manager| id(file) == Some(manager))
}

/// The old file holds the name alone, or the same as the new one.
fn channel(text: &str) -> String {
    value(text, "channel").unwrap_or_else(|| text.trim().to_owned())
}

fn value(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (have, value) = line.split_once('=')?;
        let value = value.split('#').next()?.trim().trim_matches(['"', '\'']);
        (have.trim() == key).then(|| value.to_owned())
    })
}
