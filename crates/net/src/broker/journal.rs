//! What was reached and what was refused, for the report and for a line on stderr. Bounded: the
//! command decides how many names it makes up.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use mcp_policy::Protocol;
use serde::{Deserialize, Serialize};

use super::connection::Refused;
use crate::refusal::{self, Reason, flag};
use crate::telemetry;

/// Destinations and refusals that are kept apart; the rest is counted together.
const MOST: usize = 256;

/// Refusals that are told while the command runs.
const MOST_LINES: usize = 50;

/// What was reached, for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NetworkUse {
    /// The destinations that were reached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reached: BTreeMap<String, Traffic>,
    /// The destinations that were refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, RefusedDestination>,
    /// Bounds that were met, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<String>,
}

/// The traffic of one destination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Traffic {
    /// How many connections were made.
    pub connections: u64,
    /// Bytes from the command.
    pub bytes_out: u64,
    /// Bytes to the command.
    pub bytes_in: u64,
    /// Connections that did not come about: no server answered outside.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Why the first of them did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A destination that was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedDestination {
    /// How often.
    pub times: u64,
    /// The reason.
    pub why: String,
    /// The flag that would allow it, where one would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl NetworkUse {
    /// Whether nothing was reached or refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == NetworkUse::default()
    }
}

/// What has gone through the allowlist of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkTotals {
    /// How many connections were made.
    pub connections: u64,
    /// Bytes from the command.
    pub bytes_out: u64,
    /// Bytes to the command.
    pub bytes_in: u64,
}

/// Where lines for the user go.
pub type Tell = Box<dyn FnMut(&str) + Send>;

/// Where the counters go while the command runs.
pub type Meter = Box<dyn FnMut(&NetworkTotals) + Send>;

/// How old what the meter shows may be.
const METERED: Duration = Duration::from_secs(1);

/// Counts the traffic of a run and tells the user of refusals.
#[non_exhaustive]
pub struct Journal {
    /// What was counted so far.
    pub used: NetworkUse,
    tell: Tell,
    lines: usize,
    /// Refused names that can wait for the end.
    background: Vec<String>,
    meter: Option<Meter>,
    metered: Option<Instant>,
    /// When the meter is to be told of what has happened since.
    pub due: Option<Instant>,
}

/// The key of all that came after there were [`MOST`].
const OTHERS: &str = "(others)";

impl Journal {
    /// A journal whose lines go to `tell`.
    #[must_use]
    pub fn new(tell: Tell) -> Journal {
        let used = NetworkUse::default();
        Journal {
            used,
            tell,
            lines: 0,
            background: Vec::new(),
            meter: None,
            metered: None,
            due: None,
        }
    }

    /// The same journal, with counters for `mcp stats`.
    pub fn metered(self, meter: Option<Meter>) -> Journal {
        let due = meter.is_some().then(Instant::now);
        Journal { meter, due, ..self }
    }

    /// Something has happened: the meter is told, at once or soon.
    pub fn stir(&mut self) {
        if self.meter.is_some() && self.due.is_none() {
            let now = Instant::now();
            self.due = Some(self.metered.map_or(now, |at| now.max(at + METERED)));
        }
    }

    /// Tells the meter. `open` is what goes through connections that are not counted yet.
    pub fn measure(&mut self, now: Instant, open: impl Iterator<Item = (u64, u64)>) {
        let mut totals = NetworkTotals::default();
        for traffic in self.used.reached.values() {
            totals.connections += traffic.connections;
            totals.bytes_out += traffic.bytes_out;
            totals.bytes_in += traffic.bytes_in;
        }
        for (out, back) in open {
            totals.bytes_out += out;
            totals.bytes_in += back;
        }
        (self.due, self.metered) = (None, Some(now));
        if let Some(meter) = &mut self.meter {
            meter(&totals);
        }
    }

    /// The counters of a destination.
    pub fn traffic(&mut self, to: &str) -> &mut Traffic {
        let reached = &mut self.used.reached;
        let key = if reached.contains_key(to) || reached.len() < MOST { to } else { OTHERS };
        reached.entry(key.to_owned()).or_default()
    }

