//! `mcp stats`: what one sandbox uses now, and how much it may.

use mcp_sandbox::runs::NetworkTotals;

use crate::args;
use crate::commands::ps::{Packages, RunRow, age, find};
use crate::failure::Failure;
use crate::render;
use crate::render::to_json;

pub fn run(args: &args::Stats) -> Result<u8, Failure> {
    let run = find(&args.id)?;
    let row = RunRow::new(&run, &Packages::look());
    render::print(&if args.json { to_json(&row) + "\n" } else { text(&row) });
    Ok(0)
}

fn text(RunRow { name, record, stats }: &RunRow) -> String {
    let mut lines = vec![
        ("name", render::plain(name)),
        ("command", render::plain(&record.command.join(" "))),
        ("since", age(record.since)),
        ("launcher", record.launcher.to_string()),
    ];
    let of = |now: Option<String>, most: Option<String>, limit: Option<String>| {
        let now = now?;
        let most = most.map(|most| format!(", {most} at most")).unwrap_or_default();
        let limit = limit.map(|limit| format!(", limit {limit}")).unwrap_or_default();
        Some(format!("{now}{most}{limit}"))
    };
    let bytes = |count: Option<u64>| count.map(render::rounded_bytes);
    let number = |count: Option<u64>| count.map(|count| count.to_string());
    let seconds = |seconds: f64| format!("{seconds:.2} s");
    let memory = (stats.memory_bytes, stats.max_memory_bytes, stats.memory_limit_bytes);
    let memory = of(bytes(memory.0), bytes(memory.1), bytes(memory.2));
    let waited = stats.throttled_seconds.filter(|waited| *waited > 0.0);
    let waited = waited.map(|waited| format!(", {} held back", seconds(waited)));
    let cpu = stats.cpu_seconds.map(|used| seconds(used) + &waited.unwrap_or_default());
    let processes =
        of(number(stats.processes), number(stats.max_processes), number(stats.process_limit));
    for (name, value) in [("memory", memory), ("cpu", cpu), ("processes", processes)] {
        lines.push((name, value.unwrap_or_else(|| "not known".to_owned())));
    }
    if let Some(NetworkTotals { connections, bytes_out, bytes_in }) = stats.network {
        let (sent, received) = (render::rounded_bytes(bytes_out), render::rounded_bytes(bytes_in));
        let text = format!("{connections} connections, {sent} sent, {received} received");
        lines.push(("network", text));
    }
    if let Some(cgroup) = &record.cgroup {
        lines.push(("cgroup", render::plain(cgroup)));
    }
    let title = format!("{}\n", render::Paint::stdout().strong(record.id.as_str()));
    lines.iter().fold(title, |text, (name, value)| text + &format!("  {name:<10} {value}\n"))
}
