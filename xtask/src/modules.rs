//! `cargo xtask modules`: which module uses which, in every crate, for docs/ARCHITECTURE.md.
//!
//! Fails when modules use each other in a cycle, or when the document shows another graph than
//! the source has. Code for tests does not count, and code for every system does.

#[cfg(test)]
mod document;
mod graph;
mod scan;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use crate::Result;
use graph::Graph;
use scan::Crate;

const DOCUMENT: &str = "docs/ARCHITECTURE.md";
const BEGIN: &str = "<!-- Made by `cargo xtask modules --write`. -->";
const END: &str = "<!-- End of what `cargo xtask modules --write` makes. -->";

/// The crates from the bottom up, each with the modules that are big enough for a graph of their own.
const CRATES: [(&str, &[&str]); 14] = [
    ("files", &[]),
    ("policy", &[]),
    ("seccomp", &[]),
    ("probe", &[]),
    ("guard", &[]),
    ("net", &[]),
    ("package", &[]),
    ("sandbox", &["core", "unix", "linux", "macos", "windows"]),
    ("clients", &[]),
    ("learn", &[]),
    ("export", &[]),
    ("protocol", &[]),
    ("serve", &[]),
    ("cli", &["commands"]),
];

/// Show which module uses which; fail on a cycle or a stale document
#[derive(clap::Args)]
pub struct Args {
    /// Write the graph into docs/ARCHITECTURE.md
    #[arg(long)]
    write: bool,
    /// Say which lines make each edge of a cycle
    #[arg(long)]
    why: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let top = crate::workspace();
    let (text, cycles) = described(&top, args.why)?;
    for cycle in &cycles {
        eprintln!("{cycle}");
    }
    let path = top.join(DOCUMENT);
    let document = std::fs::read_to_string(&path)?;
    let renewed = renewed(&document, &text).ok_or_else(|| format!("{DOCUMENT} has no {BEGIN}"))?;
    if args.write && renewed != document {
        std::fs::write(&path, &renewed)?;
        println!("{DOCUMENT} is renewed");
    } else if renewed != document {
        eprintln!(
            "{DOCUMENT} shows another graph than the source has: cargo xtask modules --write"
        );
        return Ok(ExitCode::FAILURE);
    }
    match cycles.len() {
        0 => Ok(ExitCode::SUCCESS),
        count => Err(format!("{count} groups of modules use each other in a cycle").into()),
    }
}

/// The text for the document, and the cycles in words.
fn described(top: &Path, why: bool) -> Result<(String, Vec<String>)> {
    let (mut text, mut cycles) = ("\n```\n".to_owned(), Vec::new());
    for (name, deep) in CRATES {
        let of = Crate::read(&top.join("crates").join(name).join("src"))?;
        let levels = std::iter::once(None).chain(deep.iter().map(|module| Some(*module)));
        for level in levels {
            let graph = of.graph(level);
            let title =
                level.map_or(format!("crates/{name}"), |level| format!("crates/{name}: {level}"));
            writeln!(text, "{title}")?;
            text.push_str(&graph.listed());
            cycles.extend(graph.cycles().iter().map(|cycle| told(&title, &graph, cycle, why)));
        }
    }
    text.push_str("```\n\n");
    Ok((text, cycles))
}

fn told(title: &str, graph: &Graph, cycle: &[String], why: bool) -> String {
    let mut text = format!("{title}: a cycle of {}", cycle.join(", "));
    for (from, to, places) in graph.edges_within(cycle).filter(|_| why) {
        let _ = write!(text, "\n    {from} -> {to}: {}", places.join(" "));
    }
    text
}

/// The document with this text between its markers.
fn renewed(document: &str, text: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{text}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_looked_at() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let mut found: Vec<String> = std::fs::read_dir(crates)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        let mut listed: Vec<&str> = CRATES.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }

    #[test]
    fn what_is_between_the_markers_is_replaced_and_nothing_else() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(renewed(&document, "new\n"), Some(format!("a\n{BEGIN}\nnew\n{END}\nb\n")));
        assert_eq!(renewed("no markers", "new"), None);
    }
}
