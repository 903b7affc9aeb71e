//! The differences of two policies, line by line, and which of them grants more.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use mcp_policy::{NetworkMode, Policy, Protect, Subprocess, Trust};
use serde::Serialize;

/// Whether the second policy gives more by a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It gives more.
    Wider,
    /// It gives less.
    Narrower,
    /// Neither can be said.
    Other,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The key of the policy file: `filesystem.read`.
    pub key: String,
    /// The value that only the first has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value that only the second has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether the second gives more by it.
    pub effect: Effect,
}

/// From the first to the second, in the order of the keys. Where values come from makes no difference.
#[must_use]
pub fn diff(first: &Policy, second: &Policy) -> Vec<Change> {
    let (old, new) = (Facts::of(first), Facts::of(second));
    let mut changes = Vec::new();
    for (key, sense) in LISTS {
        let empty = BTreeSet::new();
        let (old, new) =
            (old.lists.get(key).unwrap_or(&empty), new.lists.get(key).unwrap_or(&empty));
        for gone in old.difference(new) {
            let effect = sense.removed();
            changes.push(Change {
                key: (*key).to_owned(),
                from: Some(gone.clone()),
                to: None,
                effect,
            });
        }
        for added in new.difference(old) {
            let effect = sense.added();
            changes.push(Change {
                key: (*key).to_owned(),
                from: None,
                to: Some(added.clone()),
                effect,
            });
        }
    }
    for (key, (value, _)) in &old.ones {
        if !new.ones.contains_key(key) {
            let effect = Effect::Narrower;
            changes.push(Change { key: key.clone(), from: Some(value.clone()), to: None, effect });
        }
    }
    for (key, (value, weight)) in &new.ones {
        let (from, effect) = match old.ones.get(key) {
            Some((before, _)) if before == value => continue,
            Some((before, old_weight)) => {
                let effect = match (old_weight, weight) {
                    (Some(old), Some(new)) if new > old => Effect::Wider,
                    (Some(old), Some(new)) if new < old => Effect::Narrower,
                    _ => Effect::Other,
                };
                (Some(before.clone()), effect)
            }
            None => (None, Effect::Wider),
        };
        changes.push(Change { key: key.clone(), from, to: Some(value.clone()), effect });
    }
    changes.sort_by(|one, two| (&one.key, &one.from, &one.to).cmp(&(&two.key, &two.from, &two.to)));
    changes
}

/// What an entry of a list does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    Gives,
    Takes,
}

impl Sense {
    fn added(self) -> Effect {
        if self == Sense::Gives { Effect::Wider } else { Effect::Narrower }
    }

    fn removed(self) -> Effect {
        if self == Sense::Gives { Effect::Narrower } else { Effect::Wider }
    }
}

const LISTS: &[(&str, Sense)] = &[
    ("filesystem.read", Sense::Gives),
    ("filesystem.write", Sense::Gives),
    ("filesystem.deny", Sense::Takes),
    ("filesystem.allow_write", Sense::Gives),
    ("network.allow", Sense::Gives),
    ("network.unix", Sense::Gives),
    ("network.listen", Sense::Gives),
    ("env.allow", Sense::Gives),
];

/// A policy as texts. A value has a weight where more of it is wider.
#[derive(Default)]
struct Facts {
    lists: BTreeMap<&'static str, BTreeSet<String>>,
    ones: BTreeMap<String, (String, Option<u128>)>,
}

impl Facts {
    fn of(policy: &Policy) -> Facts {
        let mut facts = Facts::default();
        let files = &policy.filesystem;
        for (key, paths) in [
            ("filesystem.read", &files.read),
            ("filesystem.write", &files.write),
            ("filesystem.deny", &files.deny),
            ("filesystem.allow_write", &files.allow_write),
            ("network.unix", &policy.network.unix),
        ] {
            let texts = paths.iter().map(|path| path.value.to_string_lossy().into_owned());
            facts.lists.insert(key, texts.collect());
        }
        let network = &policy.network;
        let rules = network.allow.iter().map(|rule| rule.value.to_string());
        facts.lists.insert("network.allow", rules.collect());
        let ports = network.listen.iter().map(|port| port.value.to_string());
        facts.lists.insert("network.listen", ports.collect());
        let patterns = policy.env.allow.iter().map(|pattern| pattern.value.as_str().to_owned());
        facts.lists.insert("env.allow", patterns.collect());
        facts.switches(policy);
        facts.limits(policy);
        for (name, value) in &policy.env.set {
            facts.one(&format!("env.set.{name}"), format!("{:?}", value.value), None);
        }
        for (name, reference) in &policy.env.secrets {
            facts.one(&format!("env.secrets.{name}"), reference.value.to_string(), None);
        }
        facts
    }

