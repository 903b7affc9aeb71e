//! The benchmark: command line, rounds, and what is printed.

mod act;
mod rows;
mod sys;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench_common::{Random, launchers, programs};
use clap::Parser;
use serde_json::json;

use act::Act;
use rows::{Row, Series};
use worker::{Entry, Worker};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Measure what common acts cost inside a sandbox, as ratios to the same act done bare.
///
/// One worker lives in each setting for the whole run. Every round asks each of them for a
/// batch of each act, in a shuffled order, so that a noisy machine disturbs all alike.
#[derive(Parser)]
#[command(name = "bench-steady")]
struct Args {
    /// Rounds that count
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rounds before those, to fill the caches
    #[arg(long, default_value_t = 5, value_name = "N")]
    warm_up: u32,
    /// The launcher [default: release/mcp in the target directory of this program]
    #[arg(long, value_name = "PATH")]
    mcp: Option<PathBuf>,
    /// Exit 1 when an act inside mcp costs more than this many times the bare one
    #[arg(long, value_name = "RATIO")]
    assert_ratio: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = worker::dispatch(&words) {
        return code;
    }
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench-steady: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    let launcher = match &args.mcp {
        Some(path) => path.clone(),
        None => programs::default_launcher()?,
    };
    let mut workers = start(&launcher)?;
    let rows = measure(&mut workers, args)?;
    if args.json {
        let rows: Vec<_> = rows.iter().map(Row::to_json).collect();
        println!("{:#}", json!({ "rounds": args.rounds, "acts": rows }));
    } else {
        print!("{}", rows::table(&rows, args.rounds));
        for entry in &workers {
            if let Entry::Skipped { name, why } = entry {
                println!("{name} skipped: {why}");
            }
        }
    }
    Ok(verdict(args.assert_ratio, &rows))
}

/// The settings: `bare` comes first and must work, since all others are compared with it.
fn start(launcher: &Path) -> Result<Vec<Entry>> {
    let own = std::env::current_exe()?;
    let command = |mode: &str| [own.clone().into_os_string(), mode.into()];
    let bare = Worker::start("bare", &command(worker::WORKER))
        .map_err(|why| format!("does not run bare: {why}"))?;
    let bubblewrap = launchers::bubblewrap(&[&own], command(worker::WORKER));
    Ok(vec![
        Entry::Ready(bare),
        Entry::start("filter", &command(worker::FILTERED)),
        Entry::start("bubblewrap", &bubblewrap),
        Entry::start("mcp", &launchers::mcp(launcher, command(worker::WORKER))),
        Entry::start("mcp learn", &launchers::mcp_watching(launcher, command(worker::WORKER))),
    ])
}

fn measure(entries: &mut [Entry], args: &Args) -> Result<Vec<Row>> {
    let mut workers: Vec<&mut Worker> = entries.iter_mut().filter_map(Entry::ready).collect();
    let mut random = Random::default();
    let mut order: Vec<usize> = (0..workers.len()).collect();
    let mut rows = Vec::new();
    for act in Act::ALL {
        let mut series: Vec<Series> = workers.iter().map(|it| Series::new(it.name)).collect();
        for round in 0..args.warm_up.saturating_add(args.rounds) {
            random.shuffle(&mut order);
            for &index in &order {
                let nanoseconds = workers[index].ask(act)?;
                if round >= args.warm_up {
                    series[index].values.push(nanoseconds);
                }
            }
        }
        rows.push(Row::new(act, series));
    }
    Ok(rows)
}

/// An assertion that could not be measured has failed: silence would read as success.
fn verdict(limit: Option<f64>, rows: &[Row]) -> ExitCode {
    let Some(limit) = limit else {
        return ExitCode::SUCCESS;
    };
    let mut code = ExitCode::SUCCESS;
    for row in rows {
        match row.ratio_of("mcp") {
            Some(ratio) if ratio <= limit => continue,
            Some(ratio) => eprintln!("bench-steady: {}: {ratio:.3}, above {limit}", row.act),
            None => eprintln!("bench-steady: {}: mcp was not measured", row.act),
        }
        code = ExitCode::FAILURE;
    }
    code
}
