//! The benchmark: command line, rounds, and what is printed.

mod contenders;
mod memory;
mod stats;
mod sys;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench_common::{Machine, Random, Summary, programs};
use clap::Parser;
use serde_json::json;

use contenders::{Contender, Entry};
use stats::Table;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measure what each way of starting a command costs over a bare spawn of it.
///
/// Every round starts each of them once, in a shuffled order, so that a noisy machine
/// disturbs all alike. Compare ratios; the milliseconds belong to this machine.
#[derive(Parser)]
#[command(name = "bench-startup")]
struct Args {
    /// Rounds that count
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rounds before those, to fill the caches
    #[arg(long, default_value_t = 10, value_name = "N")]
    warm_up: u32,
    /// The command that all of them start: an absolute path, no arguments
    #[arg(long, default_value = "/bin/true", value_name = "PATH")]
    command: PathBuf,
    /// The launcher [default: release/mcp in the target directory of this program]
    #[arg(long, value_name = "PATH")]
    mcp: Option<PathBuf>,
    /// Also show how many processes a running sandbox is, and their memory
    #[arg(long)]
    rss: bool,
    /// Also measure firejail and srt, which are much slower, where they are installed
    #[arg(long)]
    peers: bool,
    /// Exit 1 when our overhead is more than this part of bubblewrap's
    #[arg(long, value_name = "RATIO")]
    assert_ratio: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == contenders::FLOOR) {
        // Before clap: the floor is to pay for namespaces, not for parsing a command line.
        return match words.next() {
            Some(command) => sys::run_in_namespaces(&command),
            None => ExitCode::from(2),
        };
    }
    let args = Args::parse();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench-startup: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    if !args.command.is_absolute() {
        return Err(format!("--command {}: not an absolute path", args.command.display()).into());
    }
    let launcher = match &args.mcp {
        Some(path) => path.clone(),
        None => programs::default_launcher()?,
    };
    let machine = Machine::here();
    let project = SmallProject::new()?;
    let entries = contenders::all(&args.command, &launcher, &project.0, args.peers)?;
    let ready: Vec<&Contender> = entries.iter().filter_map(Entry::ready).collect();
    let table = Table::new(&entries, measure(&ready, args)?);
    let trees = if args.rss { memory::of_sandboxes(&launcher, args.peers)? } else { Vec::new() };

    if args.json {
        let memory: Vec<_> = trees.iter().map(memory::Tree::to_json).collect();
        let report = json!({
            "machine": {
                "kernel": machine.kernel,
                "processors": machine.processors,
                "load": machine.load,
            },
            "command": args.command.display().to_string(),
            "rounds": args.rounds,
            "startup": table.to_json(),
            "memory": memory,
        });
        println!("{report:#}");
    } else {
        let debug = if cfg!(debug_assertions) { ", debug build of this program" } else { "" };
        println!("start-up of {}, {} rounds{debug}\n", args.command.display(), args.rounds);
        print!("{table}");
        for tree in &trees {
            print!("\n{tree}");
        }
    }
    Ok(verdict(args.assert_ratio, table.ratio_of("mcp")))
}

/// A directory with a file and two directories, gone with this.
struct SmallProject(PathBuf);

impl SmallProject {
    fn new() -> Result<SmallProject> {
        let root = std::env::temp_dir().join(format!("bench-project-{}", std::process::id()));
        for directory in ["src", "tests"] {
            std::fs::create_dir_all(root.join(directory))?;
        }
        std::fs::write(root.join("README.md"), "A small project.\n")?;
        Ok(SmallProject(root))
    }
}

impl Drop for SmallProject {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn measure(contenders: &[&Contender], args: &Args) -> Result<Vec<Summary>> {
    let mut samples = vec![Vec::with_capacity(args.rounds as usize); contenders.len()];
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut random = Random::default();
    for round in 0..args.warm_up.saturating_add(args.rounds) {
        random.shuffle(&mut order);
        for &index in &order {
            let Some(contender) = contenders.get(index) else {
                continue;
            };
            let took = contender.time_once()?;
            if round >= args.warm_up {
                samples[index].push(took);
            }
        }
    }
    Ok(samples.into_iter().map(|times: Vec<Duration>| Summary::of(times)).collect())
}

/// An assertion that could not be measured has failed: silence would read as success.
fn verdict(limit: Option<f64>, ratio: Option<f64>) -> ExitCode {
    match (limit, ratio) {
        (None, _) => ExitCode::SUCCESS,
        (Some(limit), Some(ratio)) if ratio <= limit => ExitCode::SUCCESS,
        (Some(limit), Some(ratio)) => {
            eprintln!("bench-startup: ratio to bubblewrap is {ratio:.2}, above {limit:.2}");
            ExitCode::FAILURE
        }
        (Some(_), None) => {
            eprintln!("bench-startup: no ratio to assert: bubblewrap or mcp was not measured");
            ExitCode::FAILURE
        }
    }
}