    fn switches(&mut self, policy: &Policy) {
        let is_host = policy.network.mode.value == NetworkMode::Host;
        let may_start = policy.process.subprocess.value == Subprocess::Allowed;
        let is_open = policy.protect.value != Protect::Usual;
        let is_trusting = policy.network.trust.value == Trust::System;
        let mode = if is_host { "host" } else { "isolated" };
        self.one("network", mode.to_owned(), Some(is_host.into()));
        self.one("process.subprocess", may_start.to_string(), Some(may_start.into()));
        self.one("filesystem.protect", (!is_open).to_string(), Some(is_open.into()));
        self.one("network.system_trust", is_trusting.to_string(), Some(is_trusting.into()));
    }

    fn limits(&mut self, policy: &Policy) {
        let limits = &policy.limits;
        let size = |bytes: Option<mcp_policy::Bytes>| bytes.map(|bytes| u128::from(bytes.0));
        let time = |time: Option<mcp_policy::Duration>| time.map(|time| time.as_std().as_nanos());
        self.limit("memory", &limits.memory.value, size(limits.memory.value));
        // Only whether they are the same is known of these.
        let cpu = limits.cpu.value.as_ref().map_or_else(|| "none".to_owned(), |cpu| cpu.number());
        self.one("limits.cpu", cpu, None);
        let io = limits.io.value.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
        self.one("limits.io", io, None);
        self.limit("cpu_time", &limits.cpu_time.value, time(limits.cpu_time.value));
        let count = |count: Option<u32>| count.map(u128::from);
        self.limit("processes", &limits.processes.value, count(limits.processes.value));
        self.limit("open_files", &limits.open_files.value, count(limits.open_files.value));
        self.limit("file_size", &limits.file_size.value, size(limits.file_size.value));
        let tmp = Some(limits.tmp_size.value);
        self.limit("tmp_size", &tmp, size(tmp));
        self.limit("address_space", &limits.address_space.value, size(limits.address_space.value));
        self.limit("timeout", &limits.timeout.value, time(limits.timeout.value));
        let grace = Some(limits.grace.value);
        self.limit("grace", &grace, time(grace));
    }

    fn limit<T: ToString>(&mut self, name: &str, value: &Option<T>, weight: Option<u128>) {
        let text = value.as_ref().map_or_else(|| "none".to_owned(), T::to_string);
        // No limit is the widest.
        self.one(&format!("limits.{name}"), text, Some(weight.unwrap_or(u128::MAX)));
    }

    fn one(&mut self, key: &str, value: String, weight: Option<u128>) {
        self.ones.insert(key.to_owned(), (value, weight));
    }
}

#[cfg(test)]
mod tests {
    use mcp_policy::{Defaults, Layer, LayerKind, LayerSource};

    use super::*;

    fn policy(text: &str) -> Policy {
        let source = LayerSource {
            kind: LayerKind::PolicyFile,
            path: "p.toml".into(),
            base: "/".into(),
            home: None,
        };
        let layer = Layer::from_toml(text, source).unwrap();
        Policy::merge(&[layer], Defaults::run()).unwrap()
    }

    fn shown(first: &str, second: &str) -> Vec<String> {
        let changes = diff(&policy(first), &policy(second));
        let side = |value: &Option<String>| value.clone().unwrap_or_default();
        changes
            .iter()
            .map(|change| {
                format!(
                    "{} {:?} {}>{}",
                    change.key,
                    change.effect,
                    side(&change.from),
                    side(&change.to)
                )
            })
            .collect()
    }

    #[test]
    fn differences_say_what_becomes_wider() {
        assert_eq!(shown("", ""), Vec::<String>::new());
        assert_eq!(
            shown(
                "[filesystem]\nread = ['/a', '/b']\ndeny = ['/a/x']\n[limits]\nmemory = '64M'",
                "[filesystem]\nread = ['/b', '/c']\n[limits]\nmemory = 'none'\n[env]\nset = { A = '1' }",
            ),
            [
                "env.set.A Wider >\"1\"",
                "filesystem.deny Wider /a/x>",
                "filesystem.read Wider >/c",
                "filesystem.read Narrower /a>",
                "limits.memory Wider 64 MiB>none",
            ]
        );
        assert_eq!(shown("network = 'host'", ""), ["network Narrower host>isolated"]);
        assert_eq!(
            shown("", "[process]\nsubprocess = false"),
            ["process.subprocess Narrower true>false"]
        );
    }

    #[test]
    fn where_a_value_comes_from_makes_no_difference() {
        assert_eq!(shown("[limits]\nmemory = '512M'", ""), Vec::<String>::new());
    }
}
