//! `mcp learn`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp learn --from-log my-server             propose from what ordinary runs were refused
  mcp learn --from-log my-server -o server.toml
  mcp learn --from-log my-server --merge server.toml

What is never proposed without --sensitive: places of credentials, the home directory as a whole, other users' homes,
private networks. They are named as \"asked for, not proposed\".")]
pub struct Learn {
    /// Propose from the refusals of ordinary runs whose reference or command has NAME in it
    #[arg(long, value_name = "NAME", required = true)]
    pub from_log: String,
    #[command(flatten)]
    pub result: Result,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Where what was learned goes, and what may be in it.
#[derive(Debug, Default, Args)]
pub struct Result {
    /// Write the policy to FILE (default: standard output)
    #[arg(long, short, value_name = "FILE", help_heading = "Learning")]
    pub output: Option<PathBuf>,
    /// Add to this policy file and show the difference
    #[arg(long, value_name = "FILE", conflicts_with = "output", help_heading = "Learning")]
    pub merge: Option<PathBuf>,
    /// Propose places of credentials and private networks as well
    #[arg(long, help_heading = "Learning")]
    pub sensitive: bool,
}
