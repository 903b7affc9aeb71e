//! Which figures of the benchmarks are drawn, and how they are worded.

use bench_common::plot::{Bar, Chart};
use serde_json::Value;

use super::Result;

/// What a sandbox adds to a start.
pub fn startup(data: &Value) -> Result<Chart> {
    let rows = rows(data, "startup")?;
    let bare = number(rows.first().ok_or("no rows")?, "median_ms")?;
    let mut bars = Vec::new();
    for row in rows.iter().skip(1).filter(|row| row["skipped"].is_null()) {
        let over = number(row, "overhead_ms")?;
        let spread = (number(row, "p10_ms")? - bare, number(row, "p90_ms")? - bare);
        bars.push(bar(row, over, format!("{over:.1} ms"), Some(spread))?);
    }
    Ok(Chart {
        title: "What a sandbox adds to the start of a program".into(),
        subtitle: "milliseconds over a bare start of /bin/true; median, and where 80 of 100 lie"
            .into(),
        bars: sorted(bars),
        notes: notes(data, &format!("{} interleaved starts of each", text(&data["rounds"])))?,
    })
}

/// What stays in memory beside the command, of pages that are shared with nothing.
pub fn memory(data: &Value) -> Result<Chart> {
    let mut bars = Vec::new();
    for row in rows(data, "memory")?.iter().filter(|row| row["skipped"].is_null()) {
        let processes: Vec<&Value> =
            rows(row, "processes")?.iter().filter(|it| it["name"] != "sleep").collect();
        let mut kibibytes = 0.0;
        for process in &processes {
            kibibytes += number(process, "anonymous_kib")?;
        }
        let mebibytes = kibibytes / 1024.0;
        let plural = if processes.len() == 1 { "" } else { "es" };
        let words = format!("{mebibytes:.1} MiB, {} process{plural}", processes.len());
        bars.push(bar(row, mebibytes, words, None)?);
    }
    Ok(Chart {
        title: "Memory of a sandbox".into(),
        subtitle: "MiB of their own that launcher and helpers keep while a command runs".into(),
        bars: sorted(bars),
        notes: notes(data, "RssAnon in /proc/PID/status, without the command's")?,
    })
}

/// A new connection to an allowed host.
pub fn connection(data: &Value) -> Result<Chart> {
    let mut bars = Vec::new();
    for row in rows(data, "contenders")?.iter().filter(|row| row["skipped"].is_null()) {
        let (median, ratio) = (number(row, "connection_us")?, number(row, "connection_ratio")?);
        let spread = (number(row, "connection_p10_us")?, number(row, "connection_p90_us")?);
        let words = match row["name"] == "bare" {
            true => format!("{median:.0} µs"),
            false => format!("{median:.0} µs, {ratio:.2} ×"),
        };
        bars.push(bar(row, median, words, Some(spread))?);
    }
    let each =
        format!("{} rounds of {} connections", text(&data["rounds"]), text(&data["connections"]));
    Ok(Chart {
        title: "A new connection through an allowlist".into(),
        subtitle: "microseconds to connect, send a byte, get it back and close; median, and where 80 of 100 lie".into(),
        bars: sorted(bars),
        notes: notes(data, &each)?,
    })
}

fn rows<'a>(data: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    data[key].as_array().ok_or_else(|| format!("there is no list {key} in the data").into())
}

fn number(row: &Value, key: &str) -> Result<f64> {
    row[key].as_f64().ok_or_else(|| format!("{}: there is no number {key}", row["name"]).into())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn bar(row: &Value, value: f64, text: String, spread: Option<(f64, f64)>) -> Result<Bar> {
    let name = row["name"].as_str().ok_or("a row has no name")?;
    let label = if name == "floor" { "namespaces alone" } else { name };
    Ok(Bar { label: label.to_owned(), value, text, spread, is_ours: name.starts_with("mcp") })
}

fn sorted(mut bars: Vec<Bar>) -> Vec<Bar> {
    bars.sort_by(|one, other| one.value.total_cmp(&other.value));
    bars
}

fn notes(data: &Value, how: &str) -> Result<Vec<String>> {
    let machine = &data["machine"];
    if machine.is_null() {
        return Err("the data does not say which machine it is from".into());
    }
    let on = format!(
        "Linux {}, {} processors, load {} at the start. Compare the bars of one run, not machines.",
        text(&machine["kernel"]),
        text(&machine["processors"]),
        text(&machine["load"]),
    );
    Ok(vec![how.to_owned(), on])
}
