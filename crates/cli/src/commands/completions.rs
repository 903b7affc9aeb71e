//! `mcp completions`: what shells complete, and man pages, both made from the definitions of the command line.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Cli, Completions, CompletionsOf};
use crate::failure::Failure;

pub fn run(args: &Completions) -> Result<u8, Failure> {
    let shell = match args.shell {
        CompletionsOf::Bash => Shell::Bash,
        CompletionsOf::Zsh => Shell::Zsh,
        CompletionsOf::Fish => Shell::Fish,
        CompletionsOf::PowerShell => Shell::PowerShell,
        CompletionsOf::Elvish => Shell::Elvish,
        CompletionsOf::Man => {
            man_pages(args.dir.as_deref().unwrap_or(Path::new(".")))?;
            return Ok(0);
        }
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mcp", &mut script);
    // A closed pipe (`| head`) is no failure of ours.
    let _ = std::io::stdout().write_all(&script);
    Ok(0)
}

/// `mcp.1`, `mcp-run.1` and so on.
fn man_pages(directory: &Path) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(Cli::command(), directory)
    };
    write().map_err(|error| Failure::file(directory, &error))
}
