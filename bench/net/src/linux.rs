//! The benchmark: command line, rounds, and what is printed.

mod client;
mod contenders;
mod load;
mod server;
mod table;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench_common::{Machine, Random, Summary, programs};
use clap::Parser;
use serde_json::json;

use client::{Done, Job};
use contenders::{Contender, Entry};
use server::Ports;
use table::{Measured, Outcome, Table};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measure connections through each sandbox's network allowlist against bare ones.
///
/// Servers and clients are this program, on the loopback. Every round lets each contender make
/// some connections and move some bytes, in a shuffled order, so that a noisy machine disturbs
/// all alike. Compare ratios; the microseconds belong to this machine.
#[derive(Parser)]
#[command(name = "bench-net")]
struct Args {
    /// Rounds over all contenders
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Connections of each contender in a round
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Connections in sequence, none of which may be lost (0: leave it out)
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    sequence: u32,
    /// Connections at once, none of which may be lost (0: leave it out)
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    at_once: u32,
    /// Seconds of load during which the launcher's memory is watched (0: leave it out)
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    load: u32,
    /// The launcher [default: release/mcp in the target directory of this program]
    #[arg(long, value_name = "PATH")]
    mcp: Option<PathBuf>,
    /// Only bare and mcp
    #[arg(long)]
    no_peers: bool,
    /// Exit 1 when a new connection by mcp takes more than this many times a bare one
    #[arg(long, value_name = "RATIO")]
    assert_latency: Option<f64>,
    /// Exit 1 when mcp's throughput is less than this part of the bare one
    #[arg(long, value_name = "RATIO")]
    assert_throughput: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().is_some_and(|word| word == client::CLIENT) {
        return client::main(words);
    }
    let args = Args::parse();
    let ran = run(&args);
    contenders::tidy();
    match ran {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench-net: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    let launcher = match &args.mcp {
        Some(path) => path.clone(),
        None => programs::default_launcher()?,
    };
    let machine = Machine::here();
    let ports = server::start()?;
    let entries = contenders::all(&launcher, ports, args.no_peers)?;
    let ready: Vec<&Contender> = entries.iter().filter_map(Entry::ready).collect();
    let table = Table::new(&entries, measure(&ready, ports, args)?);
    let mut endured = Vec::new();
    for contender in ready.iter().filter(|it| it.is_ours()) {
        endured.extend(endurance(contender, ports, args)?);
    }
    let memory = match (args.load, ready.iter().find(|it| it.name == "mcp")) {
        (0, _) | (_, None) => None,
        (seconds, Some(mcp)) => Some(load::watch(mcp, ports, Duration::from_secs(seconds.into()))?),
    };
    if args.json {
        let endured: Vec<_> = endured.iter().map(Endured::to_json).collect();
        let report = json!({
            "machine": {
                "kernel": machine.kernel,
                "processors": machine.processors,
                "load": machine.load,
            },
            "rounds": args.rounds,
            "connections": args.connections,
            "contenders": table.to_json(),
            "endurance": endured,
            "memory": memory.as_ref().map(load::Memory::to_json),
        });
        println!("{report:#}");
    } else {
        println!("{} rounds of {} connections\n", args.rounds, args.connections);
        print!("{table}");
        for line in &endured {
            println!("{line}");
        }
        if let Some(memory) = &memory {
            println!("{memory}");
        }
    }
    Ok(verdict(args, &table, &endured))
}

/// What each of them did, in their order. A peer that fails on the way is left out from then on;
/// when one of ours does, there is nothing to report.
fn measure(contenders: &[&Contender], ports: Ports, args: &Args) -> Result<Vec<Outcome>> {
    let mut samples: Vec<_> = contenders.iter().map(|_| Ok(Samples::default())).collect();
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut random = Random::default();
    for _ in 0..args.rounds {
        random.shuffle(&mut order);
        for &index in &order {
            let (Some(contender), Some(slot)) = (contenders.get(index), samples.get_mut(index))
            else {
                continue;
            };
            let Ok(taken) = slot else { continue };
            if let Err(error) = round(contender, ports, args.connections, taken) {
                let error = format!("{}: {error}", contender.name);
                if contender.is_peer() {
                    *slot = Err(error);
                } else {
                    return Err(error.into());
                }
            }
        }
    }
    Ok(samples.into_iter().map(|taken| taken.map(Samples::summary)).collect())
}

#[derive(Default)]
struct Samples {
    times: Vec<Duration>,
    rates: Vec<f64>,
}

impl Samples {
    fn summary(mut self) -> Measured {
        self.rates.sort_unstable_by(f64::total_cmp);
        let bytes_per_second = self.rates.get(self.rates.len() / 2).copied().unwrap_or_default();
        Measured { connection: Summary::of(self.times), bytes_per_second }
    }
}

fn round(contender: &Contender, ports: Ports, count: u32, taken: &mut Samples) -> Result<()> {
    let done = contender.run(Job::Sequence, ports.echo, count)?;
    nothing_lost(&done, count)?;
    taken.times.extend(done.nanoseconds.into_iter().map(Duration::from_nanos));
    let done = contender.run(Job::Download, ports.source, 1)?;
    taken.rates.push(done.bytes_per_second);
    Ok(())
}

/// A lost connection in the middle makes the others' times worthless.
fn nothing_lost(done: &Done, wanted: u32) -> Result<()> {
    if done.good == wanted {
        Ok(())
    } else {
        Err(format!("lost {} of {wanted} connections", wanted.saturating_sub(done.good)).into())
    }
}

/// Many connections, of which none may be lost.
struct Endured {
    contender: &'static str,
    what: &'static str,
    wanted: u32,
    good: u32,
}

fn endurance(contender: &Contender, ports: Ports, args: &Args) -> Result<Vec<Endured>> {
    let mut endured = Vec::new();
    for (job, what, wanted) in
        [(Job::Sequence, "in sequence", args.sequence), (Job::AtOnce, "at once", args.at_once)]
    {
        if wanted > 0 {
            let good = contender.run(job, ports.echo, wanted)?.good;
            endured.push(Endured { contender: contender.name, what, wanted, good });
        }
    }
    Ok(endured)
}

impl Endured {
    fn to_json(&self) -> serde_json::Value {
        let Self { contender, what, wanted, good } = self;
        json!({ "name": contender, "what": what, "wanted": wanted, "good": good })
    }
}

impl std::fmt::Display for Endured {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { contender, what, wanted, good } = self;
        write!(out, "{contender}: {wanted} {what}: {} lost", wanted - good)
    }
}

/// An assertion that could not be measured has failed: silence would read as success.
fn verdict(args: &Args, table: &Table, endured: &[Endured]) -> ExitCode {
    let latency = table.connection_ratio("mcp").unwrap_or(f64::INFINITY);
    let throughput = table.throughput_ratio("mcp").unwrap_or(0.0);
    let mut faults = Vec::new();
    if args.assert_latency.is_some_and(|limit| latency > limit) {
        faults.push(format!("a connection takes {latency:.2} times a bare one"));
    }
    if args.assert_throughput.is_some_and(|limit| throughput < limit) {
        faults.push(format!("throughput is {throughput:.2} of the bare one"));
    }
    faults.extend(endured.iter().filter(|it| it.good != it.wanted).map(ToString::to_string));
    for fault in &faults {
        eprintln!("bench-net: {fault}");
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
