//! A home that is not the tester's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_clients::{Client, Surroundings, System};

pub struct Home(PathBuf);

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Home {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().canonicalize().unwrap();
        let path = path.join(format!("mcp-wire-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        for name in ["notes", "work/build", "bin"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        fs::write(path.join("work/package.json"), "{}").unwrap();
        fs::write(path.join("work/build/index.js"), "").unwrap();
        // Installed as package managers do it: a link on PATH that stays when what it leads to moves.
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_mcp"), path.join("bin/mcp")).unwrap();
        Home(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn mcp_path(&self) -> PathBuf {
        self.at("bin/mcp")
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.mcp_path());
        command
            .args(words)
            .env_clear()
            .env("HOME", &self.0)
            .env("PATH", format!("{}:/usr/bin:/bin", self.at("bin").display()))
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command
    }

    pub fn mcp(&self, words: &[&str]) -> Ran {
        Ran::of(self.command(words).output().unwrap())
    }

    /// Where a client makes its file.
    pub fn file_of(&self, client: &'static Client) -> Option<PathBuf> {
        let none = |_: &str| None;
        let here = Surroundings {
            system: System::of_this_program(),
            home: self.0.clone(),
            variable: &none,
        };
        mcp_clients::first_file(client, &here).map(|found| found.path)
    }

    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        let ran = self.mcp(words);
        serde_json::from_str(&ran.out)
            .unwrap_or_else(|e| panic!("{words:?}: {e}\n{}\n{}", ran.out, ran.err))
    }
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub fn good(self) -> Ran {
        assert_eq!(self.code, 0, "{}\n{}", self.out, self.err);
        self
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
