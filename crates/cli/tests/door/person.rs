//! Somebody at a shell, in a project in a home of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Finished, Run, Scratch, mcp_path, probe_path};

pub struct Person {
    scratch: Scratch,
    pub project: PathBuf,
}

impl Person {
    /// With a few files, as everybody has them.
    pub fn new() -> Person {
        let scratch = Scratch::new();
        let project = scratch.dir("home/project");
        for (name, text) in [
            ("file.txt", "hello\n"),
            ("sub/other.txt", "other\n"),
            ("script.sh", "cat \"$(dirname \"$0\")/sub/other.txt\"\n"),
            ("token.sh", "test -n \"$DEMO_API_TOKEN\" || { echo no token >&2; exit 3; }\n"),
            ("server.py", "print('hi')\n"),
            ("server.js", "console.log('hi')\n"),
            ("with space.txt", "spaced\n"),
        ] {
            scratch.file(Path::new("home/project").join(name), text);
        }
        for directory in ["", "home", "home/project"] {
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(scratch.join(directory), open).unwrap();
        }
        Person { scratch, project }
    }

    pub fn has(&self, name: &str) -> bool {
        self.project.join(name).exists()
    }

    /// A path of the project, whole, as it would be typed.
    pub fn shown(&self, name: &str) -> String {
        self.project.canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    pub fn file(&self, name: &str, text: &str) {
        let path = self.project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A file that can be started.
    pub fn program(&self, name: &str, text: &str) {
        self.file(name, text);
        let runs = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.project.join(name), runs).unwrap();
    }

    /// A line as it is typed at a shell: `mcp` is the program under test.
    pub fn run(&self, line: &str) -> Run {
        let mut path = mcp_path().parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(probe_path().parent().unwrap());
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut run = Run::bare().command(&["sh", "-c", line]).cwd(&self.project).env("PATH", path);
        for (name, below) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "home/.config"),
            ("XDG_DATA_HOME", "home/.local/share"),
            ("XDG_STATE_HOME", "home/.local/state"),
            ("XDG_CACHE_HOME", "home/.cache"),
        ] {
            run = run.env(name, self.scratch.join(below));
        }
        run.env("DEMO_API_TOKEN", "value-of-the-token")
    }

    #[track_caller]
    pub fn types(&self, line: &str) -> Finished {
        let finished = self.run(line).run();
        finished.has_no_panic();
        finished
    }
}

/// Our own lines of what was said.
pub fn ours(finished: &Finished) -> Vec<String> {
    finished.stderr.lines().filter(|line| line.starts_with("mcp: ")).map(str::to_owned).collect()
}

/// Whether a program of the host's answers.
pub fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
