//! The verbs for the configuration files of MCP clients.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Variable, parse, variable};
use mcp_policy::NetRule;

#[derive(Debug, Subcommand)]
pub enum Clients {
    /// Put the servers of your MCP clients behind `mcp run`: shows each change, asks, writes
    Wire(Wire),
    /// Take back what `mcp wire` and `mcp add` wrote
    Unwire(Unwire),
    /// Add a server to MCP clients, behind `mcp run` from the start
    Add(Add),
}

/// Which files and which servers.
#[derive(Debug, Args)]
pub struct Selection {
    /// Only this client: claude-desktop, codex, vscode … (all of them: mcp wire --status)
    #[arg(long, value_name = "ID")]
    pub client: Vec<String>,
    /// Only the server of this name
    #[arg(long, value_name = "NAME")]
    pub server: Vec<String>,
    /// The files of the project in DIR (.mcp.json, .vscode/mcp.json …) instead of your own
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp wire --dry-run                 what would be changed, as a diff; writes nothing
  mcp wire                           shows each server before and after, asks, writes
  mcp wire --client codex --yes      every server of one client, without asking
  mcp wire --status                  which servers are wired, in which file
  mcp wire --check                   exit code 1 where one is not: for a timer, a prompt or CI
  mcp wire --project .               the files of this project
  mcp wire --leave --server docker   this one stays as it is; --check is quiet about it

Each server becomes `mcp run` with its package or command, --env for each of its variables (their values stay \
where they are) and --read for directories among its arguments. It has no network unless something is known \
of it. `mcp unwire` takes all of it back, byte for byte.

Exit codes: 0 done, or nothing to do; 1 a server is not wired (--check), or a file could not be read or written; \
2 usage; 4 nothing is written, because there is no terminal to ask on (give --yes or --dry-run).")]
pub struct Wire {
    #[command(flatten)]
    pub selection: Selection,
    /// Show the changes as a diff, and write nothing
    #[arg(long, conflicts_with_all = ["yes", "status", "check", "leave"])]
    pub dry_run: bool,
    /// Do not ask; directories are given to read
    #[arg(long, short)]
    pub yes: bool,
    /// With --yes: how directories among the arguments are given
    #[arg(long, value_enum, value_name = "ACCESS", default_value_t = Access::Read)]
    pub directories: Access,
    /// List every server of every client, and whether it is wired
    #[arg(long, conflicts_with_all = ["check", "leave", "yes"])]
    pub status: bool,
    /// One line for each server that is not wired, and exit code 1 where there is one
    #[arg(long, conflicts_with_all = ["leave", "yes"])]
    pub check: bool,
    /// Remember that the servers named with --server stay as they are, while their command stays the same
    #[arg(long, requires = "server", conflicts_with = "yes")]
    pub leave: bool,
    /// Write this path of mcp into the files (default: the one that is installed)
    #[arg(long, value_name = "PATH")]
    pub binary: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Access {
    Read,
    Write,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp unwire                         everything that mcp wire and mcp add wrote
  mcp unwire --client codex
  mcp unwire --server filesystem --dry-run

A file that is still as mcp wrote it is put back byte for byte. \
In a file that was changed since, only the entries of mcp are put back.

Exit codes: 0 done, or nothing to do; 1 a file could not be put back; 2 usage.")]
pub struct Unwire {
    #[command(flatten)]
    pub selection: Selection,
    /// Show the changes as a diff, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// As for `mcp wire`; taking back never asks
    #[arg(short, long, hide = true)]
    pub yes: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp add npm:@modelcontextprotocol/server-everything --client codex
  mcp add npm:@modelcontextprotocol/server-filesystem --client claude-desktop --write ~/notes -- ~/notes
  mcp add --client cursor npx -y @modelcontextprotocol/server-memory
  mcp add --client cursor memory -- npx -y @modelcontextprotocol/server-memory
  mcp add pypi:mcp-server-time --name clock --client cursor --client vscode
  mcp add --env GITHUB_TOKEN=... -n api.github.com npm:some-server --client gemini-cli
  mcp add --remove npm:@modelcontextprotocol/server-everything --client codex

Exit codes: 0 done; 1 a file could not be read or written, or has the name already; 2 usage; 4 nothing is written, \
because there is no terminal to ask on (give --client or --yes).")]
pub struct Add {
    /// A package (npm:NAME, pypi:NAME, acme/test@1.0.0, ./file.mcpb), or a line such as npx -y NAME; with --remove the name of a
    /// server will do
    #[arg(value_name = "REF")]
    pub reference: String,
    /// To this client; without it every client that has a file here is offered
    #[arg(long, value_name = "ID")]
    pub client: Vec<String>,
    /// What the client calls it (default: from the package's name)
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Into the files of the project in DIR instead of your own
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// A file or directory that it may read
    #[arg(long, short, value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// A file or directory that it may read and write
    #[arg(long, short, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// A host that it may reach
    #[arg(long, short = 'n', value_name = "RULE", value_parser = parse::<NetRule>)]
    pub allow_net: Vec<NetRule>,
    /// A variable for it; with a value, the client's file holds the value
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub env: Vec<Variable>,
    /// Take it out again
    #[arg(long)]
    pub remove: bool,
    /// Show the changes as a diff, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask which clients: all that have a file here
    #[arg(long, short)]
    pub yes: bool,
    /// Write this path of mcp into the files (default: the one that is installed)
    #[arg(long, value_name = "PATH")]
    pub binary: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Arguments for the server
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<String>,
    /// The program of the package, where a runner's line names another than its own.
    #[arg(skip)]
    pub program: Option<String>,
}
