//! The guard's verdict on a command.

use std::ops::Range;

use serde::Serialize;

/// Ordered by weight: the heaviest finding decides.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Decision {
    /// Nothing is known against it.
    Allow,
    /// Some of it could not be read. Not safe: what it means is the caller's policy.
    Unknown,
    /// A person should say.
    Ask,
    /// It must not run.
    Refuse,
}

/// One reason, and the text it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the rule.
    pub rule: String,
    /// What the rule says.
    pub decision: Decision,
    /// Bytes of the judged text, on character boundaries.
    pub span: Range<usize>,
    /// For the model that wrote the command: what is wrong and what to do instead.
    pub model: String,
    /// For the person who watches it.
    pub human: String,
}

/// What the guard says about a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The heaviest of what its rules say.
    pub decision: Decision,
    /// The heaviest first; among equals as they stand in the text. Those that allow are notes.
    pub findings: Vec<Finding>,
}

impl Verdict {
    pub(crate) fn new(text: &str, mut findings: Vec<Finding>) -> Verdict {
        for finding in &mut findings {
            finding.span = on_boundaries(text, finding.span.clone());
        }
        findings.sort_by(|a, b| {
            (b.decision, a.span.start, a.span.end, &a.rule).cmp(&(
                a.decision,
                b.span.start,
                b.span.end,
                &b.rule,
            ))
        });
        findings.dedup_by(|a, b| a.rule == b.rule && a.span == b.span);
        let decision = findings.first().map_or(Decision::Allow, |finding| finding.decision);
        Verdict { decision, findings }
    }

    /// The finding that decided; none where the command is allowed.
    pub fn reason(&self) -> Option<&Finding> {
        self.findings.first().filter(|finding| finding.decision != Decision::Allow)
    }
}

fn on_boundaries(text: &str, span: Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}
