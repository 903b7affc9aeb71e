//! `mcp learn`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use mcp_policy::Fallback;

use super::package;
use super::values::{fallback, home_name};
use super::{Logging, Permissions};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp learn --yes -o server.toml -- node server.js
  mcp learn --call 'read_file={\"path\":\"/srv/notes/a.md\"}' npx -y @modelcontextprotocol/server-filesystem /srv/notes
  mcp learn --calls calls.txt --read ./docs -- ./server --root ./docs
  mcp learn --explore npx -y @modelcontextprotocol/server-everything
  mcp learn --plain -- make test                    a command that is no MCP server
  mcp learn --from-log my-server                    propose from what ordinary runs were refused
  mcp learn --yes --merge server.toml -- my-server

The command runs in the sandbox in every round; nothing is opened to find out what it needs. What is never proposed without
--sensitive: places of credentials, the home directory as a whole, other users' homes, private networks. They are named as
\"asked for, not proposed\".

Exit codes: 0 the policy was proved: with it nothing is missing and no named call fails; 1 something is missing or fails; 3 there are
proposals that were not accepted.")]
#[command(mut_arg("yes", |arg| arg.help("Accept every proposal; grant what a package asks for").help_heading("Learning")))]
pub struct Learn {
    /// Propose from the refusals of ordinary runs whose reference or command has NAME in it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["reference", "command", "call", "calls", "explore"], help_heading = "Learning")]
    pub from_log: Option<String>,
    /// Sit between a client and the server for one session: standard input and output are the client's
    #[arg(long, conflicts_with_all = ["from_log", "call", "calls", "explore", "plain", "json"], help_heading = "Learning")]
    pub client: bool,
    /// Stop after N rounds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50), help_heading = "Learning")]
    pub rounds: u32,
    #[command(flatten)]
    pub result: Result,
    /// What was learned as JSON on standard output
    #[arg(long, help_heading = "Learning")]
    pub json: bool,
    #[command(flatten)]
    pub permissions: Permissions,
    #[command(flatten)]
    pub subject: Subject,
}

/// What is run to be watched, and how it is used.
#[derive(Debug, Args)]
pub struct Subject {
    /// Call this tool with these arguments; may be given several times
    #[arg(long, value_name = "TOOL=JSON", help_heading = "Learning")]
    pub call: Vec<String>,
    /// A file with one TOOL=JSON in each line
    #[arg(long, value_name = "FILE", help_heading = "Learning")]
    pub calls: Option<PathBuf>,
    /// Call the other tools with arguments made from their schemas, at most 50 of them; none that is annotated as destructive
    #[arg(long, help_heading = "Learning")]
    pub explore: bool,
    /// The command is no MCP server: it is run to its end
    #[arg(long, conflicts_with_all = ["call", "calls", "explore"], help_heading = "Learning")]
    pub plain: bool,
    /// How long each answer of the server, or a plain command, may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = "Learning")]
    pub patience: u64,
    /// Start in this directory (default: the current one where it is there inside, else HOME)
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub cwd: Option<PathBuf>,
    /// Keep HOME between runs, under this name
    #[arg(long, value_name = "NAME", value_parser = home_name, help_heading = "Run")]
    pub home: Option<String>,
    /// What to do when a boundary cannot be enforced here (deny)
    #[arg(long, value_name = "FALLBACK", value_parser = fallback(), help_heading = "Run")]
    pub fallback: Option<Fallback>,
    #[command(flatten)]
    pub log: Logging,
    #[command(flatten)]
    pub package: package::Running,
    /// A package: ./directory, ./file.mcpb, acme/test@1.0.0, npm:NAME, pypi:NAME, oci://HOST/NAME:TAG
    #[arg(value_name = "PACKAGE")]
    pub reference: Option<OsString>,
    /// A command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
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
