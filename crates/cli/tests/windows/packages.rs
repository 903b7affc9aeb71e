//! Packages: packed, kept, looked at, run, and found out where somebody has changed them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Finished, Scratch, mcp, missing, probe};

struct User {
    home: Scratch,
}

impl User {
    fn new() -> User {
        User { home: Scratch::new() }
    }

    fn mcp(&self, words: &[&str]) -> Finished {
        let mut command = Command::new(mcp());
        for name in ["USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
            command.env(name, self.home.dir(name));
        }
        command.current_dir(self.home.dir("cwd")).args(words).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Finished {
            code: output.status.code().unwrap(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// A package whose server is the probe.
    fn package(&self) -> PathBuf {
        let manifest = "[package]\nname = 'acme/test'\nversion = '1.0.0'\n\
                        [server]\ncommand = './bin/probe.exe'\n";
        self.home.file(r"source\mcp.toml", manifest);
        std::fs::create_dir_all(self.home.join(r"source\bin")).unwrap();
        std::fs::copy(probe(), self.home.join(r"source\bin\probe.exe")).unwrap();
        self.home.join("source")
    }

    fn run(&self, reference: &str, act: &[&str]) -> Finished {
        let mut words = vec!["run", "--no-log"];
        if missing("container").is_some() {
            words.extend(["--fallback", "warn"]);
        }
        words.extend([reference, "--"]);
        words.extend(act);
        self.mcp(&words)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_package_is_packed_kept_run_and_removed() {
    let user = User::new();
    let source = user.package();
    user.mcp(&["pack", text(&source)]).code_is(0);
    user.mcp(&["pack", text(&source), "-o", "again.mcpb"]).code_is(0);
    let bundle = user.home.join(r"cwd\test-1.0.0.mcpb");
    let again = user.home.join(r"cwd\again.mcpb");
    assert!(std::fs::read(&bundle).unwrap() == std::fs::read(again).unwrap());
    user.mcp(&["pull", text(&bundle)]).code_is(0);
    let listed = user.mcp(&["list"]);
    assert!(listed.stdout.contains("acme/test"), "{listed:#?}");
    user.mcp(&["verify"]).code_is(0);
    let shown = user.mcp(&["inspect", "acme/test"]);
    assert!(shown.stdout.contains("1.0.0"), "{shown:#?}");
    for reference in [text(&source), text(&bundle), "acme/test@1.0.0"] {
        let finished = user.run(reference, &["exit", "7"]);
        finished.code_is(7);
    }
    // What was added to its files is found at the next start.
    let unpacked = user.home.join(r"LOCALAPPDATA\mcp\store\unpacked");
    let root = std::fs::read_dir(unpacked).unwrap().next().unwrap().unwrap().path().join("root");
    std::fs::write(root.join(r"bin\evil"), "x").unwrap();
    let finished = user.run("acme/test@1.0.0", &["exit", "7"]);
    finished.code_is(125);
    assert!(finished.stderr.contains("bin/evil was added"), "{finished:#?}");
    user.mcp(&["remove", "acme/test@1.0.0"]).code_is(0);
    let finished = user.run("acme/test@1.0.0", &["exit", "7"]);
    finished.code_is(125);
}
