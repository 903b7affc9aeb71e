//! `mcp doctor`: what this machine can enforce. Every line is the result of trying it: a forbidden
//! act is done outside, where it must work, and in a sandbox, where it must not; a limit is passed
//! without its flag and held with it. Privileges are read back, the timeout is seen to kill.

mod clean;
mod full;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_advice;
mod macos;
mod shadow;
mod trial;
mod windows;

use mcp_sandbox::{Control, Fact, platform};
use serde::Serialize;

use crate::args;
use crate::failure::Failure;
use crate::render::to_json;
use crate::render::{self, Paint};

/// The outcome of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Tried, and it holds.
    Holds,
    /// Not there, or less than it could be; the default policy does not need it.
    Less,
    /// The default policy needs it, and it does not hold.
    Fails,
}

#[derive(Debug, Clone, Serialize)]
pub struct Line {
    pub topic: String,
    pub mark: Mark,
    pub text: String,
}

impl Line {
    pub fn new(topic: impl Into<String>, mark: Mark, text: impl Into<String>) -> Line {
        Line { topic: topic.into(), mark, text: text.into() }
    }

    /// What a try has shown; `otherwise` where it failed.
    fn tried(topic: &str, fact: &Fact, otherwise: Mark, works: &str) -> Line {
        match fact {
            Fact::Works => Line::new(topic, Mark::Holds, works),
            Fact::Fails { why } => Line::new(topic, otherwise, format!("does not hold: {why}")),
            Fact::Assumed => Line::new(topic, Mark::Less, "not tried"),
        }
    }
}

/// What was found out about a machine, in lines.
trait Findings {
    fn mechanisms(&self) -> Vec<Line>;
    fn recommendations(&self, starts: bool) -> Vec<String>;

    /// Whether runs do without namespaces here, and what took their place leaves something open.
    fn is_plain(&self) -> bool {
        false
    }

    /// Whether a part of a granted directory can be closed.
    fn closes_parts(&self) -> bool {
        !self.is_plain()
    }

    /// Whether some of a boundary is left open, and told.
    fn leaves_open(&self) -> bool {
        false
    }
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    host: platform::Facts,
    mechanisms: Vec<Line>,
    controls: Vec<Line>,
    recommendations: Vec<String>,
    default_policy_enforced: bool,
}

pub fn run(args: args::Doctor) -> Result<u8, Failure> {
    if args.clean {
        return clean::run(args.json);
    }
    let host = platform::probe_host()?;
    let mechanisms = host.mechanisms();
    if args.full || args.only.is_some() {
        return full::run(mechanisms, args.only.as_deref().unwrap_or_default(), args.json);
    }
    let controls = trial::controls(&host)?;
    let starts = controls.iter().all(|line| line.mark != Mark::Fails);
    // Every boundary, and all of it: what a host without namespaces leaves open is not that.
    let default_policy_enforced = starts && !host.leaves_open();
    let mut recommendations = host.recommendations(starts);
    recommendations.extend(shadow::advice());
    let diagnosis =
        Diagnosis { host, mechanisms, controls, recommendations, default_policy_enforced };
    if args.json {
        render::print(&(to_json(&diagnosis) + "\n"));
    } else {
        render::print(&text(&diagnosis));
    }
    Ok(if starts { 0 } else { 1 })
}

fn text(diagnosis: &Diagnosis) -> String {
    let paint = Paint::stdout();
    let mut text = String::new();
    let mut section = |title: &str, lines: &[Line]| {
        text += &format!("{}\n", paint.strong(title));
        for Line { topic, mark, text: what } in lines {
            let mark = match mark {
                Mark::Holds => paint.good("[✓]"),
                Mark::Less => paint.warn("[!]"),
                Mark::Fails => paint.bad("[⚠]"),
            };
            text += &format!("{mark} {topic:<18} {what}\n");
        }
    };
    section("This machine, each mechanism tried in a throw-away process", &diagnosis.mechanisms);
    section(
        "The sandbox: boundaries tried outside and inside, limits inside without and with the flag",
        &diagnosis.controls,
    );
    text += &format!("{}\n", paint.strong("Recommendation"));
    for recommendation in &diagnosis.recommendations {
        text += &format!("  {recommendation}\n");
    }
    text
}

pub fn topic(control: Control) -> String {
    control.name().replace('_', " ")
}
