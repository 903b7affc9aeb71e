//! `mcp policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Permissions, learn};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp policy check server.toml
  mcp policy show --read ~/notes --max-memory 256M
  mcp policy diff old.toml new.toml
  mcp policy minimize server.toml -- my-server")]
pub struct Policy {
    #[command(subcommand)]
    pub command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check a policy file
    Check {
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// What the second policy file gives more or less than the first; exit code 1 where they differ
    Diff {
        #[arg(value_name = "A")]
        first: PathBuf,
        #[arg(value_name = "B")]
        second: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a command with a policy, and drop the grants that it does not use
    #[command(after_help = "Examples:
  mcp policy minimize server.toml -o smaller.toml -- my-server
  mcp policy minimize server.toml --plain -- make test

Dropped are files, directories, sockets and destinations that were not used, and writing where only reading was. Variables and
limits are kept: whether a variable is read cannot be seen.")]
    Minimize {
        /// The policy
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Write the smaller policy to this file (default: standard output)
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// What was dropped as JSON on standard output
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        subject: Box<learn::Subject>,
    },
    /// Show the effective policy, and where each value comes from
    Show {
        #[command(flatten)]
        permissions: Box<Permissions>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}
