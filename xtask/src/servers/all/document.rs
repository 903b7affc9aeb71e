//! docs/SERVERS.md and bench/data/servers.json, and the same table on a terminal.

use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use super::list::List;
use super::record::{Record, head, shown};
use crate::{Result, workspace};

const DATA: &str = "bench/data/servers.json";
const PAGE: &str = "docs/SERVERS.md";
/// Of an error, this much is in the page.
const ERROR_SHOWN: usize = 400;

/// Keeps the results with the project and makes the page of them.
pub fn write(list: &List, records: &[Record]) -> Result<()> {
    let lines: Result<Vec<String>> =
        records.iter().map(|record| Ok(serde_json::to_string(record)?)).collect();
    fs::write(workspace().join(DATA), format!("[\n{}\n]\n", lines?.join(",\n")))?;
    fs::write(workspace().join(PAGE), page(list, records))?;
    Ok(())
}

/// The table, what is not as it should be, and the figures. Fails where the list has no reason for what works bare only.
pub fn print(list: &List, records: &[Record]) -> ExitCode {
    println!("{}", table(list, records));
    println!("{}", faults(list, records));
    println!("{}", summary(records));
    let unexplained = records.iter().filter(|record| {
        let explained = list.of(&record.package).is_some_and(|entry| entry.reason.is_some());
        record.fault().is_some() && !explained
    });
    let names: Vec<&str> = unexplained.map(|record| record.package.as_str()).collect();
    if names.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("works bare and not under mcp, and the list has no reason: {}", names.join(", "));
        ExitCode::FAILURE
    }
}

fn page(list: &List, records: &[Record]) -> String {
    format!(
        "# Real servers\n\n\
        Made by `cargo xtask servers --all` from `xtask/servers/all.toml` (names, versions, arguments, grants, calls) and \
        `bench/data/servers.json`; do not edit.\n\n\
        Each server is started by the line of its README, bare and behind `mcp run`, as an ordinary user with a home of its own. No \
        service had an account and no host of the internet could be reached but the registries, so keys of services are made up.\n\n\
        - **cold**: npx or uvx with what they downloaded before and nothing installed, against `mcp run` of the same line with the same \
        caches and an empty store; seconds to the list of tools.\n\
        - **warm**: the installed program itself, against `mcp run`; in turns, the middle in milliseconds to the list of tools.\n\
        - **calls** were made bare and under `mcp run`, with the same answers expected.\n\n\
        {}\n\
        ## Servers that work\n\n{}\n\
        ## What does not, and why\n\n{}",
        summary(records),
        table(list, records),
        faults(list, records)
    )
}

/// How many, and the ratios.
fn summary(records: &[Record]) -> String {
    let bare: Vec<&Record> = records.iter().filter(|it| it.bare.error.is_none()).collect();
    let works = bare.iter().filter(|record| record.works()).count();
    let with_calls = bare.iter().filter(|record| record.works() && record.bare.calls > 0).count();
    let calls: usize = bare.iter().filter_map(|it| it.mcp.as_ref()).map(|mcp| mcp.calls).sum();
    let loads: Vec<f64> = records.iter().map(|record| record.load).collect();
    let mut text = String::new();
    let mut say = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    say(format!(
        "{} servers were tried, {} list their tools bare, {works} of these also under `mcp run`. {calls} calls were made under \
         `mcp run`, on {with_calls} servers.\n",
        records.len(),
        bare.len()
    ));
    say("| ratio of `mcp run` to bare | servers | median | p90 |".into());
    say("|---|---|---|---|".into());
    let mut ratios = |name: &str, of: &dyn Fn(&Record) -> Option<f64>| {
        let mut all: Vec<f64> = bare.iter().filter_map(|record| of(record)).collect();
        all.sort_by(f64::total_cmp);
        let at = |share: usize| all.get((all.len() * share / 100).min(all.len().saturating_sub(1)));
        say(format!(
            "| {name} | {} | {} | {} |",
            all.len(),
            shown(at(50).copied()),
            shown(at(90).copied())
        ));
    };
    let npm = |record: &Record| record.package.starts_with("npm:");
    ratios("cold, warm caches, npm", &|it| it.cold_ratio().filter(|_| npm(it)));
    ratios("cold, warm caches, PyPI", &|it| it.cold_ratio().filter(|_| !npm(it)));
    ratios("cold, empty caches", &Record::empty_ratio);
    ratios("warm, npm", &|it| it.warm_ratio().filter(|_| npm(it)));
    ratios("warm, PyPI", &|it| it.warm_ratio().filter(|_| !npm(it)));
    ratios("warm, all", &Record::warm_ratio);
    let mut sorted = loads;
    sorted.sort_by(f64::total_cmp);
    if let (Some(middle), Some(first), Some(last)) = (
        sorted.get(sorted.len() / 2),
        records.iter().map(|it| it.date.as_str()).min(),
        records.iter().map(|it| it.date.as_str()).max(),
    ) {
        let dates = if first == last { first.to_owned() } else { format!("{first} to {last}") };
        say(format!(
            "\n{dates}, on a machine with other work: a load of {middle:.1} in the middle. Such times are good for ratios only."
        ));
    }
    text
}

