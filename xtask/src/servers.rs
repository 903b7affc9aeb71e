//! `cargo xtask servers`: published MCP servers work in the sandbox, and only there are refused
//! what was not granted.
//!
//! Each server is driven twice by the same client through the same calls: bare, then by
//! `mcp run`. The bare run is the positive control: what fails there is no fault of the sandbox.
//! Those that are packages are run as such, too: from an empty store, then offline.

mod all;
pub mod exercise;
pub mod install;
mod lines;
mod packages;
pub mod scene;
pub mod session;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime;
use tokio::time::timeout;

use crate::{Result, launcher};
use exercise::Server;
use install::Installed;
use scene::Scene;
use session::{Session, Setting};

/// All of one run; the client has its own limits for each answer, so this is for what it misses.
const RUN_LIMIT: Duration = Duration::from_secs(120);
/// The same with an installation before it.
const INSTALL_LIMIT: Duration = Duration::from_secs(900);

/// Run published MCP servers in the sandbox with a real MCP client
///
/// Installs them from npm and PyPI (pinned, by digest) on the first call. Needs node, npm,
/// python3 with venv, and git.
#[derive(clap::Args)]
pub struct Args {
    /// The launcher [default: a fresh release build of this workspace]
    #[arg(long, value_name = "PATH")]
    mcp: Option<PathBuf>,
    /// Where the servers are installed [default: target/servers]
    #[arg(long, value_name = "CACHE")]
    dir: Option<PathBuf>,
    /// Only lines as they stand in READMEs of servers, by `mcp run` in an empty home
    #[arg(long)]
    lines: bool,
    #[command(flatten)]
    all: all::Args,
    /// Only these servers
    #[arg(value_enum, conflicts_with = "all")]
    servers: Vec<Server>,
}

/// What one run of one server showed.
struct Run {
    tools: usize,
    initialize: Duration,
    calls: String,
    ended_by_itself: bool,
}

struct Row {
    server: Server,
    bare: Result<Run>,
    /// None when the control failed: there is nothing to compare with.
    sandboxed: Option<Result<Run>>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.all.all {
        return all::run(&args.all, args.mcp.as_deref());
    }
    let launcher = launcher::locate(args.mcp.as_deref())?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    if args.lines {
        return runtime.block_on(lines::run(&launcher));
    }
    let cache =
        args.dir.clone().unwrap_or_else(|| crate::workspace().join("target").join("servers"));
    let installed = install::install(&cache)?;
    let sandboxed = Setting::Sandboxed { launcher: launcher.clone() };
    let (mut rows, mut packages) = (Vec::new(), Vec::new());
    for server in chosen(&args.servers) {
        eprintln!("{}", server.name());
        let run = |setting: &Setting| runtime.block_on(bounded(server, &installed, setting));
        let bare = run(&Setting::Bare);
        let sandboxed = bare.is_ok().then(|| run(&sandboxed));
        rows.push(Row { server, bare, sandboxed });
        packages.extend(packages::run(server, &launcher, run));
    }
    print(&rows);
    packages::print(&packages);
    let faults = rows.iter().filter_map(|row| Some((row.server.name(), row.fault()?)));
    let faults: Vec<_> =
        faults.chain(packages.iter().filter_map(packages::PackageRow::fault)).collect();
    Ok(verdict(rows.len() + packages.len(), &faults))
}

fn chosen(named: &[Server]) -> Vec<Server> {
    if named.is_empty() { Server::ALL.to_vec() } else { named.to_vec() }
}

async fn bounded(server: Server, installed: &Installed, setting: &Setting) -> Result<Run> {
    let limit = if setting.installs() { INSTALL_LIMIT } else { RUN_LIMIT };
    match timeout(limit, once(server, installed, setting)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("not done after {} s", limit.as_secs()).into()),
    }
}

async fn once(server: Server, installed: &Installed, setting: &Setting) -> Result<Run> {
    let scene = Scene::new(server.name())?;
    let invocation = server.invocation(installed, &scene)?;
    let session = Session::start(setting, &invocation).await?;
    let initialize = session.initialize;
    let outcome = match session.tools().await {
        Ok(tools) => server.exercise(&session, &scene, setting).await.map(|calls| (tools, calls)),
        Err(error) => Err(error),
    };
    let end = session.end().await?;
    match outcome {
        Ok((tools, calls)) => Ok(Run { tools, initialize, calls, ended_by_itself: end.by_itself }),
        Err(error) => Err(format!("{error}{}", end.stderr_quoted()).into()),
    }
}

impl Row {
    /// What went wrong, if anything did.
    fn fault(&self) -> Option<String> {
        match (&self.bare, &self.sandboxed) {
            (Err(error), _) => Some(format!("fails without the sandbox too: {error}")),
            (_, Some(Err(error))) => Some(format!("fails in the sandbox only: {error}")),
            (Ok(_), None) => Some("was not run in the sandbox".into()),
            (Ok(bare), Some(Ok(sandboxed))) => {
                if sandboxed.tools != bare.tools {
                    Some(format!("shows {} tools bare, {} sandboxed", bare.tools, sandboxed.tools))
                } else if bare.ended_by_itself && !sandboxed.ended_by_itself {
                    Some("bare it ends with its input, in the sandbox it had to be killed".into())
                } else {
                    None
                }
            }
        }
    }

    fn cells(&self) -> [String; 6] {
        let sandboxed = self.sandboxed.as_ref().and_then(|run| run.as_ref().ok());
        let bare = self.bare.as_ref().ok();
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".into());
        let initialize = |run: &Run| run.initialize.as_millis().to_string();
        [
            self.server.name().into(),
            or_dash(sandboxed.or(bare).map(|run| run.tools.to_string())),
            or_dash(sandboxed.map(initialize)),
            or_dash(bare.map(initialize)),
            or_dash(sandboxed.map(|run| run.calls.clone())),
            if self.fault().is_none() { "ok" } else { "FAILED" }.into(),
        ]
    }
}

fn print(rows: &[Row]) {
    let head = ["server", "tools", "initialize ms", "(bare)", "call", "ok"];
    table(head, rows.iter().map(Row::cells));
}

fn table(head: [&str; 6], rows: impl Iterator<Item = [String; 6]>) {
    let lines: Vec<_> = std::iter::once(head.map(String::from)).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for line in &lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("{}", cells.collect::<Vec<_>>().join(" | ").trim_end());
    }
    println!();
}

fn verdict(count: usize, faults: &[(&str, String)]) -> ExitCode {
    for (name, fault) in faults {
        println!("{name}: {fault}\n");
    }
    println!("{} passed, {} failed", count - faults.len(), faults.len());
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
