//! Layers become one policy. People give, manifests ask.
//!
//! The user's config, the policy file and the command line are a person's words: later ones
//! replace single values and add to lists. A manifest is a stranger's: its grants count for
//! nothing here ([`crate::asked_but_not_granted`] tells the person), its denials and its
//! stricter limits are taken.

use std::collections::HashSet;
use std::hash::Hash;

use crate::error::Error;
use crate::layer::{Layer, LayerKind, LayerLimits};
use crate::policy::{
    Env, Filesystem, Limits, Network, NetworkMode, Policy, Process, Sourced, Subprocess, Trust,
};
use crate::text;
use crate::{Defaults, Origin, Protect};

impl Policy {
    /// The effective policy. Layers count by their kind, whatever order they come in; among
    /// layers of one kind the later replaces the earlier.
    pub fn merge(layers: &[Layer], defaults: Defaults) -> Result<Self, Error> {
        let mut people: Vec<&Layer> =
            layers.iter().filter(|layer| layer.kind != LayerKind::Manifest).collect();
        people.sort_by_key(|layer| layer.kind);
        let manifests = || layers.iter().filter(|layer| layer.kind == LayerKind::Manifest);

        let mut limits = defaults.limits;
        people.iter().for_each(|layer| replace_limits(&mut limits, &layer.limits));
        manifests().for_each(|layer| tighten_limits(&mut limits, &layer.limits));

        let mut subprocess = Sourced::new(Subprocess::Allowed, Origin::Default);
        people.iter().for_each(|layer| replace(&mut subprocess, &layer.subprocess));
        for asked in manifests().filter_map(|layer| layer.subprocess.as_ref()) {
            if asked.value == Subprocess::Refused && subprocess.value == Subprocess::Allowed {
                subprocess = asked.clone();
            }
        }

        let mut protect = Sourced::new(defaults.protect, Origin::Default);
        people.iter().for_each(|layer| replace(&mut protect, &layer.protect));
        for asked in manifests().filter_map(|layer| layer.protect.as_ref()) {
            if asked.value == Protect::Usual && protect.value == Protect::Nothing {
                protect = asked.clone();
            }
        }

        let mut env = merge_env(&people);
        let allow = defaults.env_allow.into_iter().map(|p| Sourced::new(p, Origin::Default));
        env.allow = union(allow.chain(env.allow));

        Ok(Self {
            filesystem: Filesystem {
                read: gather(&people, |layer| &layer.filesystem.read),
                write: gather(&people, |layer| &layer.filesystem.write),
                deny: union(
                    people
                        .iter()
                        .copied()
                        .chain(manifests())
                        .flat_map(|layer| layer.filesystem.deny.iter().cloned()),
                ),
                allow_write: gather(&people, |layer| &layer.filesystem.allow_write),
            },
            protect,
            network: merge_network(&people)?,
            process: Process { subprocess },
            limits,
            env,
        })
    }
}

fn merge_network(people: &[&Layer]) -> Result<Network, Error> {
    let mut mode = Sourced::new(NetworkMode::Isolated, Origin::Default);
    people.iter().for_each(|layer| replace(&mut mode, &layer.network_mode));
    let mut trust = Sourced::new(Trust::Closed, Origin::Default);
    people.iter().for_each(|layer| replace(&mut trust, &layer.trust));
    let network = Network {
        mode,
        trust,
        allow: gather(people, |layer| &layer.allow),
        unix: gather(people, |layer| &layer.unix),
        listen: gather(people, |layer| &layer.listen),
    };
    if network.mode.value == NetworkMode::Isolated {
        return Ok(network);
    }
    let allow = network.allow.first().map(|rule| (format!("allow {}", rule.value), &rule.origin));
    let unix = network
        .unix
        .first()
        .map(|path| (format!("unix {}", text::word(&path.value.to_string_lossy())), &path.origin));
    let listen =
        network.listen.first().map(|port| (format!("listen {}", port.value), &port.origin));
    match allow.or(unix).or(listen) {
        None => Ok(network),
        Some((rule, origin)) => Err(Error::plain(
            format!(
                "the host's network ({}) contradicts \"{rule}\" ({origin})",
                network.mode.origin
            ),
            "with the host's network nothing is restricted: remove one of them",
        )),
    }
}

/// A variable is either set or secret, and the later word decides which.
fn merge_env(people: &[&Layer]) -> Env {
    let mut env = Env::default();
    for layer in people {
        env.allow.extend(layer.env.allow.iter().cloned());
        for (name, value) in &layer.env.set {
            env.secrets.remove(name);
            env.set.insert(name.clone(), value.clone());
        }
        for (name, reference) in &layer.env.secrets {
            env.set.remove(name);
            env.secrets.insert(name.clone(), reference.clone());
        }
    }
    env
}

fn gather<T: Clone + Eq + Hash>(
    layers: &[&Layer],
    list: impl Fn(&Layer) -> &Vec<Sourced<T>>,
) -> Vec<Sourced<T>> {
    union(layers.iter().flat_map(|layer| list(layer).iter().cloned()))
}

/// In order, each value once, with the origin that said it first.
fn union<T: Clone + Eq + Hash>(items: impl Iterator<Item = Sourced<T>>) -> Vec<Sourced<T>> {
    let mut seen = HashSet::new();
    items.filter(|item| seen.insert(item.value.clone())).collect()
}

fn replace<T: Clone>(slot: &mut Sourced<T>, said: &Option<Sourced<T>>) {
    if let Some(said) = said {
        *slot = said.clone();
    }
}

fn replace_limits(limits: &mut Limits, said: &LayerLimits) {
    replace(&mut limits.memory, &said.memory);
    replace(&mut limits.cpu, &said.cpu);
    replace(&mut limits.cpu_time, &said.cpu_time);
    replace(&mut limits.io, &said.io);
    replace(&mut limits.processes, &said.processes);
    replace(&mut limits.open_files, &said.open_files);
    replace(&mut limits.file_size, &said.file_size);
    replace(&mut limits.tmp_size, &said.tmp_size);
    replace(&mut limits.address_space, &said.address_space);
    replace(&mut limits.timeout, &said.timeout);
    replace(&mut limits.grace, &said.grace);
}

fn tighten_limits(limits: &mut Limits, asked: &LayerLimits) {
    tighten(&mut limits.memory, &asked.memory);
    tighten(&mut limits.cpu, &asked.cpu);
    tighten(&mut limits.cpu_time, &asked.cpu_time);
    tighten(&mut limits.io, &asked.io);
    tighten(&mut limits.processes, &asked.processes);
    tighten(&mut limits.open_files, &asked.open_files);
    tighten(&mut limits.file_size, &asked.file_size);
    tighten(&mut limits.address_space, &asked.address_space);
    tighten(&mut limits.timeout, &asked.timeout);
    tighten_always(&mut limits.tmp_size, &asked.tmp_size);
    tighten_always(&mut limits.grace, &asked.grace);
}

fn tighten<T: Ord + Clone>(slot: &mut Sourced<Option<T>>, asked: &Option<Sourced<Option<T>>>) {
    let Some(asked) = asked else { return };
    let is_stricter = match (&asked.value, &slot.value) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(asked), Some(given)) => asked < given,
    };
    if is_stricter {
        *slot = asked.clone();
    }
}

fn tighten_always<T: Ord + Clone>(slot: &mut Sourced<T>, asked: &Option<Sourced<T>>) {
    if let Some(asked) = asked.as_ref().filter(|asked| asked.value < slot.value) {
        *slot = asked.clone();
    }
}

#[cfg(test)]
mod tests;
