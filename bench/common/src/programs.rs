//! Where the launcher and its peers are.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// `release/mcp` in the target directory that the running benchmark was built in.
pub fn default_launcher() -> io::Result<PathBuf> {
    let own = env::current_exe()?;
    let target = own.parent().and_then(Path::parent);
    let target = target.ok_or_else(|| io::Error::other("this program has no directory"))?;
    Ok(target.join("release").join("mcp"))
}

/// A program by its name, as a shell would find it.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}
