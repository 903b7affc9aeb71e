//! The table of what was measured.

use std::fmt;

use bench_common::Summary;
use serde_json::{Value, json};

use super::contenders::Entry;

struct Row {
    name: &'static str,
    outcome: Result<Summary, String>,
}

/// One row per contender, in the order of the entries; `bare` comes first.
pub struct Table(Vec<Row>);

impl Table {
    /// `summaries` belong to the ready entries, in their order.
    pub fn new(entries: &[Entry], summaries: Vec<Summary>) -> Self {
        let mut summaries = summaries.into_iter();
        let row = |entry: &Entry| match entry {
            Entry::Ready(contender) => {
                summaries.next().map(|it| Row { name: contender.name, outcome: Ok(it) })
            }
            Entry::Skipped { name, why } => Some(Row { name, outcome: Err(why.clone()) }),
        };
        Self(entries.iter().filter_map(row).collect())
    }

    fn median_of(&self, name: &str) -> Option<f64> {
        let row = self.0.iter().find(|row| row.name == name)?;
        row.outcome.as_ref().ok().map(|summary| summary.median)
    }

    /// The difference of the medians.
    fn overhead_of(&self, name: &str) -> Option<f64> {
        Some(self.median_of(name)? - self.median_of("bare")?)
    }

    /// Overhead as a part of bubblewrap's.
    pub fn ratio_of(&self, name: &str) -> Option<f64> {
        Some(self.overhead_of(name)? / self.overhead_of("bubblewrap")?)
    }

    pub fn to_json(&self) -> Value {
        let row = |row: &Row| match &row.outcome {
            Ok(summary) => json!({
                "name": row.name,
                "median_ms": summary.median,
                "p10_ms": summary.p10,
                "p90_ms": summary.p90,
                "overhead_ms": self.overhead_of(row.name),
                "ratio_to_bubblewrap": self.ratio_of(row.name),
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
            "{:<17}{:>9}{:>8}{:>8}{:>10}{:>15}",
            "", "median", "p10", "p90", "over bare", "to bubblewrap"
        )?;
        for Row { name, outcome } in &self.0 {
            match outcome {
                Err(why) => writeln!(out, "{name:<17}  skipped: {why}")?,
                Ok(Summary { median, p10, p90 }) => {
                    let shown = |value: Option<f64>, digits| match value {
                        Some(value) if *name != "bare" => format!("{value:.digits$}"),
                        _ => "-".to_owned(),
                    };
                    let over = shown(self.overhead_of(name), 3);
                    let ratio = shown(self.ratio_of(name), 2);
                    writeln!(
                        out,
                        "{name:<17}{median:>9.3}{p10:>8.3}{p90:>8.3}{over:>10}{ratio:>15}"
                    )?;
                }
            }
        }
        writeln!(out, "milliseconds; the last column is a ratio of overheads")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, median: f64) -> Row {
        Row { name, outcome: Ok(Summary { median, p10: median, p90: median }) }
    }

    #[test]
    fn ratios_compare_overheads_not_totals() {
        let table = Table(vec![row("bare", 1.0), row("bubblewrap", 5.0), row("mcp", 3.0)]);
        assert_eq!(table.ratio_of("mcp"), Some(0.5));
        assert_eq!(table.ratio_of("floor"), None);
    }

    #[test]
    fn a_skipped_row_has_its_reason_and_no_ratio() {
        let skipped = Row { name: "bubblewrap", outcome: Err("not installed".into()) };
        let table = Table(vec![row("bare", 1.0), skipped, row("mcp", 3.0)]);
        assert_eq!(table.ratio_of("mcp"), None);
        assert!(table.to_string().contains("bubblewrap         skipped: not installed"));
        assert_eq!(table.to_json()[1]["skipped"], "not installed");
    }
}
