//! `mcp doctor`: what this machine can enforce. Every line is the result of trying it: a forbidden
//! act is done outside, where it must work, and in a sandbox, where it must not; a limit is passed
//! without its flag and held with it. Privileges are read back, the timeout is seen to kill.

mod advice;
mod full;
mod limits;
mod macos;
mod shadow;
mod trial;
mod windows;

use mcp_sandbox::{Control, Fact, LinuxFacts, platform};
use serde::Serialize;

use crate::args;
use crate::commands::policy::to_json;
use crate::failure::Failure;
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

impl Findings for LinuxFacts {
    fn mechanisms(&self) -> Vec<Line> {
        mechanisms(self)
    }

    fn recommendations(&self, starts: bool) -> Vec<String> {
        advice::recommendations(self, starts, self.leaves_open())
    }

    fn is_plain(&self) -> bool {
        is_plain(self)
    }

    fn leaves_open(&self) -> bool {
        is_plain(self) || !self.own_proc.usable()
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
    let host = platform::probe_host()?;
    let mechanisms = host.mechanisms();
    if args.full {
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

fn mechanisms(host: &LinuxFacts) -> Vec<Line> {
    let needed = |topic: &str, fact: &Fact, works: &str| match fact {
        Fact::Works => Line::new(topic, Mark::Holds, works),
        Fact::Fails { why } => Line::new(topic, Mark::Fails, format!("refused: {why}")),
        Fact::Assumed => Line::new(topic, Mark::Less, "not tried"),
    };
    let replaced = |topic: &str, fact: &Fact, works: &str, instead: &str| match fact {
        Fact::Fails { why } if has_walls(host) => {
            Line::new(topic, Mark::Less, format!("refused: {why}; {instead}"))
        }
        fact => needed(topic, fact, works),
    };
    let mut lines = vec![
        Line::new(
            "system",
            Mark::Holds,
            format!("{} {} on {}", host.system, host.kernel, host.architecture),
        ),
        replaced(
            "namespaces",
            &host.namespaces,
            "user, mount, pid, ipc, uts and cgroup in one step, without privilege",
            "Landlock and a stricter filter take their place",
        ),
    ];
    if host.namespaces.usable() {
        lines.extend([
            replaced(
                "private root",
                &host.private_root,
                "pivot_root with a /dev of its own",
                "Landlock takes its place",
            ),
            replaced(
                "own /proc",
                &host.own_proc,
                "of the sandbox's processes alone",
                "the host's is shown, and Landlock closes it",
            ),
            replaced(
                "own network",
                &host.network_namespace,
                "a network namespace with nothing in it",
                "the filter refuses every socket",
            ),
        ]);
    }
    if host.caller.is_root() {
        lines.push(match &host.mapped_trees {
            Fact::Fails { why } => {
                Line::new("owner mapping", Mark::Less, format!("refused: {why}"))
            }
            _ => Line::new(
                "owner mapping",
                Mark::Holds,
                "started as root: files keep their owner outside",
            ),
        });
    }
    lines.push(needed("seccomp", &host.seccomp, "a filter was accepted and refused a call"));
    lines.push(match host.landlock_abi {
        0 if is_plain(host) => Line::new("landlock", Mark::Fails, "not offered by this kernel"),
        0 => Line::new("landlock", Mark::Less, "not offered by this kernel; the mounts hold alone"),
        1 if !is_plain(host) => Line::new(
            "landlock",
            Mark::Less,
            "version 1 is not used, it refuses to move files between directories; the mounts \
             hold alone",
        ),
        abi => {
            let place = match is_plain(host) {
                true => "the wall around files and processes of every run",
                false => "behind the mounts of every run",
            };
            let text = format!("version {abi}, a file was closed to a process; {place}");
            Line::new("landlock", Mark::Holds, text)
        }
    });
    lines.push(cgroup(host));
    lines
}

/// Whether a run here has neither namespaces nor a root of its own.
fn is_plain(host: &LinuxFacts) -> bool {
    !host.namespaces.usable() || !host.private_root.usable()
}

/// What stands in for namespaces.
fn has_walls(host: &LinuxFacts) -> bool {
    host.landlock_abi > 0 && host.seccomp.usable()
}

/// Made in a child and removed again; the limits in it are tried below.
fn cgroup(host: &LinuxFacts) -> Line {
    let facts = &host.cgroup;
    let topic = "cgroups v2";
    match (&facts.held, &facts.mount) {
        (Some(held), Some(mount)) => Line::new(
            topic,
            Mark::Holds,
            format!(
                "at {}, one of its own was made ({}) with {}",
                mount.display(),
                held.means.name(),
                held.controllers.join(", ")
            ),
        ),
        (_, mount) => {
            let at = mount.as_ref().map(|at| format!("at {}, ", at.display())).unwrap_or_default();
            let why = facts.why_not.as_deref().unwrap_or("not tried");
            Line::new(topic, Mark::Less, format!("{at}not used: {why}"))
        }
    }
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
