//! `cargo xtask order`: puts the functions that a start needs side by side in the program.
//!
//! The kernel maps a program in windows of 64 KiB as it is executed. What a start needs is a
//! seventh of ours, and spread over all of it touched 116 such windows; 65 faults less made a start
//! 6 % cheaper. This runs
//! a start instruction by instruction and writes the functions it came by to a linker script,
//! which `build.rs` of the launcher gives to the linker. Names stand there without the hashes of
//! one build; a name that no longer exists does no harm, so this is worth running again only when
//! much has moved.

mod sections;
mod sys;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, ExitCode};

use crate::{Result, launcher};
use sections::Sections;
use trace::Trace;

/// From the top of the workspace.
const SCRIPT: &str = "crates/cli/start.ld";

const STARTS: [&[&str]; 2] =
    [&["run", "--", "/bin/true"], &["run", "--allow-net", "example.com", "--", "/bin/true"]];

/// Find what a start executes, and write the order of functions for the linker (takes minutes; as root)
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Result<ExitCode> {
    let scratch = crate::target_directory().join("order");
    fs::create_dir_all(&scratch)?;
    let map = scratch.join("map");
    let link = format!("link-arg=-Wl,-Map={}", map.display());
    let program = launcher::build("rustc", &["--", "-C", &link])?;
    let sections = Sections::parse(&fs::read_to_string(&map)?);
    let mut patterns = BTreeMap::new();
    for words in STARTS {
        let mut start = Command::new(&program);
        start.args(words);
        for home in ["XDG_DATA_HOME", "XDG_STATE_HOME"] {
            start.env(home, &scratch);
        }
        let trace = Trace::of(start, &program)?;
        println!(
            "mcp {}: {} instructions in {} processes",
            words.join(" "),
            trace.steps,
            trace.processes.len()
        );
        collect(&trace, &sections, &mut patterns);
    }
    fs::write(crate::workspace().join(SCRIPT), script(&patterns))?;
    println!("{SCRIPT}: {} names", patterns.len());
    Ok(ExitCode::SUCCESS)
}

/// Who executes a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    /// A process inside: it has to fetch what the launcher has fetched before.
    Inside,
    Launcher,
}

fn collect(trace: &Trace, sections: &Sections, patterns: &mut BTreeMap<String, By>) {
    for (number, offsets) in trace.processes.values().enumerate() {
        let by = if number == 0 { By::Launcher } else { By::Inside };
        for pattern in offsets.iter().filter_map(|offset| sections.pattern_at(*offset)) {
            patterns.entry(pattern).and_modify(|so_far| *so_far = by.min(*so_far)).or_insert(by);
        }
    }
}

fn script(patterns: &BTreeMap<String, By>) -> String {
    let sorted: BTreeSet<(By, &String)> = patterns.iter().map(|(name, by)| (*by, name)).collect();
    let lines: String = sorted.iter().map(|(_, pattern)| format!("    {pattern}\n")).collect();
    format!(
        "/* What a start executes, side by side. Made by `cargo xtask order`. */\n\
         SECTIONS\n{{\n  .text.start :\n  {{\n{lines}  }}\n}}\nINSERT BEFORE .text;\n"
    )
}
