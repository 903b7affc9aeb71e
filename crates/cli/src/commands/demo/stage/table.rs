//! The verdicts, as a table for people and as JSON for programs.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::attempt::Attempt;
use super::trial::AttemptResult;
use crate::render::Paint;
use crate::render::to_json;

const HEAD: [&str; 4] = ["attempt", "without sandbox", "with sandbox", "stopped by"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Stopped,
    NotStopped,
    /// It does not work without a sandbox either, so a refusal inside proves nothing.
    NotProven,
    Unclear,
}

pub struct Row {
    name: &'static str,
    bare: AttemptResult,
    inside: AttemptResult,
    stopped_by: &'static str,
}

impl Row {
    pub fn new(attempt: &Attempt, bare: AttemptResult, inside: AttemptResult) -> Row {
        Row { name: attempt.name, bare, inside, stopped_by: attempt.stopped_by }
    }

    fn verdict(&self) -> Verdict {
        match (&self.bare, &self.inside) {
            // Whatever happened outside: this must not be.
            (_, AttemptResult::Worked(_)) => Verdict::NotStopped,
            (_, AttemptResult::Unclear { .. }) => Verdict::Unclear,
            (AttemptResult::Worked(_), AttemptResult::Failed(_)) => Verdict::Stopped,
            (_, AttemptResult::Failed(_)) => Verdict::NotProven,
        }
    }

    fn conclusion(&self) -> &'static str {
        match self.verdict() {
            Verdict::Stopped => self.stopped_by,
            Verdict::NotStopped => "NOT STOPPED",
            Verdict::NotProven => "not proven: fails bare too",
            Verdict::Unclear => "unclear",
        }
    }
}

pub struct Table {
    rows: Vec<Row>,
    elapsed: Duration,
}

impl Table {
    pub fn new(rows: Vec<Row>, elapsed: Duration) -> Table {
        Table { rows, elapsed }
    }

    pub fn exit_code(&self) -> u8 {
        let bad = |row: &Row| matches!(row.verdict(), Verdict::NotStopped | Verdict::Unclear);
        u8::from(self.rows.iter().any(bad))
    }

    /// What servers said that ended for no good reason.
    pub fn complaints(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().flat_map(|row| [&row.bare, &row.inside]).filter_map(|seen| match seen {
            AttemptResult::Unclear { stderr, .. } if !stderr.is_empty() => Some(stderr.as_str()),
            _ => None,
        })
    }

    pub fn to_json(&self) -> String {
        let attempts: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                let stopped = row.verdict() == Verdict::Stopped;
                json!({
                    "attempt": row.name,
                    "without_sandbox": side(&row.bare),
                    "with_sandbox": side(&row.inside),
                    "verdict": row.verdict(),
                    "stopped_by": stopped.then_some(row.stopped_by),
                })
            })
            .collect();
        let mut text = to_json(&json!({
            "attempts": attempts,
            "stopped": self.stopped(),
            "total": self.rows.len(),
            "elapsed_ms": self.elapsed.as_millis() as u64,
        }));
        text.push('\n');
        text
    }

    pub fn to_text(&self, paint: Paint) -> String {
        let widths = self.widths();
        let head: String =
            HEAD.iter().zip(widths).map(|(title, width)| pad(title, width)).collect();
        let mut text = format!("{}\n", paint.strong(head.trim_end()));
        for row in &self.rows {
            let [name, bare, inside, by] =
                [row.name, words(&row.bare), words(&row.inside), row.conclusion()];
            let verdict = row.verdict();
            let bare = pad(bare, widths[1]);
            text += &pad(name, widths[0]);
            text += &match row.bare {
                AttemptResult::Worked(_) => bare,
                _ => paint.warn(&bare),
            };
            let inside = pad(inside, widths[2]);
            text += &match verdict {
                Verdict::Stopped => format!("{}{by}", paint.good(&inside)),
                Verdict::NotStopped => format!("{}{}", paint.bad(&inside), paint.bad(by)),
                _ => format!("{}{}", paint.warn(&inside), paint.warn(by)),
            };
            text.push('\n');
        }
        text
    }

    pub fn summary(&self, paint: Paint) -> String {
        let (stopped, total) = (self.stopped(), self.rows.len());
        let line = format!("{stopped} of {total} attempts stopped");
        let line = if self.exit_code() != 0 {
            paint.bad(&line)
        } else if stopped < total {
            paint.warn(&line)
        } else {
            paint.good(&line)
        };
        format!("{line} in {:.1} s\n", self.elapsed.as_secs_f64())
    }

    fn stopped(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict() == Verdict::Stopped).count()
    }

    fn widths(&self) -> [usize; 4] {
        let mut widths = HEAD.map(str::len);
        for row in &self.rows {
            let cells = [row.name, words(&row.bare), words(&row.inside), row.conclusion()];
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

fn pad(text: &str, width: usize) -> String {
    format!("{text:<width$}  ")
}

fn words(seen: &AttemptResult) -> &str {
    match seen {
        AttemptResult::Worked(text) | AttemptResult::Failed(text) => text,
        AttemptResult::Unclear { what, .. } => what,
    }
}

fn side(seen: &AttemptResult) -> serde_json::Value {
    json!({"succeeded": matches!(seen, AttemptResult::Worked(_)), "seen": words(seen)})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bare: AttemptResult, inside: AttemptResult) -> Row {
        Row { name: "try", bare, inside, stopped_by: "a wall" }
    }

    fn code(rows: Vec<Row>) -> u8 {
        Table::new(rows, Duration::ZERO).exit_code()
    }

    #[test]
    fn a_refusal_counts_only_where_the_act_works_bare() {
        let worked = || AttemptResult::Worked("did".into());
        let failed = || AttemptResult::Failed("ENOENT".into());
        let unclear = || AttemptResult::Unclear { what: "gone".into(), stderr: String::new() };
        for (bare, inside, verdict, exit) in [
            (worked(), failed(), Verdict::Stopped, 0),
            (failed(), failed(), Verdict::NotProven, 0),
            (unclear(), failed(), Verdict::NotProven, 0),
            (worked(), worked(), Verdict::NotStopped, 1),
            (failed(), worked(), Verdict::NotStopped, 1),
            (worked(), unclear(), Verdict::Unclear, 1),
        ] {
            let row = row(bare, inside);
            assert_eq!(row.verdict(), verdict);
            assert_eq!(row.conclusion() == "a wall", verdict == Verdict::Stopped);
            assert_eq!(code(vec![row]), exit);
        }
    }
}
