//! `cargo xtask clients`: real MCP clients accept the files that `mcp wire` wrote.
//!
//! Each client gets a home of its own with one server, and lists its servers by its own command: before (the control:
//! what fails there is no fault of `mcp`), after `mcp wire`, and after `mcp unwire`. Where a client connects without
//! an account, it has to be connected each time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::servers::{install, scene::Scene};
use crate::{Result, launcher};

const PACKAGE: &str = include_str!("../clients/package.json");
const PACKAGE_LOCK: &str = include_str!("../clients/package-lock.json");

/// Put real MCP clients' servers behind `mcp run`, and let the clients list them
///
/// Installs Claude Code, Codex, Gemini CLI and opencode from npm (pinned, by digest) on the first call. To renew them, in
/// xtask/clients: npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts
#[derive(clap::Args)]
pub struct Args {
    /// The launcher [default: a fresh release build of this workspace]
    #[arg(long, value_name = "PATH")]
    mcp: Option<PathBuf>,
    /// Where the clients are installed [default: target/clients]
    #[arg(long, value_name = "CACHE")]
    dir: Option<PathBuf>,
}

/// Of all install scripts the two without which a client does not start: each puts the program of this system, which is a
/// package of its own with a digest, in its place.
const SCRIPTS: [(&str, &str); 2] =
    [("@anthropic-ai/claude-code", "install.cjs"), ("opencode-ai", "postinstall.mjs")];

/// One server, which answers what every client asks and needs nothing.
const SERVER: &str = r#"
const answers = {
  initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "probe", version: "1" } },
  "tools/list": { tools: [{ name: "one", inputSchema: { type: "object" } }] },
};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] ?? {} }));
});
"#;

struct Client {
    /// As `mcp wire --client` names it.
    id: &'static str,
    /// The program, which lists its servers by `mcp list`.
    program: &'static str,
    file: &'static str,
    /// With `@` for the path of the server.
    text: &'static str,
    /// What the list says of a server that is as it should be.
    good: &'static str,
}

const CLIENTS: [Client; 4] = [
    Client {
        id: "claude-code",
        program: "claude",
        file: ".claude.json",
        text: r#"{"mcpServers": {"probe": {"type": "stdio", "command": "node", "args": ["@"]}}}"#,
        good: "Connected",
    },
    Client {
        id: "opencode",
        program: "opencode",
        file: ".config/opencode/opencode.json",
        text: "{\n  // mine\n  \"mcp\": {\"probe\": {\"type\": \"local\", \"command\": [\"node\", \"@\"], \"enabled\": true}},\n}\n",
        good: "connected",
    },
    Client {
        id: "gemini-cli",
        program: "gemini",
        file: ".gemini/settings.json",
        text: r#"{"mcpServers": {"probe": {"command": "node", "args": ["@"]}}}"#,
        good: "Connected",
    },
    // Lists without connecting.
    Client {
        id: "codex",
        program: "codex",
        file: ".codex/config.toml",
        text: "# mine\n[mcp_servers.probe]\ncommand = \"node\"\nargs = [\"@\"] # here\n",
        good: "enabled",
    },
];

pub fn run(args: &Args) -> Result<ExitCode> {
    let launcher = launcher::locate(args.mcp.as_deref())?;
    let cache = args.dir.clone().unwrap_or_else(|| crate::target_directory().join("clients"));
    fs::create_dir_all(&cache)?;
    let node = cache.canonicalize()?.join("node");
    install::node_packages(&node, "install", PACKAGE, PACKAGE_LOCK)?;
    for (package, script) in SCRIPTS {
        let package = node.join("node_modules").join(package);
        install::succeed(Command::new("node").arg(script).current_dir(package))?;
    }
    let mut failed = 0;
    for client in &CLIENTS {
        match tried(client, &launcher, &node.join("node_modules/.bin")) {
            Ok(()) => println!("{}: {} before, wired and unwired", client.id, client.good),
            Err(error) => {
                failed += 1;
                println!("{}: {error}", client.id);
            }
        }
    }
    println!("\n{} passed, {failed} failed", CLIENTS.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tried(client: &Client, launcher: &Path, programs: &Path) -> Result<()> {
    let scene = Scene::new(client.id)?;
    let home = scene.root();
    // Where it would be installed: wire writes the path of mcp into the client's file.
    let mcp = home.join("bin").join("mcp");
    fs::create_dir(home.join("bin"))?;
    fs::copy(launcher, &mcp)?;
    let server = home.join("server.js");
    fs::write(&server, SERVER)?;
    let file = home.join(client.file);
    fs::create_dir_all(file.parent().unwrap_or(home))?;
    fs::write(&file, client.text.replace('@', &server.display().to_string()))?;

    let called = |program: &Path, words: &[&str]| {
        let path = format!("{}:{}", home.join("bin").display(), system_path());
        let mut command = Command::new(program);
        command.args(words).current_dir(home).env_clear().stdin(Stdio::null());
        command.env("HOME", home).env("PATH", path).env("NO_COLOR", "1");
        // Gemini CLI starts no server in a directory that is not on its list of trusted ones.
        command.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
        said(&mut command)
    };
    let lists = |when: &str, wanted: &Path| -> Result<()> {
        let list = called(&programs.join(client.program), &["mcp", "list"])?;
        let line = list.lines().find(|line| line.contains("probe"));
        let is_good = line.is_some_and(|_| list.contains(client.good));
        match is_good && list.contains(&wanted.display().to_string()) {
            true => Ok(()),
            false => Err(format!("{when}: its own list says\n{list}").into()),
        }
    };
    lists("before", &server)?;
    let before = fs::read(&file)?;
    called(&mcp, &["wire", "--yes", "--client", client.id])?;
    called(&mcp, &["wire", "--check", "--client", client.id])?;
    lists("wired", &mcp)?;
    called(&mcp, &["unwire", "--client", client.id])?;
    lists("unwired", &server)?;
    // Claude Code writes into the file itself.
    if client.id != "claude-code" && fs::read(&file)? != before {
        return Err("unwired: the file is not what it was".into());
    }
    Ok(())
}

/// node is where npm is, and nothing else of the user's is wanted.
fn system_path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())
}

/// Both outputs, of a command that has to succeed.
fn said(command: &mut Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let text =
        [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned());
    match output.status.success() {
        true => Ok(text.concat()),
        false => Err(format!("{program}: {}\n{}", output.status, text.concat()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_names_no_registry_and_has_digests() {
        assert!(!PACKAGE_LOCK.contains("\"resolved\""));
        assert!(PACKAGE_LOCK.matches("\"integrity\"").count() >= CLIENTS.len());
    }
}
