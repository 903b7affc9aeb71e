//! Stand-ins for what a person has to lose, so that the attempts are harmless without a sandbox.
//!
//! Everything lives in one temporary directory, and every secret is made up.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::props::{Props, SHELL_START_UP};
pub use super::stand_in::TOKEN;
use super::stand_in::{Bystander, TemporaryDirectory, unique};
use crate::failure::Failure;

pub struct DemoScene {
    // Declared in the order in which things have to go.
    bystanders: [Bystander; 2],
    /// What only this system has.
    #[cfg_attr(windows, expect(dead_code, reason = "it has nothing of its own to be attacked"))]
    pub props: Props,
    tcp: TcpListener,
    root: TemporaryDirectory,
    secret: String,
}

impl DemoScene {
    pub fn set(program: &Path) -> Result<DemoScene, Failure> {
        let root = TemporaryDirectory::new()?;
        let path = root.path().to_owned();
        DemoScene::furnish(root, program).map_err(|error| Failure::file(&path, &error))
    }

    fn furnish(root: TemporaryDirectory, program: &Path) -> io::Result<DemoScene> {
        let secret = format!("made-up-secret-{}", unique());
        root.put("home/.ssh/id_ed25519", &format!("not a key, but {secret}\n"))?;
        root.put("home/.aws/credentials", &format!("aws_secret_access_key = {secret}\n"))?;
        root.put(SHELL_START_UP, "# shell start-up\n")?;
        root.put("docs/readme.txt", "may be read, not changed\n")?;
        root.put("project/main.py", "print('hello')\n")?;
        let props = Props::put(&root)?;
        Ok(DemoScene {
            bystanders: [Bystander::new(program, &secret)?, Bystander::new(program, &secret)?],
            props,
            tcp: TcpListener::bind("127.0.0.1:0")?,
            root,
            secret,
        })
    }

    /// What only a successful theft can show.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The path as a word of an attempt.
    pub fn word(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    pub fn tcp_address(&self) -> io::Result<String> {
        Ok(self.tcp.local_addr()?.to_string())
    }

    /// A process that lives as long as the scene.
    pub fn bystander(&self) -> u32 {
        self.bystanders[0].id()
    }

    /// A process that may be ended.
    pub fn victim(&self) -> u32 {
        self.bystanders[1].id()
    }
}
