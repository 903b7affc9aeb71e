//! What was asked for and is not in the effective policy, in words for the person who can
//! give it.

use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::Protect;
use crate::layer::{Layer, LayerKind};
use crate::limit_rules::Limit;
use crate::paths::is_within;
use crate::policy::{NetworkMode, Policy, Sourced, Subprocess, Trust};
use crate::text;

/// One line for each wish that the policy does not grant: what, who asked, and the flag that
/// would grant it. Wishes are a manifest's, and a person's own that a denial takes away.
pub fn asked_but_not_granted(layers: &[Layer], policy: &Policy) -> Vec<String> {
    let mut unmet = Unmet { policy, lines: Vec::new() };
    for layer in layers {
        unmet.paths(layer);
        if layer.kind == LayerKind::Manifest {
            unmet.network(layer);
            unmet.environment(layer);
            unmet.limits(layer);
        }
    }
    unmet.lines
}

struct Unmet<'a> {
    policy: &'a Policy,
    lines: Vec<String>,
}

impl Unmet<'_> {
    fn note<T>(&mut self, what: impl Display, asked: &Sourced<T>, remedy: impl Display) {
        self.lines.push(format!("{what} (asked by {}): {remedy}", asked.origin));
    }

    fn paths(&mut self, layer: &Layer) {
        let policy = self.policy;
        let write = values(&policy.filesystem.write);
        let read: HashSet<&Path> = values(&policy.filesystem.read).union(&write).copied().collect();
        let denied = values(&policy.filesystem.deny);
        let asked = [
            ("read", &layer.filesystem.read, read, "--read"),
            ("write", &layer.filesystem.write, write, "--write"),
        ];
        for (verb, asked, granted, flag) in asked {
            for path in asked {
                let what = format!("{verb} {}", text::word(&path.value.to_string_lossy()));
                let is_denied = is_within(&path.value, &denied);
                let mut denials = policy.filesystem.deny.iter();
                if is_denied
                    && let Some(denial) = denials.find(|d| path.value.starts_with(&d.value))
                {
                    self.note(what, path, format_args!("denied by {}", denial.origin));
                } else if !is_within(&path.value, &granted) {
                    self.note(what, path, format_args!("give it with {flag}"));
                }
            }
        }
        let unprotected = values(&policy.filesystem.allow_write);
        for path in layer.filesystem.allow_write.iter().filter(|path| {
            policy.protect.value == Protect::Usual && !is_within(&path.value, &unprotected)
        }) {
            let what =
                format!("change the protected {}", text::word(&path.value.to_string_lossy()));
            self.note(what, path, "give it with --unprotect");
        }
    }

    fn network(&mut self, layer: &Layer) {
        let network = &self.policy.network;
        if network.mode.value == NetworkMode::Host {
            return;
        }
        if let Some(mode) = layer.network_mode.as_ref().filter(|m| m.value == NetworkMode::Host) {
            self.note("the host's network", mode, "give it with --network host");
        }
        for rule in &layer.allow {
            if !network.allow.iter().any(|granted| granted.value.covers(&rule.value)) {
                let remedy = format!("give it with --allow-net {}", rule.value);
                self.note(format_args!("connect to {}", rule.value), rule, remedy);
            }
        }
        let sockets = values(&network.unix);
        for path in layer.unix.iter().filter(|path| !is_within(&path.value, &sockets)) {
            let shown = text::word(&path.value.to_string_lossy());
            self.note(format_args!("connect to {shown}"), path, "give it with --allow-unix");
        }
        for port in &layer.listen {
            if network.listen.iter().all(|granted| granted.value != port.value) {
                let remedy = format!("give it with --listen {}", port.value);
                self.note(format_args!("listen on port {}", port.value), port, remedy);
            }
        }
        if let Some(trust) = layer.trust.as_ref().filter(|trust| trust.value == Trust::System)
            && network.trust.value == Trust::Closed
        {
            self.note("the system's certificate service", trust, "give it with --system-trust");
        }
    }

    fn environment(&mut self, layer: &Layer) {
        let env = &self.policy.env;
        let has = |name: &str| {
            env.set.keys().any(|set| set.as_str() == name)
                || env.secrets.keys().any(|secret| secret.as_str() == name)
                || env.allow.iter().any(|pattern| pattern.value.matches(name))
        };
        for pattern in &layer.env.allow {
            let granted = env.allow.iter().any(|granted| granted.value == pattern.value);
            if !granted && !has(pattern.value.as_str()) {
                let remedy = format!("give it with --env {}", pattern.value);
                self.note(format_args!("variable {}", pattern.value), pattern, remedy);
            }
        }
        for (name, value) in layer.env.set.iter().filter(|(name, _)| !has(name.as_str())) {
            let remedy = format!("give it with --env {name}=…");
            self.note(format_args!("variable {name}"), value, remedy);
        }
        for (name, reference) in layer.env.secrets.iter().filter(|(name, _)| !has(name.as_str())) {
            let remedy = format!("give it with --secret {name}=…");
            self.note(format_args!("secret {name}"), reference, remedy);
        }
    }

    fn limits(&mut self, layer: &Layer) {
        let (asked, given) = (&layer.limits, &self.policy.limits);
        self.limit(Limit::Memory, &asked.memory, &given.memory);
        self.limit(Limit::Cpu, &asked.cpu, &given.cpu);
        self.limit(Limit::CpuTime, &asked.cpu_time, &given.cpu_time);
        self.limit(Limit::Io, &asked.io, &given.io);
        self.limit(Limit::Processes, &asked.processes, &given.processes);
        self.limit(Limit::OpenFiles, &asked.open_files, &given.open_files);
        self.limit(Limit::FileSize, &asked.file_size, &given.file_size);
        self.limit(Limit::AddressSpace, &asked.address_space, &given.address_space);
        self.limit(Limit::Timeout, &asked.timeout, &given.timeout);
        self.limit(Limit::TmpSize, &optional(&asked.tmp_size), &some(&given.tmp_size));
        self.limit(Limit::Grace, &optional(&asked.grace), &some(&given.grace));
        if let Some(asked) = &layer.subprocess
            && asked.value == Subprocess::Allowed
            && self.policy.process.subprocess.value == Subprocess::Refused
        {
            let origin = self.policy.process.subprocess.origin.clone();
            self.note("start processes", asked, format_args!("refused by {origin}"));
        }
    }

    fn limit<T: Ord + Display>(
        &mut self,
        limit: Limit,
        asked: &Option<Sourced<Option<T>>>,
        given: &Sourced<Option<T>>,
    ) {
        let (Some(asked), Some(most)) = (asked, &given.value) else {
            return;
        };
        let what = match &asked.value {
            Some(value) if value <= most => return,
            Some(value) => format!("{} {value}", limit.key()),
            None => format!("{} without limit", limit.key()),
        };
        let remedy = format!("{most} is given ({}), more with {}", given.origin, limit.flag());
        self.note(what, asked, remedy);
    }
}

fn values(paths: &[Sourced<PathBuf>]) -> HashSet<&Path> {
    paths.iter().map(|path| path.value.as_path()).collect()
}

fn some<T: Clone>(limit: &Sourced<T>) -> Sourced<Option<T>> {
    Sourced::new(Some(limit.value.clone()), limit.origin.clone())
}

fn optional<T: Clone>(limit: &Option<Sourced<T>>) -> Option<Sourced<Option<T>>> {
    limit.as_ref().map(some)
}
