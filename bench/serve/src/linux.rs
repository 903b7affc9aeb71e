//! The benchmark: command line, rounds, and what is printed.

mod client;
mod contenders;
mod memory;
mod pipe;
mod server;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bench_common::{Machine, Random, programs};
use clap::{Parser, Subcommand};
use serde::Serialize;
use serde_json::json;

use client::Session;
use contenders::{Contender, Running};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Measure gateways from Streamable HTTP to a server over pipes.
///
/// The server is this program, and so is the client. Each round starts every gateway, lets all sessions begin, then make
/// their calls at the same time. Compare within one run; calls per second belong to this machine.
#[derive(Parser)]
#[command(name = "bench-serve")]
struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Rounds over all gateways
    #[arg(long, default_value_t = 3, value_name = "N")]
    rounds: u32,
    /// Sessions at once
    #[arg(long, default_value_t = 200, value_name = "N")]
    sessions: usize,
    /// Calls of each session, one after another
    #[arg(long, default_value_t = 50, value_name = "N")]
    calls: usize,
    /// The launcher [default: mcp beside this program]
    #[arg(long, value_name = "PATH")]
    mcp: Option<PathBuf>,
    /// The script of supergateway: node_modules/supergateway/dist/index.js
    #[arg(long, value_name = "PATH")]
    supergateway: Option<PathBuf>,
    /// The program of mcp-proxy
    #[arg(long, value_name = "PATH")]
    mcp_proxy: Option<PathBuf>,
    /// Instead: this many sandboxes of `mcp serve` that live at once
    #[arg(long, value_name = "N")]
    live: Option<usize>,
    /// Instead: what looking for JSON in a server's output costs `mcp run`, in rounds of 200 round trips
    #[arg(long, value_name = "ROUNDS")]
    filter: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// The server: answers over its pipes
    #[command(hide = true)]
    Server,
}

pub fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match (&args.verb, args.live, args.filter) {
        (Some(Verb::Server), ..) => server::run(),
        (None, Some(count), _) => live(&args, count),
        (None, None, Some(rounds)) => {
            launcher(&args).and_then(|mcp| pipe::compare(&mcp, rounds, args.json))
        }
        (None, None, None) => compare(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench-serve: {why}");
            ExitCode::FAILURE
        }
    }
}

fn launcher(args: &Args) -> Result<PathBuf> {
    Ok(match &args.mcp {
        Some(path) => path.clone(),
        None => programs::default_launcher()?,
    })
}

/// What one gateway did in one round.
#[derive(Debug, Clone, Serialize)]
struct Measured {
    calls_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Of the gateway's own process, for each session.
    gateway_kib_per_session: f64,
    /// Of all processes but the servers (proportional set size), for each session.
    all_but_servers_kib_per_session: f64,
    /// Processes of the server; a gateway with one shares it between its clients.
    servers: usize,
}

/// Memory is that of sessions that wait, and a gateway may need a moment to put away what only their beginning took.
const SETTLED: Duration = Duration::from_secs(5);

fn measure(contender: &Contender, sessions: usize, calls: usize) -> Result<Measured> {
    let running = Running::start(contender)?;
    let before = memory::look(running.process)?;
    let address = running.address();
    let begun =
        in_parallel((0..sessions).map(|_| address.clone()).collect(), |address: String| {
            Session::begin(&address, contender.path)
        })?;
    std::thread::sleep(SETTLED);
    let after = memory::look(running.process)?;
    let began = Instant::now();
    let times = in_parallel(begun, |mut session: Session| {
        let mut times = Vec::with_capacity(calls);
        for number in 0..calls {
            let began = Instant::now();
            session.call(number)?;
            times.push(began.elapsed());
        }
        Ok(times)
    })?;
    let wall = began.elapsed();
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort();
    let at = |part: f64| {
        let index = (times.len() as f64 * part) as usize;
        times.get(index.min(times.len() - 1)).map_or(0.0, |it| it.as_secs_f64() * 1000.0)
    };
    let each =
        |before: u64, after: u64| after.saturating_sub(before) as f64 / 1024.0 / sessions as f64;
    Ok(Measured {
        calls_per_second: times.len() as f64 / wall.as_secs_f64(),
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        gateway_kib_per_session: each(before.gateway, after.gateway),
        all_but_servers_kib_per_session: each(before.all_but_servers, after.all_but_servers),
        servers: after.servers,
    })
}

