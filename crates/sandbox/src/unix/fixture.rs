//! A home directory on disk for tests, gone when the test is.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Fixture {
    root: PathBuf,
}

impl Fixture {
    /// Holds `home` with the secrets that no test may show.
    pub fn new() -> Fixture {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcp-sandbox-{}-{number}", std::process::id());
        // The temporary directory may itself be reached through a link.
        let root = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir(&root).unwrap();
        let fixture = Fixture { root };
        for secret in SECRETS {
            fixture.file(secret, "canary");
        }
        fixture
    }

    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub fn directory(&self, at: impl AsRef<Path>) -> PathBuf {
        let path = self.path(at);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub fn file(&self, at: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// An executable that is no script, unless `text` makes it one.
    pub fn program(&self, at: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(at, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn link(&self, at: impl AsRef<Path>, to: impl AsRef<Path>) -> PathBuf {
        let path = self.path(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, &path).unwrap();
        path
    }

    /// Fails when any secret, or the home directory, lies in what is shown.
    pub fn keeps_secrets(&self, shown: &[PathBuf]) {
        let secrets = SECRETS.map(|secret| self.path(secret));
        for secret in secrets.iter().chain([&self.home()]) {
            let reach = shown.iter().find(|place| secret.starts_with(place));
            assert_eq!(reach, None, "{} is below it", secret.display());
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

const SECRETS: [&str; 6] = [
    "home/.ssh/id_ed25519",
    "home/.aws/credentials",
    "home/.cargo/credentials.toml",
    "home/.local/share/keyrings/login.keyring",
    "home/.config/gh/hosts.yml",
    "home/project/.env",
];
