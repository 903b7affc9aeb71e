//! From series to ratios. A round is compared with the bare one of the same round, and the median
//! of these ratios is shown: what disturbs a round disturbs all settings in it.

use std::fmt::Write;

use bench_common::Summary;
use serde_json::{Value, json};

use super::act::Act;

/// Nanoseconds of one setting, round by round.
pub struct Series {
    pub name: &'static str,
    pub values: Vec<f64>,
}

impl Series {
    pub fn new(name: &'static str) -> Series {
        Series { name, values: Vec::new() }
    }
}

pub struct Row {
    pub act: Act,
    series: Vec<Series>,
}

impl Row {
    pub fn new(act: Act, series: Vec<Series>) -> Row {
        Row { act, series }
    }

    fn values(&self, name: &str) -> Option<&[f64]> {
        self.series.iter().find(|it| it.name == name).map(|it| it.values.as_slice())
    }

    fn median_of(&self, name: &str) -> Option<f64> {
        Some(Summary::of_values(self.values(name)?.to_vec()).median)
    }

    fn paired(&self, name: &str, with: &str, compare: fn(f64, f64) -> f64) -> Option<f64> {
        let pairs = self.values(name)?.iter().zip(self.values(with)?);
        Some(Summary::of_values(pairs.map(|(one, other)| compare(*one, *other)).collect()).median)
    }

    pub fn ratio_of(&self, name: &str) -> Option<f64> {
        self.paired(name, "bare", |one, bare| one / bare)
    }

    /// What mcp takes beyond a filter that does nothing: the part that is ours.
    fn over_filter(&self) -> Option<f64> {
        self.paired("mcp", "filter", |mcp, filter| mcp - filter)
    }

    pub fn to_json(&self) -> Value {
        let setting = |it: &Series| {
            json!({
                "name": it.name,
                "median_ns": self.median_of(it.name),
                "ratio_to_bare": self.ratio_of(it.name),
            })
        };
        let settings: Vec<_> = self.series.iter().map(setting).collect();
        json!({ "act": self.act.name(), "settings": settings, "over_filter_ns": self.over_filter() })
    }
}

pub fn table(rows: &[Row], rounds: u32) -> String {
    let shown = |value: Option<f64>, digits| match value {
        Some(value) => format!("{value:.digits$}"),
        None => "-".to_owned(),
    };
    let mut text = format!(
        "{rounds} rounds\n\n{:<17}{:>12}{:>11}{:>14}{:>8}{:>14}{:>13}\n",
        "", "bare ns", "filter ×", "bubblewrap ×", "mcp ×", "mcp - filter", "mcp learn ×"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<17}{:>12}{:>11}{:>14}{:>8}{:>14}{:>13}",
            row.act.name(),
            shown(row.median_of("bare"), 0),
            shown(row.ratio_of("filter"), 3),
            shown(row.ratio_of("bubblewrap"), 3),
            shown(row.ratio_of("mcp"), 3),
            shown(row.over_filter(), 0),
            shown(row.ratio_of("mcp learn"), 2),
        );
    }
    text + "\nmedians; ×: times bare in the same round; filter: bare with a filter of one instruction\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let series = |name, values: &[f64]| Series { name, values: values.to_vec() };
        Row::new(
            Act::Stat,
            vec![
                series("bare", &[100.0, 200.0, 100.0]),
                series("filter", &[110.0, 220.0, 110.0]),
                // The second round was slow for all.
                series("mcp", &[120.0, 240.0, 120.0]),
            ],
        )
    }

    #[test]
    fn rounds_are_compared_with_themselves() {
        assert_eq!(row().ratio_of("mcp"), Some(1.2));
        assert_eq!(row().over_filter(), Some(10.0));
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        assert_eq!(row().ratio_of("bubblewrap"), None);
        let table = table(&[row()], 3);
        assert!(
            table.contains("stat                      100      1.100             -   1.200"),
            "{table}"
        );
    }
}
