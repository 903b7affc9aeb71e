//! The directories of one run: one that is granted, and its neighbour that is not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Removed when dropped.
pub struct Scene {
    root: PathBuf,
}

impl Scene {
    pub fn new(name: &str) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Servers compare real paths, and the temporary directory may be behind a link.
        let base = std::env::temp_dir().canonicalize()?;
        let root = base.join(format!("mcp-servers-{}-{count}-{name}", process::id()));
        // Not create_dir_all: what is there already belongs to another user.
        fs::create_dir(&root)?;
        let scene = Self { root };
        fs::create_dir(scene.granted())?;
        fs::create_dir(scene.root.join("outside"))?;
        fs::write(scene.secret(), Self::SECRET)?;
        Ok(scene)
    }

    /// What the file outside the grant holds.
    pub const SECRET: &str = "this was not granted";

    /// Holds the granted directory and the other one.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn granted(&self) -> PathBuf {
        self.root.join("granted")
    }

    /// A file outside the grant.
    pub fn secret(&self) -> PathBuf {
        self.root.join("outside").join("secret.txt")
    }
}

/// Lets the user look into every directory below.
fn open_directories(top: &Path) -> io::Result<()> {
    for entry in fs::read_dir(top)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o700))?;
            }
            open_directories(&entry.path())?;
        }
    }
    Ok(())
}

impl Drop for Scene {
    fn drop(&mut self) {
        // The kernel keeps a directory without a mode in each layer, empty.
        let removed = fs::remove_dir_all(&self.root).or_else(|_| {
            open_directories(&self.root)?;
            fs::remove_dir_all(&self.root)
        });
        if let Err(error) = removed {
            eprintln!("xtask: {} stays behind: {error}", self.root.display());
        }
    }
}