    /// Notes what the allowlist refused.
    pub fn refused(&mut self, refusal: &refusal::Refusal) {
        let to = match refusal.protocol {
            Protocol::Tcp => refusal.to.to_string(),
            Protocol::Udp => format!("udp://{}", refusal.to),
        };
        let why = match &refusal.reason {
            Reason::NoRule => "no rule allows it".to_owned(),
            Reason::TooWide { kind } => format!("it is {kind}"),
            Reason::Leads { ip, kind } => format!("its address {ip} is {kind}"),
        };
        self.note(&to, &why, Some(flag(&refusal.rule())), || Some(format!("blocked {refusal}")));
    }

    /// Whether this destination was refused before.
    #[must_use]
    pub fn has_refused(&self, to: &str) -> bool {
        self.used.refused.contains_key(to)
    }

    /// Notes that the command looked for a service of the host's loopback on its own one. A name that leads to both
    /// families is told once, with the rule that opens both.
    pub fn refused_service(&mut self, to: SocketAddr) {
        let usual = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        let rule = match usual.contains(&to.ip()) {
            true => format!("localhost:{}", to.port()),
            false => to.to_string(),
        };
        let flag = flag(&rule);
        let is_told = self.used.refused.values().any(|known| known.flag.as_ref() == Some(&flag));
        let line = format!("blocked {to}, a service of this machine (add {flag})");
        let why = "it is a service on the host's loopback; the command has a loopback of its own";
        self.note(&to.to_string(), why, Some(flag), || (!is_told).then_some(line));
    }

    /// Notes a refusal, and tells the first of each destination.
    pub fn refuse(&mut self, to: &str, why: &str, flag: Option<String>) {
        if telemetry::is_name(to) {
            let mut is_new = false;
            self.note(to, why, flag, || {
                is_new = true;
                None
            });
            if is_new {
                self.background.push(to.to_owned());
            }
            return;
        }
        let more = match telemetry::is_registry(to) {
            true => "; a mere update check does without",
            false => "",
        };
        let line = match &flag {
            Some(flag) => format!("blocked {to} (add {flag}{more})"),
            None => format!("blocked {to}: {why}"),
        };
        self.note(to, why, flag, || Some(line));
    }

    /// Notes that the first words of a connection to an allowed name were not passed on.
    pub fn refuse_words(&mut self, to: &str, refused: &Refused) {
        match refused {
            Refused::OtherName(why) => self.refuse(to, why, None),
            Refused::NoName(why) => {
                let flag = flag(&format!("{to},tls=off"));
                let line = format!("blocked {to}: {why} (to pass it unread add {flag})");
                self.note(to, why, Some(flag), || Some(line));
            }
        }
    }

    fn note(
        &mut self,
        to: &str,
        why: &str,
        flag: Option<String>,
        line: impl FnOnce() -> Option<String>,
    ) {
        let refused = &mut self.used.refused;
        if let Some(refusal) = refused.get_mut(to) {
            refusal.times += 1;
            return;
        }
        if refused.len() >= MOST {
            let why = || "too many to keep apart".to_owned();
            let others = refused.entry(OTHERS.to_owned());
            others
                .or_insert_with(|| RefusedDestination { times: 0, why: why(), flag: None })
                .times += 1;
            return;
        }
        refused.insert(to.to_owned(), RefusedDestination { times: 1, why: why.to_owned(), flag });
        if let Some(line) = line() {
            self.line(&line);
        }
    }

    /// Notes why something that is allowed could not be reached, once for each destination.
    pub fn trouble(&mut self, to: &str, why: &str) {
        let traffic = self.traffic(to);
        if traffic.trouble.is_none() {
            traffic.trouble = Some(why.to_owned());
            self.line(&format!("could not reach {to}: {why}"));
        }
    }

    /// Notes that a bound was met, once for each.
    pub fn bound(&mut self, what: &str) {
        if !self.used.bounds.iter().any(|bound| bound == what) {
            self.used.bounds.push(what.to_owned());
            (self.tell)(what);
        }
    }

    /// The run is over: what programs ask for on their own account is told in one line.
    pub fn end(&mut self) {
        let names = std::mem::take(&mut self.background);
        if let Some(first) = names.first() {
            let flag = flag(first);
            (self.tell)(&format!(
                "blocked {}: update checks or telemetry, which are seldom needed (add {flag} if they are)",
                names.join(", ")
            ));
        }
    }

