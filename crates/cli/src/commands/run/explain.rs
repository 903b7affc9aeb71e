//! `--explain`: four lines that a person reads, then the controls; with `--steps` every step of the plan.

use std::path::Path;

use mcp_policy::{NetRule, NetworkMode, Policy, Subprocess};
use mcp_sandbox::{Describe, Home, Intent, Plan, Request, RunSpec};
use serde::Serialize;

use crate::args::Starting;
use crate::failure::Failure;
use crate::render::to_json;
use crate::render::{self, Paint};

/// What a command could do, in a person's words.
pub struct Told {
    read: String,
    write: String,
    reach: String,
    sees: String,
    secrets: Vec<String>,
    browser: Option<String>,
}

impl Told {
    /// For this system: with what was found here. Secrets are by name, and were not fetched.
    pub fn of(request: &Request, asked: Told) -> Told {
        let kept = match &request.home {
            Home::Ephemeral => None,
            Home::Kept(path) => Some(path.as_path()),
        };
        let shown = request.shown.iter().map(|place| place.path.as_path());
        let names = request.env.iter().map(|(name, _)| name.to_string_lossy().into_owned());
        let mut told = Told::new(&request.policy, shown.collect(), kept, Some(names.collect()));
        (told.secrets, told.browser) = (asked.secrets, asked.browser);
        told
    }

    /// For another system: what is found there is not known here.
    pub fn of_spec(spec: &RunSpec) -> Told {
        Told::new(&spec.policy, Vec::new(), spec.home.as_deref(), None)
    }

    /// What `--browser` gives.
    pub fn with_browser(self, browser: Option<String>) -> Told {
        Told { browser, ..self }
    }

    fn new(
        policy: &Policy,
        shown: Vec<&Path>,
        home: Option<&Path>,
        names: Option<Vec<String>>,
    ) -> Told {
        let files = &policy.filesystem;
        let shown = shown.into_iter().filter(|path| !path.starts_with("/usr")).map(render::path);
        let granted = files.read.iter().map(|path| render::path(&path.value));
        let mut read = vec!["the system's programs and libraries".to_owned()];
        read.extend(shown.chain(granted));
        read.dedup();
        let denied: Vec<String> = files.deny.iter().map(|path| render::path(&path.value)).collect();
        let mut read = list(read);
        if !denied.is_empty() {
            read += &format!("; never {}", list(denied));
        }
        let mut write: Vec<String> =
            files.write.iter().map(|path| render::path(&path.value)).collect();
        write.push(match home {
            Some(home) => format!("a HOME that is kept in {}", render::path(home)),
            None => "a /tmp and a HOME of its own, gone after the run".to_owned(),
        });
        let secrets = policy.env.secrets.keys().map(ToString::to_string).collect();
        let (reach, sees) = (reach(policy), sees(policy, names));
        Told { read, write: list(write), reach, sees, secrets, browser: None }
    }
}

fn reach(policy: &Policy) -> String {
    let network = &policy.network;
    if network.mode.value == NetworkMode::Host {
        return "all that this machine can reach (network = \"host\")".to_owned();
    }
    let mut all: Vec<String> = network.allow.iter().map(|rule| in_words(&rule.value)).collect();
    all.extend(network.unix.iter().map(|path| format!("the socket {}", render::path(&path.value))));
    let mut text = if all.is_empty() { "nothing: no network".to_owned() } else { list(all) };
    if !network.listen.is_empty() {
        let ports = network.listen.iter().map(|port| port.value.to_string()).collect();
        text += &format!("; this machine reaches its port {}", list(ports));
    }
    text
}

/// A rule as it is written, and what it means where one word means much.
fn in_words(rule: &NetRule) -> String {
    match rule.meaning() {
        Some(meaning) => format!("{rule} ({meaning})"),
        None => rule.to_string(),
    }
}

fn sees(policy: &Policy, names: Option<Vec<String>>) -> String {
    let mut all = names.unwrap_or_else(|| {
        let passed = policy.env.allow.iter().map(|pattern| pattern.value.to_string());
        passed.chain(policy.env.set.keys().map(ToString::to_string)).collect()
    });
    all.sort();
    let mut text = format!("the variables {}", list(all));
    text += "; none of your other processes";
    if policy.process.subprocess.value == Subprocess::Refused {
        text += "; starts no process of its own";
    }
    text
}

fn secrets(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; the secrets {}", names.join(", ")) }
}

fn list(all: Vec<String>) -> String {
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

pub fn print<S: Describe + Serialize>(
    plan: &Plan<S>,
    told: &Told,
    starting: &Starting,
) -> Result<u8, Failure> {
    let text = match starting.json {
        true => to_json(plan) + "\n",
        false => summary(told) + &controls(plan, starting.steps) + &attachments(plan, starting),
    };
    render::print(&text);
    Ok(0)
}

fn summary(told: &Told) -> String {
    let paint = Paint::stdout();
    let line = |name: &str, text: &str| {
        format!("{} {}\n", paint.strong(&format!("{name:<10}")), render::plain(text))
    };
    line("Can read", &told.read)
        + &line("Can write", &told.write)
        + &line("Can reach", &told.reach)
        + &line("Sees", &[told.sees.as_str(), &secrets(&told.secrets)].concat())
        + &told.browser.as_ref().map_or_else(String::new, |browser| line("Browser", browser))
}

fn controls<S: Describe>(plan: &Plan<S>, with_steps: bool) -> String {
    let paint = Paint::stdout();
    let mut text = format!("\n{}\n", paint.strong("Controls"));
    for (control, intent) in &plan.controls {
        let name = format!("{control:<18}");
        text += &match intent {
            Intent::Enforce { by } => format!("  {} {name} {by}\n", paint.good("[✓]")),
            Intent::Partial { by, missing, .. } => {
                format!("  {} {name} {by}\n      {:<18} {missing}\n", paint.warn("[!]"), "")
            }
            Intent::Unavailable { why, remedy } => {
                format!("  {} {name} {why}\n      {:<18} {remedy}\n", paint.bad("[⚠]"), "")
            }
            Intent::NotRequested => format!("  {} {name} not asked for\n", paint.faint("[ ]")),
            // The library may learn another status before this program does.
            other => format!("  {} {name} {other:?}\n", paint.warn("[?]")),
        };
    }
    if !with_steps {
        return text + &paint.faint("(--explain --steps shows every step)") + "\n";
    }
    text += &format!("{}\n", paint.strong("Steps"));
    for (number, planned) in (1..).zip(&plan.steps) {
        let stage = planned.step.stage();
        let step = render::plain(&planned.step.to_string());
        text += &format!("  {number:>3}  {stage:<9} {step}\n");
    }
    text
}

/// A profile or filter, whole.
fn attachments<S: Describe>(plan: &Plan<S>, starting: &Starting) -> String {
    let paint = Paint::stdout();
    let attached = plan.steps.iter().filter(|_| starting.steps);
    attached
        .filter_map(|planned| planned.step.attachment())
        .map(|(title, attachment)| format!("{}\n{attachment}", paint.strong(title)))
        .collect()
}
