//! A home and a project in which the documents' commands make sense.

use std::cell::Cell;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::blocks::ClientEntry;
use crate::support::{Scratch, mcp_path};

/// What a client says to a server before it uses it.
const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"docs","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    "\n",
);

/// A server that a document means by `my-server`: it reads what it is told until the end.
const MY_SERVER: &str = "#!/bin/sh\ncat > /dev/null\n";

const MANIFEST: &str = r#"{
  "manifest_version": "0.2", "name": "docs-example", "version": "1.0.0", "description": "d",
  "author": { "name": "a" },
  "server": { "type": "binary", "entry_point": "server", "mcp_config": { "command": "${__dirname}/server", "args": [] } },
  "user_config": { "dir": { "type": "directory", "title": "d", "description": "d" } }
}"#;

pub struct Home {
    scratch: Scratch,
    project: PathBuf,
    ran: Cell<usize>,
    _socket: UnixListener,
}

impl Home {
    pub fn new() -> Home {
        let scratch = Scratch::new();
        for directory in [
            "home/notes",
            "home/shared",
            "project/out",
            "project/docs",
            "project/data",
            "project/app",
        ] {
            scratch.dir(directory);
        }
        scratch.file("home/notes/a.txt", "a note\n");
        scratch.script("bin/my-server", MY_SERVER);
        scratch.file(
            "project/server.toml",
            "[filesystem]\nread = [\"~/notes\"]\n[limits]\nmemory = \"256 MiB\"\n",
        );
        scratch.file("project/dir/manifest.json", MANIFEST);
        scratch.file(
            "project/dir/mcp.toml",
            "[package]\nname = \"acme/docs-example\"\nversion = \"1.0.0\"\n",
        );
        scratch.script("project/dir/server", MY_SERVER);
        scratch.file("project/Makefile", "all test:\n\techo $@ > out/$@\n");
        std::os::unix::fs::symlink(mcp_path(), scratch.join("bin/mcp")).unwrap();
        let project = scratch.join("project");
        let socket = UnixListener::bind(project.join("service.sock")).unwrap();
        let home = Home { scratch, project, ran: Cell::new(0), _socket: socket };
        for prepare in [
            "mcp pack ./dir -o server.mcpb",
            "for d in . app; do git -C $d init -q && git -C $d config user.name x && git -C $d config user.email x@x \
             && git -C $d commit -q --allow-empty -m x && echo a > $d/a && git -C $d add a && git -C $d commit -qm a && echo b > $d/a; done",
        ] {
            home.shell(prepare, 0).unwrap_or_else(|why| panic!("{prepare}: {why}"));
        }
        home.ran.set(0);
        home
    }

    /// How many commands were run.
    pub fn ran(&self) -> usize {
        self.ran.get()
    }

    fn command(&self, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command
            .args(["300", program])
            .current_dir(&self.project)
            .env("HOME", self.scratch.join("home"))
            .env("PATH", format!("{}:{path}", self.scratch.join("bin").display()))
            .env("GITHUB_TOKEN", "a token of the test")
            .env("DEBUG", "1")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn output(&self, command: &mut Command, input: &str) -> Output {
        self.ran.set(self.ran.get() + 1);
        let mut child = command.spawn().unwrap();
        // A program that does not read ends the pipe: its own exit code says how it went.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs one line of a shell block; it has to end with `exit`.
    pub fn shell(&self, line: &str, exit: i32) -> Result<(), String> {
        let output = self.output(self.command("bash").args(["-c", line]), HELLO);
        if output.status.code() == Some(exit) { Ok(()) } else { Err(told(&output)) }
    }

    /// Starts a server as a client's configuration would; it has to list its tools.
    pub fn server(&self, entry: &ClientEntry) -> Result<(), String> {
        let home = self.scratch.join("home").display().to_string();
        let here = |word: &String| word.replace("/home/me", &home);
        let mut command = self.command("mcp");
        command.args(entry.args.iter().map(here));
        for (name, value) in &entry.env {
            command.env(name, here(value));
        }
        let output = self.output(&mut command, HELLO);
        let answered = String::from_utf8_lossy(&output.stdout).contains("\"tools\"");
        if answered { Ok(()) } else { Err(told(&output)) }
    }

    /// Has a file of servers checked.
    pub fn servers(&self, text: &str) -> Result<(), String> {
        self.scratch.file("project/shown-servers.toml", text);
        self.shell("mcp serve --check shown-servers.toml", 0)
    }

    /// Has a policy, or a table of one, checked.
    pub fn policy(&self, text: &str) -> Result<(), String> {
        let is_policy =
            ["[filesystem]", "[network]", "[limits]"].iter().any(|table| text.contains(table));
        if !is_policy {
            return Ok(());
        }
        self.scratch.file("project/shown.toml", text);
        self.shell("mcp policy check shown.toml", 0)
    }
}

fn told(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let out: String = out.chars().take(2000).collect();
    format!("{}\n{out}\n{}", output.status, String::from_utf8_lossy(&output.stderr))
}
