//! `cargo xtask learn`: what `mcp learn --yes` makes of twelve servers is enough, and no line of it is superfluous.
//!
//! Each server is learned, in at most three rounds. Then an MCP client that knows nothing of `mcp learn` makes the same
//! calls under `mcp run --policy LEARNED`: all must work. Then each line that grants something is taken out: some call must
//! fail, or leave nothing on the host, and it is named. Limits and `deny` lines restrict, so no call depends on them.

mod scene;
mod subject;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::runtime;

use crate::servers::install;
use crate::{Result, launcher};
use scene::Scene;
use subject::{Places, Subject};
use trial::Learned;

/// Learn policies of published MCP servers, and try every line of them
///
/// Needs what `cargo xtask servers` needs. Installs packages with mcp itself, into a store that is kept between calls.
#[derive(clap::Args)]
pub struct Args {
    /// The launcher [default: a fresh release build of this workspace]
    #[arg(long, value_name = "PATH")]
    mcp: Option<PathBuf>,
    /// Where servers are installed and run [default: target/learn]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only the servers with these names
    names: Vec<String>,
}

/// What one server showed.
struct Row {
    name: &'static str,
    outcome: Result<Shown>,
}

struct Shown {
    rounds: usize,
    /// Each line that grants something, and the call that needs it.
    lines: Vec<(String, String)>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let launcher = launcher::locate(args.mcp.as_deref())?;
    let place = args.dir.clone().unwrap_or_else(|| crate::target_directory().join("learn"));
    std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let place = place.canonicalize()?;
    let installed = install::install(&place.join("servers"))?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for make in subject::ALL {
        let scene = Scene::new(&place)?;
        let subject = make(&Places { scene: &scene, installed: &installed })?;
        if !args.names.is_empty() && !args.names.iter().any(|name| name == subject.name) {
            continue;
        }
        eprintln!("{}", subject.name);
        let trial = trial::Trial::new(&launcher, &place.join("store"), &scene, &subject);
        let outcome = trial.learn().and_then(|learned| runtime.block_on(shown(&trial, learned)));
        rows.push(Row { name: subject.name, outcome });
    }
    Ok(print(&rows))
}

async fn shown(trial: &trial::Trial<'_>, learned: Learned) -> Result<Shown> {
    let Learned { policy, rounds } = learned;
    if let Some(fault) = trial.fails(&policy).await? {
        return Err(format!("with the learned policy {fault}\n{policy}").into());
    }
    let mut lines = Vec::new();
    for (at, line) in trial::granting(&policy) {
        let without: Vec<&str> = policy
            .lines()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, line)| line)
            .collect();
        let Some(fault) = trial.fails(&without.join("\n")).await? else {
            return Err(format!("everything works without {line}\n{policy}").into());
        };
        lines.push((line, fault));
    }
    let least = trial.subject.needs;
    if lines.len() < least {
        return Err(
            format!("{} lines were learned, and it needs {least}\n{policy}", lines.len()).into()
        );
    }
    Ok(Shown { rounds, lines })
}

fn print(rows: &[Row]) -> ExitCode {
    for Row { name, outcome } in rows {
        match outcome {
            Ok(Shown { rounds, lines }) => {
                println!("{name}: learned in {rounds} rounds, {} lines", lines.len());
                for (line, fault) in lines {
                    println!("  {line}\n    without it {fault}");
                }
            }
            Err(error) => println!("{name}: FAILED: {error}"),
        }
    }
    let failed = rows.iter().filter(|row| row.outcome.is_err()).count();
    println!("\n{} passed, {failed} failed", rows.len() - failed);
    if failed == 0 && !rows.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Subject {
    /// What a client calls, as `mcp learn --call` takes it.
    fn flags(&self) -> impl Iterator<Item = String> + '_ {
        self.calls.iter().map(|call| format!("--call={}={}", call.tool, call.arguments))
    }
}
