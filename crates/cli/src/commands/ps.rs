//! `mcp ps`: the sandboxes of this user that run now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_sandbox::runs::{self, Record, Run, Stats};
use serde::Serialize;

use mcp_package::Digest;
use mcp_package::store::Stored;

use crate::args;
use crate::failure::Failure;
use crate::packages::open_store;
use crate::render::to_json;
use crate::render::{self, Paint};

mod masked;

/// A run and what it uses.
#[derive(Serialize)]
pub struct RunRow {
    /// The package, where it is one of the store's; else the program.
    pub name: String,
    #[serde(flatten)]
    pub record: Record,
    #[serde(flatten)]
    pub stats: Stats,
}

impl RunRow {
    pub fn new(run: &Run, packages: &Packages) -> RunRow {
        let mut record = run.record.clone();
        let name = packages.name(&record.command);
        record.command = masked::words(&record.command);
        let program =
            record.command.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
        let name = name.unwrap_or_else(|| program.to_owned());
        RunRow { name, record, stats: run.stats() }
    }

    /// What runs, in a few words: a package with its arguments, or a command.
    fn shown(&self) -> String {
        let command = &self.record.command;
        let is_package = command.first().is_none_or(|word| !word.ends_with(&self.name));
        // A package's interpreter and its own files say nothing that the name does not.
        let is_own = |word: &&String| is_package && (word.contains("/unpacked/") || *word == "-I");
        let rest = command.iter().skip(1).filter(|word| !is_own(word));
        let rest: Vec<&str> = rest.map(String::as_str).collect();
        format!("{} {}", self.name, rest.join(" ")).trim_end().to_owned()
    }
}

/// The names of packages, by the digest in the paths of their files.
pub struct Packages(Vec<Stored>);

impl Packages {
    pub fn look() -> Packages {
        Packages(open_store().and_then(|store| Ok(store.list()?)).unwrap_or_default())
    }

    fn name(&self, command: &[String]) -> Option<String> {
        let digest = |word: &String| {
            let (_, rest) = word.split_once("/unpacked/")?;
            Digest::from_hex(rest.get(..64)?).ok()
        };
        let digest = command.iter().find_map(digest)?;
        let mut names =
            self.0.iter().filter(|one| one.digest == digest).map(|one| one.name.clone());
        names.next()
    }
}

pub fn run(args: args::Ps) -> Result<u8, Failure> {
    let runs = runs::list()?;
    let packages = Packages::look();
    let rows: Vec<RunRow> = runs.iter().map(|run| RunRow::new(run, &packages)).collect();
    if rows.is_empty() && !args.json {
        render::say("no sandbox of yours runs now");
        return Ok(0);
    }
    render::print(&if args.json { to_json(&rows) + "\n" } else { table(&rows, render::columns()) });
    Ok(0)
}

fn table(rows: &[RunRow], columns: Option<usize>) -> String {
    let paint = Paint::stdout();
    // Traffic is told where there is room, or where it is all that there is to say.
    let is_wide = columns.is_none_or(|columns| columns >= 100);
    let traffic = |sent: &str, received: &str| match is_wide {
        true => format!("  {sent:>10}  {received:>10}"),
        false => String::new(),
    };
    let title = format!(
        "{:<8}  {:>7}  {:>9}  {:>8}  {:>5}{}  {}",
        "ID",
        "SINCE",
        "MEMORY",
        "CPU",
        "PROCS",
        traffic("SENT", "RECEIVED"),
        "WHAT"
    );
    let mut text = paint.strong(&render::fitted(&title, columns)) + "\n";
    for row in rows {
        let RunRow { record, stats, .. } = row;
        let unknown = || "-".to_owned();
        let bytes = |count: Option<u64>| count.map_or_else(unknown, render::rounded_bytes);
        let memory = bytes(stats.memory_bytes);
        let cpu = stats.cpu_seconds.map_or_else(unknown, |seconds| format!("{seconds:.1} s"));
        let processes = stats.processes.map_or_else(unknown, |count| count.to_string());
        let sent = bytes(stats.network.map(|network| network.bytes_out));
        let received = bytes(stats.network.map(|network| network.bytes_in));
        let since = age(record.since);
        let line = format!(
            "{:<8}  {since:>7}  {memory:>9}  {cpu:>8}  {processes:>5}{}  {}",
            record.id,
            traffic(&sent, &received),
            render::plain(&row.shown())
        );
        text += &(render::fitted(&line, columns) + "\n");
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
