//! `cargo xtask vm containers`: what holds in which kind of container, tried in each of them.
//!
//! All are made in one guest with cgroups of version 2, from this machine's own files: what is not installed here is
//! a line that says so.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use super::guest::{Cgroup, Guest, Output, User};
use super::kernel::Kernel;
use super::matrix::stage::Stage;
use super::matrix::suite::MatrixSuite;
use super::{Machine, document};
use crate::Result;

const SCRIPT: &str = include_str!("../../vm/containers");

const MARKS: document::Marks = document::Marks {
    begin: "<!-- container-matrix:begin (cargo xtask vm containers --write) -->",
    end: "<!-- container-matrix:end -->",
};

const HEAD: &str = "| container | as root | as a user |";

/// Try the default policy in containers of many kinds: unshare, bubblewrap, podman, systemd-nspawn, mcp itself
#[derive(clap::Args)]
pub struct Args {
    /// The kernel
    #[arg(long, value_enum, default_value_t = Kernel::V6_12)]
    kernel: Kernel,
    /// As for `matrix`
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// Words that choose escape tests to run in each container: 'rootless privileges'
    #[arg(long, value_name = "WORDS")]
    tests: Option<String>,
    /// Write the table into docs/security/hosts.md
    #[arg(long)]
    write: bool,
    /// Seconds until the guest is given up
    #[arg(long, default_value_t = 2400, value_name = "SECONDS")]
    timeout: u64,
    #[command(flatten)]
    machine: Machine,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let cache = args.machine.cache();
    fs::create_dir_all(&cache)?;
    let stage = Stage::make(args.bin_dir.as_deref(), &cache)?;
    let guest = Guest {
        kernel: args.kernel,
        sysctls: Vec::new(),
        append: Vec::new(),
        cgroup: Cgroup::Delegate,
        user: User::Root,
        memory: args.machine.memory,
        processors: args.machine.processors,
        limit: Duration::from_secs(args.timeout),
    };
    let log = cache.join("containers.log");
    let tests = args.tests.clone().unwrap_or_default().replace('\'', "");
    let script = format!("stage='{}' tests='{tests}'\n{SCRIPT}", stage.directory.display());
    let finished = guest.run(&cache, &script, Output::Logged(&log))?;
    if finished.code.is_none() {
        return Err(format!("not done after {} s; see {}", args.timeout, log.display()).into());
    }
    let kinds = parse(&finished.stdout);
    if kinds.is_empty() {
        return Err(format!("nothing was tried; see {}", log.display()).into());
    }
    let table = render(&kinds, &finished.release, &stage.commit);
    println!("{table}");
    if args.write {
        let path = crate::workspace().join("docs/security/hosts.md");
        fs::write(&path, MARKS.replaced(&fs::read_to_string(&path)?, &table)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What came of one kind of container.
#[derive(Debug, PartialEq)]
struct ContainerKind {
    user: String,
    name: String,
    told: String,
}

/// A part of what the script prints, by the mark before it.
fn parse(output: &str) -> Vec<ContainerKind> {
    let mut kinds = Vec::new();
    let mut parts: BTreeMap<&str, (String, String)> = BTreeMap::new();
    let (mut name, mut at) = (None, "");
    for line in output.lines().map(|line| line.trim_end_matches('\r')) {
        let Some(mark) = line.strip_prefix("@@") else {
            if let Some((_, text)) = parts.get_mut(at) {
                text.push_str(line);
                text.push('\n');
            }
            continue;
        };
        let (word, rest) = mark.split_once(' ').unwrap_or((mark, ""));
        if word == "kind" {
            name = rest.split_once(" | ");
            parts.clear();
        }
        at = ["kind", "code", "said", "tests", "absent", "end"]
            .into_iter()
            .find(|it| *it == word)
            .unwrap_or_default();
        parts.insert(at, (rest.to_owned(), String::new()));
        if let (Some((user, name)), "absent" | "end") = (name, at) {
            let (user, name) = (user.to_owned(), name.to_owned());
            kinds.push(ContainerKind { user, name, told: told(&parts) });
        }
    }
    kinds
}

fn told(parts: &BTreeMap<&str, (String, String)>) -> String {
    let said = |name: &str| parts.get(name).map(|(_, text)| first_line(text)).unwrap_or_default();
    if let Some((why, _)) = parts.get("absent") {
        return format!("not tried: {why}");
    }
    let Some((code, report)) = parts.get("code") else {
        return format!("not tried: {}", said("kind"));
    };
    let mut text = match code.as_str() {
        "0" => match less(report) {
            Some(less) if less.is_empty() => "runs, the walls are whole".to_owned(),
            Some(less) => format!("runs; {}", less.join(", ")),
            None => "runs, and no report was made".to_owned(),
        },
        code => format!("exit {code}: {}", said("said").trim_start_matches("mcp: ")),
    };
    if let Some((_, tests)) = parts.get("tests") {
        match MatrixSuite::parse(tests) {
            Ok(suite) => text += &format!("; escape: {suite}"),
            Err(_) => text += "; tests not finished",
        }
    }
    text.replace('|', "\\|")
}

/// The boundaries that are not enforced, by how much they are.
fn less(report: &str) -> Option<Vec<String>> {
    let report: Value = serde_json::from_str(report).ok()?;
    let controls = report["controls"].as_object()?;
    let of_limits = ["memory", "processes", "cpu", "cpu_time", "io", "tmp_size"];
    let boundaries = controls.iter().filter(|(name, _)| !of_limits.contains(&name.as_str()));
    let status = |it: &Value| it["status"].as_str().unwrap_or_default().to_owned();
    let less =
        boundaries.filter(|(_, it)| !["enforced", "not_requested"].contains(&status(it).as_str()));
    Some(less.map(|(name, it)| format!("{} {}", name.replace('_', " "), status(it))).collect())
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim().to_owned()
}

fn render(kinds: &[ContainerKind], release: &str, commit: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for kind in kinds {
        if !names.contains(&kind.name.as_str()) {
            names.push(&kind.name);
        }
    }
    let mut text = format!("{HEAD}\n|---|---|---|\n");
    for name in names {
        let of = |user: &str| {
            let found = kinds.iter().find(|kind| kind.name == name && kind.user == user);
            found.map_or("–", |kind| kind.told.as_str()).to_owned()
        };
        text += &format!("| {name} | {} | {} |\n", of("root"), of("a user"));
    }
    text + &format!("\nOn Linux {release}, at {commit}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_become_lines() {
        let output = "noise\n@@kind root | podman\n@@code 0\n\
                      {\"controls\":{\"network\":{\"status\":\"enforced\"},\"memory\":{\"status\":\"partial\"},\
                      \"process_isolation\":{\"status\":\"partial\"}}}\n@@said\nmcp: warning\n@@end 0\n\
                      @@kind a user | podman\r\nError: no ids | at all\r\n@@end 125\r\n\
                      @@kind root | nspawn\n@@absent systemd-nspawn is not installed\n\
                      @@kind a user | `unshare -r`\n@@code 125\n{}\n@@said\n\nmcp: not started: no\n@@end 0\n";
        let kinds = parse(output);
        let told: Vec<_> = kinds.iter().map(|kind| kind.told.as_str()).collect();
        assert_eq!(
            told,
            [
                "runs; process isolation partial",
                "not tried: Error: no ids | at all",
                "not tried: systemd-nspawn is not installed",
                "exit 125: not started: no"
            ]
        );
        let table = render(&kinds, "6.12", "abc");
        assert!(
            table.contains("| nspawn | not tried: systemd-nspawn is not installed | – |"),
            "{table}"
        );
        assert!(table.contains("| `unshare -r` | – | exit 125: not started: no |"), "{table}");
    }

    #[test]
    fn the_document_has_its_marks_and_every_kind() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security/hosts.md");
        let table = MARKS.between(&fs::read_to_string(path).unwrap()).unwrap().to_owned();
        assert!(table.contains(HEAD), "{table}");
        for kind in [
            "`unshare -r`",
            "`unshare -rn`",
            "`unshare -r --map-auto`",
            "bubblewrap",
            "inside `mcp run`",
            "podman",
            "systemd-nspawn",
        ] {
            assert!(table.contains(kind), "{kind}: {table}");
        }
    }
}
