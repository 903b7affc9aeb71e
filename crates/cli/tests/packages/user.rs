//! A user with an empty home, and packages to play with.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{Scratch, mcp_path, probe_path};

pub struct User {
    pub scratch: Scratch,
}

/// How a command of a test ended.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    #[track_caller]
    pub fn ok(self) -> Said {
        assert_eq!(self.code, 0, "{}\n{}", self.out, self.err);
        self
    }

    /// Ended with this code, and said this.
    #[track_caller]
    pub fn fails(self, code: i32, said: &str) -> Said {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        assert!(self.err.contains(said), "no {said:?} in\n{}", self.err);
        self
    }

    #[track_caller]
    pub fn says(self, said: &str) -> Said {
        assert!(self.out.contains(said), "no {said:?} in\n{}\n{}", self.out, self.err);
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl User {
    pub fn new() -> User {
        let user = User { scratch: Scratch::new() };
        for directory in ["home", "config", "data", "state", "cache", "cwd"] {
            user.scratch.dir(directory);
        }
        user
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place(Command::new(mcp_path()));
        command.args(words);
        command
    }

    /// On a host that lacks something: what `mcp-probe without` knows.
    pub fn mcp_without(&self, what: &str, words: &[&str]) -> Said {
        let mut command = self.place(Command::new(probe_path()));
        command.args(["without", what]).arg(mcp_path()).args(words);
        command.output().unwrap().into()
    }

    /// In this user's directories.
    pub fn place(&self, mut command: Command) -> Command {
        command.stdin(Stdio::null()).current_dir(self.path("cwd"));
        for (name, directory) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(name, self.path(directory));
        }
        command.env_remove("MCP_REGISTRY").env_remove("DOCKER_CONFIG");
        command
    }

    pub fn mcp(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// A package whose server is the probe, with further lines for its mcp.toml.
    pub fn package(&self, directory: &str, version: &str, more: &str) -> PathBuf {
        let path = self.path(directory);
        self.scratch.file(
            format!("{directory}/mcp.toml"),
            &format!("[package]\nname = 'acme/test'\nversion = '{version}'\n[server]\ncommand = './bin/probe'\n{more}"),
        );
        self.scratch.dir(format!("{directory}/bin"));
        std::fs::copy(probe_path(), path.join("bin/probe")).unwrap();
        path
    }

    /// The same, packed and in the store.
    pub fn stored(&self, version: &str, more: &str) -> PathBuf {
        self.stored_from(&format!("test-{version}.mcpb"), version, more)
    }

    /// From a file of this name.
    pub fn stored_from(&self, file: &str, version: &str, more: &str) -> PathBuf {
        let directory = self.package(&format!("source-{version}"), version, more);
        let bundle = self.path(file);
        self.mcp(&["pack", text(&directory), "-o", text(&bundle)]).ok();
        self.mcp(&["pull", text(&bundle)]).ok();
        bundle
    }

    /// The files of the one package in the store.
    pub fn unpacked(&self) -> PathBuf {
        let all = self.path("data/mcp/store/unpacked");
        std::fs::read_dir(all).unwrap().next().unwrap().unwrap().path().join("root")
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
