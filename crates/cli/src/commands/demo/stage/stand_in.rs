//! The parts of every scene: a directory of its own, made-up secrets, and processes that may be killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::failure::Failure;
use crate::guest_arguments::GUEST;
use crate::paths;

/// The variable that the user's shell would hold.
pub const TOKEN: &str = "GITHUB_TOKEN";
/// So that a bystander is gone soon even if the demo is killed.
const BYSTANDER_SECONDS: &str = if cfg!(windows) { "60" } else { "10" };

pub fn unique() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{:x}", std::process::id(), now.as_nanos())
}

/// A process of ours with a secret in its environment, gone when dropped.
pub struct Bystander(Child);

impl Bystander {
    pub fn new(program: &Path, secret: &str) -> io::Result<Bystander> {
        let mut command = Command::new(program);
        command.args([GUEST, "sleep", BYSTANDER_SECONDS]).env_clear().env(TOKEN, secret);
        // Without it no program of Windows starts.
        command.envs(std::env::var_os("SystemRoot").map(|root| ("SystemRoot", root)));
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The scene's errors name its directory, which would mislead here.
        let missing =
            |error| io::Error::other(format!("cannot start {}: {error}", program.display()));
        quiet.spawn().map(Bystander).map_err(missing)
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything that is attacked is in here.
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub fn new() -> Result<TemporaryDirectory, Failure> {
        let parent = std::env::temp_dir();
        let parent = paths::real(&parent).map_err(|error| Failure::temporary(&parent, &error))?;
        let path = parent.join(format!("mcp-demo-{}", unique()));
        // Fails for anything that is there already, so no program can have prepared it.
        private().create(&path).map_err(|error| Failure::temporary(&path, &error))?;
        Ok(TemporaryDirectory(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes a file, and the directories above it.
    pub fn put(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.0))?;
        fs::write(&path, text)
    }
}

#[cfg(unix)]
fn private() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// The user's own temporary directory is the user's alone.
#[cfg(not(unix))]
fn private() -> fs::DirBuilder {
    fs::DirBuilder::new()
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
