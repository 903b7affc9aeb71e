//! `mcp policy minimize FILE -- command`: drops the grants that the command did not use, and says so.

use std::path::{Path, PathBuf};

use mcp_learn::{Draft, Grant};
use mcp_policy::{Defaults, LayerKind, NetRule, Policy};
use mcp_sandbox::{NetworkUse, UsedGrant};
use serde_json::json;

use crate::args::learn::Subject;
use crate::commands::learn::calls;
use crate::commands::learn::drive::statuses;
use crate::commands::learn::round::{Partner, Rounds};
use crate::commands::run::report_file::ReportFile;
use crate::failure::Failure;
use crate::render::to_json;
use crate::{layers, paths, render};

pub fn run(
    file: &Path,
    output: Option<&Path>,
    json: bool,
    subject: &Subject,
) -> Result<u8, Failure> {
    if subject.reference.is_none() && subject.command.is_empty() {
        return Err(Failure::Usage(
            "nothing to run; give a command or a package: mcp policy minimize FILE -- COMMAND"
                .to_owned(),
        ));
    }
    let layer = layers::file(file, LayerKind::PolicyFile)?;
    let policy = Policy::merge(&[layer], Defaults::run())?;
    let draft = Draft::of(&policy).map_err(Failure::Usage)?;
    let calls = calls::all(&subject.call, subject.calls.as_deref())?;
    let rounds = Rounds::new(subject, calls, &policy)?;
    let outcome = rounds.run(&draft.to_toml(), Partner::Ourselves)?;
    let Some(watched) = &outcome.report.watched else {
        return Err(Failure::Refused(
            "this host does not tell which files a command uses, so nothing can be dropped"
                .to_owned(),
        ));
    };
    if let Some(why) = &watched.cut_off {
        return Err(Failure::Refused(format!("nothing can be dropped: {why}")));
    }
    let empty = NetworkUse::default();
    let network = outcome.report.network.as_ref().unwrap_or(&empty);
    let (smaller, dropped) = without_unused(&draft, &watched.used, network);
    // What a look may have missed, a run does not: the same calls have to answer as well.
    let again = rounds.run(&smaller.to_toml(), Partner::Ourselves)?;
    if statuses(&again.answers) != statuses(&outcome.answers) {
        return Err(Failure::Refused(
            "without the grants that seemed unused the command answers differently; the policy stays as it is"
                .to_owned(),
        ));
    }
    tell(&dropped);
    let text = smaller.to_toml();
    if json {
        let dropped: Vec<_> = dropped
            .iter()
            .map(|(grant, now)| json!({ "grant": grant.to_string(), "now": now }))
            .collect();
        render::print(&(to_json(&json!({ "dropped": dropped, "policy": text })) + "\n"));
    }
    match output {
        Some(path) => {
            ReportFile::create(path)?
                .write(text.trim_end())
                .map_err(|e| Failure::file(path, &e))?;
            render::say(&format!("written: {}", render::path(path)));
        }
        None if !json => render::print(&text),
        None => {}
    }
    Ok(0)
}

fn tell(dropped: &[(Grant, Option<String>)]) {
    for (grant, now) in dropped {
        let grant = render::plain(&grant.to_string());
        match now {
            Some(now) => {
                render::say(&format!("not used for writing: {grant}; now: {}", render::plain(now)))
            }
            None => render::say(&format!("not used, dropped: {grant}")),
        }
    }
    if dropped.is_empty() {
        render::say("every file, socket and destination of it was used");
    }
}

/// The draft without what was not used, and what that was; with what stands in its place, where something does.
fn without_unused(
    draft: &Draft,
    used: &[UsedGrant],
    network: &NetworkUse,
) -> (Draft, Vec<(Grant, Option<String>)>) {
    let mut smaller = draft.clone();
    let mut dropped = Vec::new();
    let find = |path: &PathBuf| {
        let real = paths::real(path).unwrap_or_else(|_| path.clone());
        used.iter().find(|used| Path::new(&used.path) == real)
    };
    for (grant, note) in draft.noted() {
        let instead = match grant {
            Grant::Read(path) | Grant::Unix(path) => match find(path) {
                Some(_) => continue,
                None => None,
            },
            Grant::Write(path) => match find(path) {
                Some(used) if used.written => continue,
                Some(_) => Some(Grant::Read(path.clone())),
                None => None,
            },
            Grant::Net(rule) if is_reached(rule, network) => continue,
            Grant::Net(_) => None,
            Grant::Variable(_) | Grant::Secret(_) => continue,
        };
        smaller.remove(grant);
        if let Some(instead) = &instead {
            smaller.insert(instead.clone(), note.to_owned());
        }
        dropped.push((grant.clone(), instead.map(|instead| instead.to_string())));
    }
    (smaller, dropped)
}

fn is_reached(rule: &NetRule, network: &NetworkUse) -> bool {
    network.reached.keys().any(|reached| {
        let Ok(to) = reached.parse::<NetRule>() else { return true };
        let is_host = match &to.host {
            mcp_policy::Host::Name { name, .. } => rule.matches_name(&name.to_string()),
            mcp_policy::Host::Address(ip) => rule.matches_ip(*ip),
            _ => true,
        };
        let is_public = matches!(rule.host, mcp_policy::Host::Public);
        let is_port = match to.ports {
            mcp_policy::Ports::One(port) => rule.ports.contains(port),
            _ => true,
        };
        (is_host || is_public) && is_port && rule.protocol == to.protocol
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_used_by_what_it_allows() {
        let mut network = NetworkUse::default();
        network.reached.insert("api.example.com:443".to_owned(), mcp_sandbox::Traffic::default());
        for (rule, used) in [
            ("api.example.com", true),
            ("*.example.com:443", true),
            ("public", true),
            ("api.example.com:80", false),
            ("example.org", false),
            ("udp://api.example.com:443", false),
        ] {
            assert_eq!(is_reached(&rule.parse().unwrap(), &network), used, "{rule}");
        }
    }
}
