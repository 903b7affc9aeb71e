//! One line of the log.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use mcp_package::{Digest, Reference};
use mcp_policy::Policy;
use mcp_sandbox::{Ending, Report, Status, Usage};
use serde::{Deserialize, Serialize};

/// The most refusals that an entry names.
const MOST_BLOCKED: usize = 50;
/// Of an agent's program: longer names are none.
const LONGEST_NAME: usize = 40;
const LONGEST_SCRIPT: usize = 80;
/// How scripts end.
const SCRIPTS: [&str; 12] =
    ["py", "js", "mjs", "cjs", "ts", "mts", "sh", "rb", "pl", "php", "lua", "jar"];
/// The most rules that an entry names.
const MOST_RULES: usize = 10;
/// Shorter ones are in every other name.
const SHORTEST_HIDDEN: usize = 4;

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct What {
    /// A package's reference; none for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The program of a command alone: arguments may hold anything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The file name of the script that an interpreter was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub script: String,
    /// `exec` for the command of an agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verb: String,
    /// Of the effective policy in its one spelling; secrets are references there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Start,
    End {
        exit_code: u8,
        /// `exited`, `signaled`, `timeout`, `memory_limit`.
        how: String,
        usage: Box<Usage>,
        /// How many controls are enforced, partly enforced, missing; and which are not enforced.
        controls: BTreeMap<String, u64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gaps: Vec<String>,
        /// What was tried on the network and refused, and how often.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        blocked: BTreeMap<String, u64>,
        /// New processes that were refused.
        #[serde(default, skip_serializing_if = "is_zero")]
        blocked_processes: u64,
        /// Rules of the guard that spoke, and let it run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<String>,
        /// What the hints after a failure were about, each by one of our own words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hints: Vec<String>,
    },
    Refused {
        exit_code: u8,
        /// A word for the reason: messages may quote what people wrote.
        why: String,
        /// Rules of the guard that spoke, the one that decided first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<String>,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Seconds since 1970, UTC.
    pub time: f64,
    pub pid: u32,
    #[serde(flatten)]
    pub what: What,
    #[serde(flatten)]
    pub event: Event,
}

/// Whether the word is in what was run: its reference, its program, `exec`.
pub fn names(entry: &Entry, word: &str) -> bool {
    let what = &entry.what;
    what.reference.as_deref().is_some_and(|reference| reference.contains(word))
        || what.program.contains(word)
        || what.script.contains(word)
        || what.verb == word
}

impl What {
    /// Of what a person typed: a package, or else the first word of a command. What is neither may
    /// be anything, a password pasted into the wrong window as well.
    pub fn new(reference: Option<&OsStr>, command: &[OsString]) -> What {
        let short = |text: &str| text.chars().take(300).collect::<String>();
        let known = |text: &OsStr| {
            let text = text.to_str()?;
            text.parse::<Reference>().is_ok().then(|| short(text))
        };
        let command = if reference.is_none() { command } else { &[] };
        let name = |program: &OsString| {
            let name =
                Path::new(program).file_name().unwrap_or(program.as_os_str()).to_string_lossy();
            short(name.split(['=', ' ', '\t', '\n']).next().unwrap_or_default())
        };
        What {
            reference: reference.and_then(known),
            digest: None,
            program: command.first().map(name).unwrap_or_default(),
            script: script(command).unwrap_or_default(),
            verb: String::new(),
            policy: None,
        }
    }

    /// Of a command of an agent, which may be a whole text for a shell: the first word, if it can be nothing but the
    /// name of a program. An assignment, a quoted word or what looks like a credential is not told.
    pub fn exec(command: &[OsString]) -> What {
        let first = command.first().and_then(|text| text.to_str()).unwrap_or_default();
        let ends = |c: char| c.is_whitespace() || ";|&()<>".contains(c);
        let text = first;
        let first = text.split(ends).find(|word| !word.is_empty()).unwrap_or_default();
        // A redirection before the program: the word is a file's name, or a descriptor's number.
        let before = text.split(first).next().unwrap_or_default();
        let is_number = !first.is_empty() && first.chars().all(|c| c.is_ascii_digit());
        let first = if before.contains(['<', '>']) || is_number { "" } else { first };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._+-/".contains(c);
        let name = first.rsplit('/').next().unwrap_or_default();
        let is_secret = || mcp_guard::environment::judge("WORD", name).is_some();
        let is_told = first.chars().all(is_name) && name.len() <= LONGEST_NAME && !is_secret();
        let program = if is_told { name.to_owned() } else { String::new() };
        let verb = "exec".to_owned();
        What { reference: None, digest: None, program, script: String::new(), verb, policy: None }
    }

    pub fn policy(&mut self, policy: &Policy) {
        let text = serde_json::to_vec(policy).unwrap_or_default();
        self.policy = Some(Digest::of(&text));
    }
}

impl Event {
    /// `hidden` are values that must not be there: a command may try to send them as a host's name.
    pub fn end(report: &Report, hidden: &[String]) -> Event {
        let how = match &report.ending {
            Ending::NotStarted(_) => {
                return Event::Refused {
                    exit_code: report.exit_code,
                    why: "not_started".into(),
                    rules: rules(report),
                };
            }
            ending => word(ending),
        };
        let mut controls = BTreeMap::new();
        let mut gaps = Vec::new();
        for (control, status) in &report.controls {
            let word = match status {
                Status::Enforced { .. } => "enforced",
                Status::Partial { .. } => "partial",
                Status::Unavailable { .. } => "unavailable",
                Status::NotRequested => "not_requested",
                _ => "unknown",
            };
            *controls.entry(word.to_owned()).or_insert(0) += 1;
            if matches!(status, Status::Partial { .. } | Status::Unavailable { .. }) {
                gaps.push(control.to_string());
            }
        }
        Event::End {
            exit_code: report.exit_code,
            how,
            usage: Box::new(report.usage.clone()),
            controls,
            gaps,
            blocked: blocked(report, hidden),
            blocked_processes: report.blocked_processes,
            rules: rules(report),
            hints: Vec::new(),
        }
    }

    /// With what the hints were about.
    pub fn hinted(mut self, about: &[&'static str]) -> Event {
        if let Event::End { hints, .. } = &mut self {
            *hints = about.iter().map(|&word| word.to_owned()).collect();
        }
        self
    }
}

/// The script of an interpreter, by its file name: the first argument that ends as one and is a file here. Anything else
/// may be a password.
fn script(command: &[OsString]) -> Option<String> {
    let is_script = |word: &&OsString| {
        let path = Path::new(word);
        let ending = path.extension().and_then(OsStr::to_str);
        ending.is_some_and(|ending| SCRIPTS.contains(&ending)) && path.is_file()
    };
    let name = Path::new(command.iter().skip(1).find(is_script)?).file_name()?.to_str()?;
    (name.len() <= LONGEST_SCRIPT).then(|| name.to_owned())
}

/// The names of the guard's rules: none holds anything of the command.
pub fn rules(report: &Report) -> Vec<String> {
    let spoken = report.guard.iter().flat_map(|judged| &judged.rules);
    let mut rules: Vec<String> = Vec::new();
    for rule in spoken {
        let name: String = rule.chars().take(60).collect();
        if rules.len() < MOST_RULES && !rules.contains(&name) {
            rules.push(name);
        }
    }
    rules
}

fn blocked(report: &Report, hidden: &[String]) -> BTreeMap<String, u64> {
    let mut blocked = BTreeMap::new();
    let refused = report.network.iter().flat_map(|network| &network.refused);
    for (to, refusal) in refused.take(MOST_BLOCKED) {
        // A name has no capitals, and is in parts where it is long.
        let plain = to.to_lowercase().replace('.', "");
        let holds = |value: &String| {
            let value = value.to_lowercase().replace('.', "");
            value.len() >= SHORTEST_HIDDEN && plain.contains(&value)
        };
        let to = if hidden.iter().any(holds) { "(holds a secret)" } else { to };
        *blocked.entry(to.to_owned()).or_insert(0) += refusal.times;
    }
    blocked
}

/// The ending's name in the report's JSON, without its number.
fn word(ending: &Ending) -> String {
    match serde_json::to_value(ending) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(serde_json::Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use mcp_policy::{Layer, Policy};
    use mcp_sandbox::{Control, NetworkUse, RefusedDestination};
    use proptest::prelude::*;

    use super::*;

    /// A report with a secret wherever somebody's words can be.
    fn report(secret: &str, ending: Ending) -> Report {
        let mut report = Report::unplanned(vec!["sh".into(), secret.into()], secret.into(), 1);
        report.ending = ending;
        let status =
            Status::Partial { by: secret.into(), missing: secret.into(), seen: Vec::new() };
        report.controls.insert(Control::Network, status);
        let mut refusal = RefusedDestination::default();
        (refusal.times, refusal.why, refusal.flag) = (2, secret.into(), Some(secret.into()));
        let mut network = NetworkUse::default();
        network.refused = [(format!("{}.evil.example:443", secret.to_lowercase()), refusal)].into();
        network.bounds = vec![secret.into()];
        report.network = Some(network);
        report
    }

    proptest! {
        #[test]
        fn no_secret_is_in_a_line(secret in "[A-Za-z0-9]{12,40}", name in "[A-Z]{1,8}", code: u8, at in 0..6usize) {
            let words = [
                format!("{name}={secret}"),
                format!("{name} {secret}"),
                format!("https://user:{secret}@host.example/x"),
                format!("{secret} {secret}"),
                format!("oci://user:{secret}@host.example/a/b"),
                format!("npm:x --token={secret}"),
            ];
            let word = OsString::from(&words[at]);
            let command = ["python3".into(), word.clone(), format!("{secret}.py").into()];
            let mut layer = Layer::command_line("/", None);
            layer.env_set(name.parse().unwrap(), &secret);
            layer.secret(format!("{name}2").parse().unwrap(), format!("env:{name}").parse().unwrap());
            let policy = Policy::merge(&[layer.build().unwrap()], mcp_policy::Defaults::run()).unwrap();
            let hidden = [secret.clone()];
            let alone = std::slice::from_ref(&word);
            for (reference, command) in
                [(Some(&word), &[][..]), (None, alone), (Some(&word), alone), (None, &command)]
            {
                // A first word that is nothing but the secret is the name of a program.
                if at == 3 && reference.is_none() && command.len() == 1 {
                    continue;
                }
                let mut what = What::new(reference.map(OsString::as_os_str), command);
                what.policy(&policy);
                for event in [
                    Event::Start,
                    Event::Refused { exit_code: code, why: crate::failure::Failure::Refused(secret.clone()).word().into(), rules: Vec::new() },
                    Event::end(&report(&secret, Ending::NotStarted(secret.clone())), &hidden),
                    Event::end(&report(&secret, Ending::Exited(code.into())), &hidden),
                    Event::end(&report(&secret, Ending::MemoryLimit), &hidden),
                ] {
                    let entry = Entry { time: 0.0, pid: 1, what: what.clone(), event };
                    let line = serde_json::to_string(&entry).unwrap().to_lowercase();
                    prop_assert!(!line.contains(&secret.to_lowercase()), "{line}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_secret_is_told() {
        let line = |hidden: &[String]| {
            let event = Event::end(&report("abcdefgh", Ending::Exited(0)), hidden);
            serde_json::to_string(&event).unwrap()
        };
        assert!(line(&[]).contains(r#""abcdefgh.evil.example:443":2"#), "{}", line(&[]));
        assert!(line(&["ABCDEFGH".to_owned()]).contains(r#""(holds a secret)":2"#));
        let what = What::new(Some(OsStr::new("acme/test@1.0.0")), &[]);
        assert_eq!(what.reference.as_deref(), Some("acme/test@1.0.0"));
        assert_eq!(What::new(None, &["/usr/bin/env".into()]).program, "env");
        let script =
            |word: &str| What::new(None, &["node".into(), "--x".into(), word.into()]).script;
        // Tests run in the directory of their crate.
        assert_eq!(script("tests/learn/server.py"), "server.py");
        assert_eq!((script("tests/learn/none.py"), script("Cargo.toml")), Default::default());
    }

    #[test]
    fn of_an_agents_command_the_first_word_is_told() {
        for (text, told) in [
            ("git status --short", "git"),
            ("/usr/bin/python3.11 -c 'x'", "python3.11"),
            ("\n  make", "make"),
            ("ls; echo hunter2", "ls"),
            ("(cd x && make)", "cd"),
            ("TOKEN=hunter2 make", ""),
            ("TOKEN='a hunter2' make", ""),
            ("'hunter2 x' y", ""),
            ("$(echo hunter2)", ""),
            ("<hunter2 cat", ""),
            (">> hunter2 echo x", ""),
            ("2>hunter2 ls", ""),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789 x", ""),
            ("", ""),
        ] {
            let what = What::exec(&[text.into(), "hunter2".into()]);
            assert_eq!((what.program.as_str(), what.verb.as_str()), (told, "exec"), "{text}");
        }
    }
}
