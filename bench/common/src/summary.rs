//! Order statistics. Times are heavy-tailed: medians, no means.

use std::time::Duration;

/// In milliseconds, or in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub p10: f64,
    pub p90: f64,
}

impl Summary {
    pub fn of(times: Vec<Duration>) -> Self {
        Self::of_values(times.iter().map(|time| time.as_secs_f64() * 1e3).collect())
    }

    pub fn of_values(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| {
            // Nearest rank; a benchmark has at least one round.
            let rank = (part * values.len() as f64).ceil() as usize;
            values.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { median: at(0.5), p10: at(0.1), p90: at(0.9) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let summary = Summary::of((1..=10).rev().map(Duration::from_millis).collect());
        assert_eq!(summary, Summary { median: 5.0, p10: 1.0, p90: 9.0 });
        let one = Summary::of(vec![Duration::from_millis(3)]);
        assert_eq!(one, Summary { median: 3.0, p10: 3.0, p90: 3.0 });
    }
}