/// One thread for each; the first failure is the answer.
fn in_parallel<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().map(|it| it.join().map_err(|_| "a thread panicked")?).collect()
    })
}

fn compare(args: &Args) -> Result<()> {
    let mcp = launcher(args)?;
    let mut all = vec![Contender::mcp(&mcp, args.sessions)?];
    all.extend(args.supergateway.as_deref().map(Contender::supergateway).transpose()?);
    all.extend(args.mcp_proxy.as_deref().map(Contender::mcp_proxy).transpose()?);
    let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); all.len()];
    let mut failures: Vec<Option<String>> = vec![None; all.len()];
    let mut random = Random::default();
    for _ in 0..args.rounds {
        let mut order: Vec<usize> = (0..all.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            match measure(&all[index], args.sessions, args.calls) {
                Ok(it) => measured[index].push(it),
                Err(why) => failures[index] = Some(why.to_string()),
            }
        }
    }
    report(args, &all, &measured, &failures)
}

fn report(
    args: &Args,
    all: &[Contender],
    measured: &[Vec<Measured>],
    failures: &[Option<String>],
) -> Result<()> {
    if args.json {
        let rows: Vec<_> = all
            .iter()
            .zip(measured)
            .zip(failures)
            .map(|((it, rounds), failed)| json!({"name": it.name, "rounds": rounds, "failed": failed}))
            .collect();
        let (sessions, calls) = (args.sessions, args.calls);
        let told =
            json!({"machine": machine(), "sessions": sessions, "calls": calls, "gateways": rows});
        println!("{}", serde_json::to_string_pretty(&told)?);
        return Ok(());
    }
    println!(
        "{:<14} {:>9} {:>9} {:>9} {:>16} {:>16} {:>8}",
        "", "calls/s", "p50 ms", "p99 ms", "gateway KiB/s.", "with walls", "servers"
    );
    for ((it, rounds), failed) in all.iter().zip(measured).zip(failures) {
        if let Some(why) = failed {
            println!("{:<14} failed: {why}", it.name);
        }
        let middle = |value: fn(&Measured) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        println!(
            "{:<14} {:>9.0} {:>9.1} {:>9.1} {:>16.1} {:>16.1} {:>8.0}",
            it.name,
            middle(|it| it.calls_per_second),
            middle(|it| it.p50_ms),
            middle(|it| it.p99_ms),
            middle(|it| it.gateway_kib_per_session),
            middle(|it| it.all_but_servers_kib_per_session),
            middle(|it| it.servers as f64),
        );
    }
    Ok(())
}

/// Starts this many sandboxes, calls each once while all live, and says what they use.
fn live(args: &Args, count: usize) -> Result<()> {
    let contender = Contender::mcp(Path::new(&launcher(args)?), count)?;
    let running = Running::start(&contender)?;
    let address = running.address();
    let before = memory::look(running.process)?;
    let began = Instant::now();
    let mut sessions = Vec::with_capacity(count);
    // A few at a time: a thousand at once would only wait for one another.
    while sessions.len() < count {
        let next = (count - sessions.len()).min(16);
        let begin = |address: String| Session::begin(&address, contender.path);
        sessions.extend(in_parallel(vec![address.clone(); next], begin)?);
    }
    let started = began.elapsed();
    let after = memory::look(running.process)?;
    let began = Instant::now();
    for session in &mut sessions {
        session.call(1)?;
    }
    let told = json!({
        "machine": machine(),
        "sandboxes": count,
        "servers": after.servers,
        "seconds_to_start_all": started.as_secs_f64(),
        "seconds_to_call_each": began.elapsed().as_secs_f64(),
        "gateway_kib_per_session": (after.gateway - before.gateway) as f64 / 1024.0 / count as f64,
        "all_but_servers_kib_per_session": (after.all_but_servers - before.all_but_servers) as f64 / 1024.0 / count as f64,
        "server_kib_per_session": after.server_bytes as f64 / 1024.0 / count as f64,
    });
    println!("{}", serde_json::to_string_pretty(&told)?);
    if after.servers < count {
        return Err(format!("{} of {count} servers live", after.servers).into());
    }
    Ok(())
}

fn machine() -> serde_json::Value {
    let Machine { kernel, processors, load } = Machine::here();
    json!({"kernel": kernel, "processors": processors, "load": load})
}
