//! Order statistics and the table made of them. Times are heavy-tailed: medians, no means.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::contenders::Entry;

/// Milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub p10: f64,
    pub p90: f64,
}

impl Summary {
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |part: f64| {
            // Nearest rank; a benchmark has at least one round.
            let rank = (part * times.len() as f64).ceil() as usize;
            let time = times.get(rank.saturating_sub(1)).copied().unwrap_or_default();
            time.as_secs_f64() * 1e3
        };
        Self { median: at(0.5), p10: at(0.1), p90: at(0.9) }
    }
}

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
            "{:<12}{:>9}{:>8}{:>8}{:>10}{:>15}",
            "", "median", "p10", "p90", "over bare", "to bubblewrap"
        )?;
        for Row { name, outcome } in &self.0 {
            match outcome {
                Err(why) => writeln!(out, "{name:<12}  skipped: {why}")?,
                Ok(Summary { median, p10, p90 }) => {
                    let shown = |value: Option<f64>, digits| match value {
                        Some(value) if *name != "bare" => format!("{value:.digits$}"),
                        _ => "-".to_owned(),
                    };
                    let over = shown(self.overhead_of(name), 3);
                    let ratio = shown(self.ratio_of(name), 2);
                    writeln!(
                        out,
                        "{name:<12}{median:>9.3}{p10:>8.3}{p90:>8.3}{over:>10}{ratio:>15}"
                    )?;
                }
            }
        }
        writeln!(out, "milliseconds; the last column is a ratio of overheads")
    }
}

/// xorshift64*: enough to keep one contender from always following the same other one.
pub struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, median: f64) -> Row {
        Row { name, outcome: Ok(Summary { median, p10: median, p90: median }) }
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let summary = Summary::of((1..=10).rev().map(Duration::from_millis).collect());
        assert_eq!(summary, Summary { median: 5.0, p10: 1.0, p90: 9.0 });
        let one = Summary::of(vec![Duration::from_millis(3)]);
        assert_eq!(one, Summary { median: 3.0, p10: 3.0, p90: 3.0 });
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
        assert!(table.to_string().contains("bubblewrap    skipped: not installed"));
        assert_eq!(table.to_json()[1]["skipped"], "not installed");
    }

    #[test]
    fn shuffling_keeps_every_item_and_moves_some() {
        let mut random = Random::default();
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut items = [0, 1, 2, 3];
            random.shuffle(&mut items);
            orders.insert(items);
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3]);
        }
        assert_eq!(orders.len(), 24);
    }
}
