//! The command line of `mcp serve`.

use std::ffi::OsString;
use std::net::SocketAddr;

use clap::{Args, Subcommand};
use mcp_policy::Bytes;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  mcp serve npm:@modelcontextprotocol/server-everything      one server, for this machine alone
  mcp serve servers.toml                                     what the file says (docs/SERVE.md)
  mcp serve token alice --servers notes,files                a token, and its line for the file of tokens

Clients connect to http://127.0.0.1:8808/mcp/NAME. SIGTERM answers what is due and ends; SIGHUP reads the \
file again.")]
pub struct Serve {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Listen here (127.0.0.1:8808); beyond loopback only with authentication and TLS
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Judge the file and print the addresses, without serving
    #[arg(long)]
    pub check: bool,
    /// A proxy in front ends TLS
    #[arg(long)]
    pub behind_proxy: bool,
    /// The largest message, in either direction (16M)
    #[arg(long, value_name = "SIZE", value_parser = super::parse::<Bytes>)]
    pub max_message: Option<Bytes>,
    /// A file of servers (servers.toml), or the words after `mcp run` for one server
    #[arg(value_name = "SERVERS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub what: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make a token for a principal: prints its line for the file of tokens, and the token once
    Token {
        /// Who it is for
        name: String,
        /// What it may use: names with commas between, or *
        #[arg(long, default_value = "*")]
        servers: String,
    },
}
