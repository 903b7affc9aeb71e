//! The table of what was measured.

use std::fmt;

use bench_common::Summary;
use serde_json::{Value, json};

use super::contenders::Entry;

#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// In milliseconds, as all summaries are.
    pub connection: Summary,
    pub bytes_per_second: f64,
}

/// What was measured, or why not.
pub type Outcome = Result<Measured, String>;

struct Row {
    name: &'static str,
    outcome: Outcome,
}

/// One row per contender, in the order of the entries; `bare` comes first.
pub struct Table(Vec<Row>);

impl Table {
    /// `outcomes` belong to the ready entries, in their order.
    pub fn new(entries: &[Entry], outcomes: Vec<Outcome>) -> Self {
        let mut outcomes = outcomes.into_iter();
        let row = |entry: &Entry| match entry {
            Entry::Ready(contender) => {
                outcomes.next().map(|outcome| Row { name: contender.name, outcome })
            }
            Entry::Skipped { name, why } => Some(Row { name, outcome: Err(why.clone()) }),
        };
        Self(entries.iter().filter_map(row).collect())
    }

    fn of(&self, name: &str) -> Option<Measured> {
        self.0.iter().find(|row| row.name == name)?.outcome.as_ref().ok().copied()
    }

    /// The median of a new connection, in those of a bare one.
    pub fn connection_ratio(&self, name: &str) -> Option<f64> {
        Some(self.of(name)?.connection.median / self.of("bare")?.connection.median)
    }

    pub fn throughput_ratio(&self, name: &str) -> Option<f64> {
        Some(self.of(name)?.bytes_per_second / self.of("bare")?.bytes_per_second)
    }

    pub fn to_json(&self) -> Value {
        let row = |row: &Row| match &row.outcome {
            Ok(Measured { connection, bytes_per_second }) => json!({
                "name": row.name,
                "connection_us": connection.median * 1e3,
                "connection_p10_us": connection.p10 * 1e3,
                "connection_p90_us": connection.p90 * 1e3,
                "connection_ratio": self.connection_ratio(row.name),
                "bytes_per_second": bytes_per_second,
                "throughput_ratio": self.throughput_ratio(row.name),
            }),
            Err(why) => json!({ "name": row.name, "skipped": why }),
        };
        self.0.iter().map(row).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{:<14}{:>9}{:>9}{:>9}{:>9}{:>12}{:>9}",
            "", "connect", "p10", "p90", "to bare", "MB/s", "to bare"
        )?;
        for Row { name, outcome } in &self.0 {
            match outcome {
                Err(why) => writeln!(out, "{name:<14}  skipped: {why}")?,
                Ok(Measured { connection: Summary { median, p10, p90 }, bytes_per_second }) => {
                    let ratio =
                        |value: Option<f64>| value.map_or("-".into(), |it| format!("{it:.2}"));
                    writeln!(
                        out,
                        "{name:<14}{:>9.1}{:>9.1}{:>9.1}{:>9}{:>12.0}{:>9}",
                        median * 1e3,
                        p10 * 1e3,
                        p90 * 1e3,
                        ratio(self.connection_ratio(name)),
                        bytes_per_second / 1e6,
                        ratio(self.throughput_ratio(name)),
                    )?;
                }
            }
        }
        writeln!(out, "microseconds for connect, a byte there and back, close; medians\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, median: f64, bytes_per_second: f64) -> Row {
        let connection = Summary { median, p10: median, p90: median };
        Row { name, outcome: Ok(Measured { connection, bytes_per_second }) }
    }

    #[test]
    fn ratios_are_to_bare() {
        let skipped = Row { name: "pasta", outcome: Err("not installed".into()) };
        let table = Table(vec![row("bare", 2.0, 8e9), row("mcp", 3.0, 4e9), skipped]);
        assert_eq!(table.connection_ratio("mcp"), Some(1.5));
        assert_eq!(table.throughput_ratio("mcp"), Some(0.5));
        assert_eq!(table.connection_ratio("pasta"), None);
        assert!(table.to_string().contains("pasta           skipped: not installed"));
    }
}
