//! `mcp ps`: the sandboxes of this user that run now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_sandbox::runs::{self, Record, Run, Stats};
use serde::Serialize;

use crate::args;
use crate::commands::policy::to_json;
use crate::failure::Failure;
use crate::render::{self, Paint};

/// A run and what it uses.
#[derive(Serialize)]
pub struct Row<'a> {
    #[serde(flatten)]
    pub record: &'a Record,
    #[serde(flatten)]
    pub stats: Stats,
}

impl Row<'_> {
    pub fn new(run: &Run) -> Row<'_> {
        Row { record: &run.record, stats: run.stats() }
    }
}

pub fn run(args: args::Ps) -> Result<u8, Failure> {
    let runs = runs::list()?;
    let rows: Vec<Row<'_>> = runs.iter().map(Row::new).collect();
    render::print(&if args.json { to_json(&rows) + "\n" } else { table(&rows) });
    Ok(0)
}

fn table(rows: &[Row<'_>]) -> String {
    let paint = Paint::stdout();
    let title = format!(
        "{:<8}  {:>8}  {:>10}  {:>8}  {:>5}  {:>10}  {:>10}  {}",
        "ID", "SINCE", "MEMORY", "CPU", "PROCS", "SENT", "RECEIVED", "COMMAND"
    );
    let mut text = paint.strong(&title) + "\n";
    for Row { record, stats } in rows {
        let unknown = || "-".to_owned();
        let bytes = |count: Option<u64>| count.map_or_else(unknown, render::rounded_bytes);
        let memory = bytes(stats.memory_bytes);
        let cpu = stats.cpu_seconds.map_or_else(unknown, |seconds| format!("{seconds:.1} s"));
        let processes = stats.processes.map_or_else(unknown, |count| count.to_string());
        let sent = bytes(stats.network.map(|network| network.bytes_out));
        let received = bytes(stats.network.map(|network| network.bytes_in));
        let command = render::plain(&record.command.join(" "));
        let since = age(record.since);
        text += &format!(
            "{:<8}  {since:>8}  {memory:>10}  {cpu:>8}  {processes:>5}  {sent:>10}  {received:>10}  {command}\n",
            record.id
        );
    }
    text
}

/// How long ago a moment was, in one unit.
pub fn age(since: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    match now.saturating_sub(since) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// The one run whose name starts with this.
pub fn find(text: &str) -> Result<Run, Failure> {
    let mut found: Vec<Run> =
        runs::list()?.into_iter().filter(|run| run.record.id.as_str().starts_with(text)).collect();
    let shown = render::plain(text);
    match (found.pop(), found.len()) {
        (Some(run), 0) if !text.is_empty() => Ok(run),
        (None, _) => Err(Failure::NoSuchRun(format!(
            "no sandbox of yours is named {shown}; `mcp ps` lists those that run"
        ))),
        _ => Err(Failure::Usage(format!("{shown} names more than one sandbox; give more digits"))),
    }
}
