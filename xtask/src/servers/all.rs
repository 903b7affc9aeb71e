//! `cargo xtask servers --all`: a long list of published servers, each as a client starts it, bare and by `mcp run`.
//!
//! Per server, in a home of its own that is deleted afterwards: npx or uvx from empty caches; again with those caches and
//! without what they installed; `mcp run` with the same caches and an empty store; then starts of what both installed, in
//! turns. Each lists its tools and makes the calls of the list. The bare run is the positive control: what fails
//! there counts for nothing.

mod document;
mod list;
mod measure;
mod page;
mod place;
mod public;
mod record;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime;

use super::install;
use crate::{Result, launcher};
use list::{Entry, List};
use measure::Measure;
use record::{Record, Results};

/// What a sweep needs beyond node, npm, python3 and git.
const NEEDED: [(&[&str], &str); 1] = [(&["uvx", "--version"], "uvx (it comes with uv)")];

/// What is asked of a sweep.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Every server of xtask/servers/all.toml, bare and by `mcp run`, cold and warm
    #[arg(long)]
    pub all: bool,
    /// With --all: only the servers that CI runs
    #[arg(long, requires = "all")]
    few: bool,
    /// With --all: only packages whose names contain this
    #[arg(long, requires = "all", value_name = "WORD")]
    only: Vec<String>,
    /// With --all: the newest versions instead of those of the list
    #[arg(long, requires = "all")]
    newest: bool,
    /// With --all: go on with what is in the results, and leave out servers that are in them
    #[arg(long, requires = "all")]
    resume: bool,
    /// With --all: run again what the results say failed
    #[arg(long, requires = "all", conflicts_with = "resume")]
    failed: bool,
    /// With --all: also `mcp run` with empty caches
    #[arg(long, requires = "all")]
    empty_caches: bool,
    /// With --all: warm starts of each, in turns
    #[arg(long, requires = "all", value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// With --all: no cold times, and each package is installed once less; several such sweeps may run at once
    #[arg(long, requires = "all", conflicts_with = "empty_caches")]
    warm_only: bool,
    /// With --all: seconds that an installation with its start may take
    #[arg(long, requires = "all", value_name = "SECONDS", default_value_t = 90)]
    limit: u64,
    /// With --all: caches that servers share and that stay [default: those of each server's home]
    #[arg(long, requires = "all", value_name = "DIR")]
    caches: Option<PathBuf>,
    /// With --all: where results are kept, one line for each server [default: target/servers-all.jsonl]
    #[arg(long, requires = "all", value_name = "FILE")]
    results: Option<PathBuf>,
    /// With --all: run nothing; write the results so far to bench/data/servers.json and docs/SERVERS.md
    #[arg(long, requires = "all")]
    write: bool,
}

pub fn run(args: &Args, mcp: Option<&Path>) -> Result<ExitCode> {
    let list = List::read()?;
    let path =
        args.results.clone().unwrap_or_else(|| crate::target_directory().join("servers-all.jsonl"));
    if args.write {
        let results = Results::open(&path)?;
        document::write(&list, &results.in_order_of(&list))?;
        return Ok(ExitCode::SUCCESS);
    }
    install::check_machine()?;
    install::check(&NEEDED)?;
    let launcher = launcher::locate(mcp)?;
    let mut results =
        if args.resume || args.failed { Results::open(&path)? } else { Results::fresh(&path)? };
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let chosen: Vec<&Entry> =
        list.servers.iter().filter(|entry| args.wants(entry, &results)).collect();
    let mut records = Vec::new();
    for (index, entry) in chosen.iter().enumerate() {
        eprint!("{}/{} {} ", index + 1, chosen.len(), entry.package);
        let measure = Measure {
            launcher: &launcher,
            newest: args.newest,
            rounds: args.rounds,
            empty_caches: args.empty_caches,
            warm_only: args.warm_only,
            caches: args.caches.as_deref(),
            cold_limit: Duration::from_secs(args.limit),
        };
        let record = runtime.block_on(measure.server(entry))?;
        eprintln!("{}", record.told(entry));
        results.append(&record)?;
        records.push(record);
    }
    let shown: Vec<Record> =
        if args.resume || args.failed { results.in_order_of(&list) } else { records };
    Ok(document::print(&list, &shown))
}

impl Args {
    fn wants(&self, entry: &Entry, results: &Results) -> bool {
        let named =
            self.only.is_empty() || self.only.iter().any(|word| entry.package.contains(word));
        let before = results.of(&entry.package);
        named
            && (!self.few || entry.few)
            && !(self.resume && before.is_some())
            && (!self.failed || before.is_none_or(|record| record.fault().is_some()))
    }
}
