//! Whether `mcp` means this program where it is typed: the Python SDK of MCP has a command of that name, too.
//!
//! What is found on PATH is read, never run.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use mcp_files::Links;

/// More than any release of ours; what is larger is not compared.
const LARGEST: u64 = 256 << 20;
/// A script tells what it starts in its first lines.
const SCRIPT: u64 = 64 << 10;

/// What to do about another `mcp` that comes first on PATH.
pub fn advice() -> Option<String> {
    let own = env::current_exe().ok()?;
    let first = first_on_path(&env::var_os("PATH")?)?;
    advice_about(&first, &own)
}

fn first_on_path(path: &OsStr) -> Option<PathBuf> {
    let name = format!("mcp{}", env::consts::EXE_SUFFIX);
    let directories = env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(&name)).find(|file| is_program(file))
}

fn advice_about(first: &Path, own: &Path) -> Option<String> {
    if is_same(first, own) || is_our_shim(first) {
        return None;
    }
    let script = mcp_files::read(first, SCRIPT, Links::Follow).unwrap_or_default();
    let script = String::from_utf8_lossy(&script);
    let whose = match script.contains("mcp.cli") {
        true => "the command of the Python SDK of MCP",
        false => "another program or another version",
    };
    Some(format!(
        "`mcp` on PATH is {}, {whose}: type mcp-sandbox for this one, in a client's configuration too, or put {} \
         before it on PATH.",
        first.display(),
        own.parent().unwrap_or(own).display()
    ))
}

/// The same file by whatever name, or a copy of it, as a wheel installs two.
fn is_same(first: &Path, own: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().ok();
    if canonical(first).is_some_and(|first| Some(first) == canonical(own)) {
        return true;
    }
    let size = |path: &Path| path.metadata().ok().map(|found| found.len());
    if size(first) != size(own) {
        return false;
    }
    let bytes = |path: &Path| mcp_files::read(path, LARGEST, Links::Follow).ok();
    bytes(first).is_some_and(|content| Some(content) == bytes(own))
}

/// The file that npm links as `mcp`: it starts the program of our own package.
fn is_our_shim(first: &Path) -> bool {
    first.canonicalize().is_ok_and(|file| file.ends_with("mcp-sandbox/bin/mcp.js"))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn another_mcp_is_told_and_a_name_or_copy_of_ours_is_not() {
        let top = env::temp_dir().join(format!("mcp-shadow-{}", std::process::id()));
        // A directory with a program of the given text.
        let program = |directory: &str, name: &str, text: &str| {
            let directory = top.join(directory);
            fs::create_dir_all(&directory).unwrap();
            let file = directory.join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let own = program("own", "mcp", "this program");
        let copy = program("copy", "mcp", "this program");
        let sdk = program("sdk", "mcp", "#!/usr/bin/python3\nfrom mcp.cli import app\n");
        let other = program("other", "mcp", "that program");
        let shim = program("npm/mcp-sandbox/bin", "mcp.js", "#!/usr/bin/env node\n");
        let linked = top.join("linked");
        symlink(&own, &linked).unwrap();

        assert_eq!(advice_about(&own, &own), None);
        assert_eq!(advice_about(&linked, &own), None);
        assert_eq!(advice_about(&copy, &own), None);
        assert_eq!(advice_about(&shim, &own), None);
        let told = advice_about(&sdk, &own).unwrap();
        assert!(told.contains("Python SDK") && told.contains("mcp-sandbox"), "{told}");
        assert!(told.contains(sdk.to_str().unwrap()), "{told}");
        assert!(advice_about(&other, &own).unwrap().contains("another program"));

        // A file that cannot be executed, and a relative directory, are not what a shell finds.
        let dull = top.join("dull/mcp");
        fs::create_dir_all(top.join("dull")).unwrap();
        fs::write(&dull, "").unwrap();
        let path = env::join_paths([
            "relative".into(),
            top.join("dull"),
            top.join("sdk"),
            top.join("own"),
        ]);
        assert_eq!(first_on_path(&path.unwrap()), Some(sdk));
        assert_eq!(first_on_path(OsStr::new("")), None);
        fs::remove_dir_all(&top).unwrap();
    }
}