    fn line(&mut self, text: &str) {
        self.lines += 1;
        match self.lines.cmp(&MOST_LINES) {
            std::cmp::Ordering::Less => (self.tell)(text),
            std::cmp::Ordering::Equal => {
                (self.tell)(text);
                (self.tell)("more was blocked; --report has it");
            }
            std::cmp::Ordering::Greater => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn heard() -> (Journal, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let told = lines.clone();
        let tell = move |line: &str| told.lock().unwrap().push(line.to_owned());
        (Journal::new(Box::new(tell)), lines)
    }

    #[test]
    fn each_destination_is_told_once_and_counted_always() {
        let (mut journal, lines) = heard();
        for _ in 0..3 {
            journal.refuse("a.example:443", "no rule", Some(flag("a.example:443")));
        }
        let told = ["blocked a.example:443 (add --allow-net a.example:443)"];
        assert_eq!(*lines.lock().unwrap(), told);
        assert_eq!(journal.used.refused["a.example:443"].times, 3);
    }

    #[test]
    fn update_checks_are_one_line_at_the_end() {
        let (mut journal, lines) = heard();
        for name in ["sentry.io", "posthog.com", "sentry.io"] {
            journal.refuse(name, "no rule", Some(flag(name)));
        }
        assert!(lines.lock().unwrap().is_empty());
        journal.refuse("api.example", "no rule", None);
        assert_eq!(lines.lock().unwrap().len(), 1);
        journal.end();
        journal.end();
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[1].starts_with("blocked sentry.io, posthog.com: "), "{lines:?}");
        assert_eq!(journal.used.refused["sentry.io"].times, 2);
    }

    /// An installation waits for its registry, so its line cannot wait for the end.
    #[test]
    fn a_registry_is_told_at_once() {
        let (mut journal, lines) = heard();
        journal.refuse("pypi.org", "no rule", Some(flag("pypi.org")));
        let told =
            ["blocked pypi.org (add --allow-net pypi.org; a mere update check does without)"];
        assert_eq!(*lines.lock().unwrap(), told);
    }

    #[test]
    fn a_service_of_both_families_is_told_once() {
        let (mut journal, lines) = heard();
        for to in ["[::1]:5432", "127.0.0.1:5432", "127.0.0.1:5432", "127.0.0.7:5432"] {
            journal.refused_service(to.parse().unwrap());
        }
        let told = [
            "blocked [::1]:5432, a service of this machine (add --allow-net localhost:5432)",
            "blocked 127.0.0.7:5432, a service of this machine (add --allow-net 127.0.0.7:5432)",
        ];
        assert_eq!(*lines.lock().unwrap(), told);
        assert_eq!(journal.used.refused["127.0.0.1:5432"].times, 2);
    }

    #[test]
    fn the_meter_shows_what_is_counted_and_what_is_open() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let told = shown.clone();
        let meter = move |totals: &NetworkTotals| told.lock().unwrap().push(*totals);
        let mut journal = heard().0.metered(Some(Box::new(meter)));
        assert!(journal.due.is_some(), "it shows nothing before something happens");
        let now = Instant::now();
        journal.measure(now, std::iter::empty());
        assert_eq!(journal.due, None);
        *journal.traffic("a") =
            Traffic { connections: 2, bytes_out: 3, bytes_in: 5, ..Default::default() };
        journal.stir();
        assert_eq!(journal.due, Some(now + METERED));
        journal.measure(now, [(10, 20)].into_iter());
        let zero = NetworkTotals::default();
        let all = NetworkTotals { connections: 2, bytes_out: 13, bytes_in: 25 };
        assert_eq!(*shown.lock().unwrap(), [zero, all]);
    }

    #[test]
    fn made_up_names_fill_nothing() {
        let (mut journal, lines) = heard();
        for number in 0..10_000 {
            journal.refuse(&format!("{number}.example"), "no rule", None);
            journal.traffic(&format!("{number}.example")).connections += 1;
        }
        assert_eq!(journal.used.refused.len(), MOST + 1);
        assert_eq!(journal.used.refused[OTHERS].times, 10_000 - MOST as u64);
        assert_eq!(journal.used.reached[OTHERS].connections, 10_000 - MOST as u64);
        assert_eq!(lines.lock().unwrap().len(), MOST_LINES + 1);
    }
}