fn table(list: &List, records: &[Record]) -> String {
    let mut text = String::from(
        "| server | version | tools | calls | cold s, bare | mcp | warm ms, bare | mcp | ratio |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for record in records.iter().filter(|record| record.works()) {
        let Some(mcp) = &record.mcp else { continue };
        let seconds = |milliseconds: Option<u64>| {
            milliseconds
                .map_or_else(|| "-".into(), |it| format!("{}.{}", it / 1000, it % 1000 / 100))
        };
        let warm = |of: &dyn Fn(&super::record::Warm) -> f64| {
            record.warm.as_ref().map_or_else(|| "-".into(), |it| format!("{:.0}", of(it)))
        };
        let note = list.of(&record.package).and_then(|entry| entry.reason.as_deref());
        let _ = writeln!(
            text,
            "| {}{} | {} | {} | {} | {} | {} | {} | {} | {} |",
            record.package,
            note.map(|note| format!(" ({note})")).unwrap_or_default(),
            record.bare.version.as_deref().unwrap_or("-"),
            record.bare.tools,
            if mcp.calls == 0 { "-".into() } else { mcp.calls.to_string() },
            seconds(record.bare.cold),
            seconds(mcp.cold),
            warm(&|it| it.bare),
            warm(&|it| it.mcp),
            shown(record.warm_ratio()),
        );
    }
    text
}

/// Those that fail under mcp first, then those that fail bare.
fn faults(list: &List, records: &[Record]) -> String {
    let mut text = String::from("| server | bare | under `mcp run` | why |\n|---|---|---|---|\n");
    let cell = |text: &str| head(&text.replace('|', "/").replace('`', "'"), ERROR_SHOWN);
    let failing = records.iter().filter(|it| it.fault().is_some());
    for record in failing.chain(records.iter().filter(|it| it.bare.error.is_some())) {
        let reason = list.of(&record.package).and_then(|entry| entry.reason.as_deref());
        let _ = writeln!(
            text,
            "| {} {} | {} | {} | {} |",
            record.package,
            record.version,
            record.bare.error.as_deref().map_or_else(|| "works".into(), cell),
            record.fault().map_or_else(|| "-".into(), |fault| cell(&fault)),
            reason.unwrap_or("-")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_made_of_the_data() {
        let list = List::read().unwrap();
        let data = fs::read_to_string(workspace().join(DATA)).unwrap();
        let records: Vec<Record> = serde_json::from_str(&data).unwrap();
        let page_now = fs::read_to_string(workspace().join(PAGE)).unwrap();
        assert!(page_now == page(&list, &records), "cargo xtask servers --all --write");
    }
}
