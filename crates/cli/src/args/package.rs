//! The verbs and flags for packages.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use mcp_policy::{Bytes, Duration, NetRule};

use super::parse;

#[derive(Debug, Subcommand)]
pub enum Package {
    /// Make a bundle of a directory: the same input, the same digest
    Pack(Pack),
    /// Fetch packages into the store, or take in bundle files
    Pull(Pull),
    /// Send a package to a registry
    Push(Push),
    /// List the packages in the store
    #[command(alias = "ls")]
    List(List),
    /// Show what a package is, what it runs and what it asks for
    Inspect(Inspect),
    /// Remove packages from the store
    #[command(alias = "rm")]
    Remove(Remove),
    /// Remove what is not needed any more
    Gc(Gc),
    /// Fetch newer versions, and show what they ask for beyond today's
    Update(Update),
    /// List what was granted to packages and remembered, or revoke it
    Grants(Grants),
    /// List what packages keep between their runs, show it, or remove it
    Data(Data),
    /// Check every byte of the packages in the store
    Verify(Verify),
    /// Search the public MCP registry
    Search(Search),
    /// Keep credentials for a registry
    Login(Login),
    /// Forget the credentials for a registry
    Logout(Logout),
    /// Print the JSON Schema of mcp.toml
    #[command(after_help = "Examples:
  mcp schema > mcp.schema.json")]
    Schema,
    /// Show what was run, and how it ended
    Log(Log),
}

/// Where packages come from, and what must be true of them.
#[derive(Debug, Clone, Default, Args)]
pub struct Fetching {
    /// The registry for names such as acme/test: HOST or HOST/PREFIX (default: MCP_REGISTRY)
    #[arg(long, value_name = "HOST", env = "MCP_REGISTRY", help_heading = "Packages")]
    pub registry: Option<String>,
    /// Speak to registries without TLS (localhost needs no flag)
    #[arg(long, help_heading = "Packages")]
    pub plain_http: bool,
    /// Take only packages signed with this minisign public key (a file, or the key itself)
    #[arg(long, value_name = "KEY", help_heading = "Packages")]
    pub require_signature: Option<String>,
    /// For npm: packages, run what they want to run at installation, in a sandbox without token and without network
    /// (but for --install-net). A package that was installed without its scripts is installed again
    #[arg(long, help_heading = "Packages")]
    pub allow_scripts: bool,
    /// For pypi: packages, build what has no wheel from source: code of the package runs, in a sandbox that reaches the
    /// index and holds no secret
    #[arg(long, help_heading = "Packages")]
    pub allow_build: bool,
    /// A further host that an installation may reach, for what npm: and pypi: packages have outside of their index
    #[arg(long, value_name = "HOST[:PORT]", value_parser = parse::<NetRule>, help_heading = "Packages")]
    pub install_net: Vec<NetRule>,
}

/// What belongs to packages among the flags of `run`.
#[derive(Debug, Clone, Default, Args)]
pub struct Running {
    #[command(flatten)]
    pub fetching: Fetching,
    /// A setting of the package; several times for a list. Secret ones by reference: KEY=env:NAME
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Packages")]
    pub config: Vec<(String, String)>,
    /// Grant what the package asks for, and remember it
    #[arg(long, short, help_heading = "Packages")]
    pub yes: bool,
    /// Keep nothing: HOME, and what the package writes beside its own files, are gone after the run (--strict implies it)
    // `mcp serve` sets it before the user's own words, where it may stand again.
    #[arg(long, conflicts_with = "home", overrides_with = "ephemeral", help_heading = "Packages")]
    pub ephemeral: bool,
    /// Pass on lines of its standard output that are not JSON; without this they go to standard error
    // Set by `mcp serve`, as above.
    #[arg(long, overrides_with = "raw", help_heading = "Packages")]
    pub raw: bool,
    /// Start it without what it asks for and was not granted
    #[arg(long, conflicts_with = "yes", help_heading = "Packages")]
    pub without_grants: bool,
    /// The program of a package that has several (default: the one named like the package)
    #[arg(long = "bin", value_name = "NAME", help_heading = "Packages")]
    pub program: Option<String>,
    /// Marks a run whose package was fetched or made just before: how often that was.
    #[arg(long, hide = true, action = clap::ArgAction::Count)]
    pub fetched: u8,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp pack ./my-server
  mcp pack ./my-server -o my-server.mcpb")]
pub struct Pack {
    /// A directory with a manifest.json or mcp.toml
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Where to write the bundle (default: NAME-VERSION.mcpb here)
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp pull npm:@modelcontextprotocol/server-everything pypi:mcp-server-time
  mcp pull acme/test@1.0.0 --require-signature key.pub
  mcp pull ./server.mcpb")]
pub struct Pull {
    /// acme/test@1.0.0, oci://HOST/NAME:TAG, npm:NAME, pypi:NAME, io.github.user/server, ./file.mcpb
    #[arg(value_name = "REFERENCE", required = true)]
    pub references: Vec<String>,
    #[command(flatten)]
    pub fetching: Fetching,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp push ./server.mcpb acme/test@1.0.0 --registry registry.example.com
  mcp push acme/test@1.0.0 oci://registry.example.com/team/test:1.0.0")]
pub struct Push {
    /// A bundle file, a directory, or a package in the store
    #[arg(value_name = "WHAT")]
    pub what: String,
    /// Where to: NAME@VERSION or oci://HOST/NAME:TAG (default: its own name and version)
    #[arg(value_name = "REFERENCE")]
    pub to: Option<String>,
    /// Move the tag `latest` to it as well
    #[arg(long)]
    pub latest: bool,
    /// Sign it with this minisign secret key; its password is asked for, or in MCP_KEY_PASSWORD
    #[arg(long, value_name = "FILE")]
    pub sign: Option<PathBuf>,
    /// The registry for names such as acme/test: HOST or HOST/PREFIX (default: MCP_REGISTRY)
    #[arg(long, value_name = "HOST", env = "MCP_REGISTRY")]
    pub registry: Option<String>,
    /// Speak to registries without TLS (localhost needs no flag)
    #[arg(long)]
    pub plain_http: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp list
  mcp list --json | jq -r '.[].name'")]
pub struct List {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp inspect npm:@modelcontextprotocol/server-everything
  mcp inspect ./server.mcpb --json")]
pub struct Inspect {
    /// A package in the store, a directory or a bundle file
    #[arg(value_name = "REFERENCE")]
    pub reference: String,
    /// List the tags that the registry has of it
    #[arg(long)]
    pub tags: bool,
    #[command(flatten)]
    pub fetching: Fetching,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp remove npm:@modelcontextprotocol/server-everything
  mcp rm acme/test@1.0.0")]
pub struct Remove {
    #[arg(value_name = "REFERENCE", required = true)]
    pub references: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp update                                 every package that was asked for without a version
  mcp update npm:@modelcontextprotocol/server-everything
  mcp update --dry-run                       what is newer and what it would ask for; nothing changes

A newer version has no grants: its first start asks again. The older one stays under its exact version until \
`mcp remove` or `mcp gc` takes it away.

Exit codes: 0 all looked at; 1 one of them could not be.")]
pub struct Update {
    /// Packages to update; without any, all of them
    #[arg(value_name = "REFERENCE")]
    pub references: Vec<String>,
    /// Show what is newer, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub fetching: Fetching,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp grants
  mcp grants revoke acme/test                            all that it was granted, every version
  mcp grants revoke acme/test 'read /home/me/notes'      one wish, as the list shows it
  mcp grants revoke --all")]
pub struct Grants {
    #[command(subcommand)]
    pub command: Option<GrantsCommand>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum GrantsCommand {
    /// Forget grants: the next start of the package asks again
    #[command(after_help = "Examples:
  mcp grants revoke acme/test
  mcp grants revoke acme/test 'read /home/me/notes'
  mcp grants revoke --all")]
    Revoke {
        /// The package, as `mcp grants` names it
        #[arg(value_name = "PACKAGE", required_unless_present = "all")]
        package: Option<String>,
        /// Only these wishes, as `mcp grants` shows them
        #[arg(value_name = "WISH")]
        wishes: Vec<String>,
        /// Everything that was granted to any package
        #[arg(long, conflicts_with = "package")]
        all: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp data                                               who keeps how much
  mcp data show npm:@modelcontextprotocol/server-memory  what, and where it is
  mcp data remove npm:@modelcontextprotocol/server-memory")]
pub struct Data {
    #[command(subcommand)]
    pub command: Option<DataCommand>,
    /// As JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Show what a package keeps: its HOME, and what it wrote beside its own files
    #[command(after_help = "Examples:
  mcp data show npm:@modelcontextprotocol/server-memory")]
    Show {
        /// The package, as `mcp data` names it
        #[arg(value_name = "PACKAGE")]
        package: String,
    },
    /// Remove what packages keep; the next run starts anew
    #[command(
        alias = "rm",
        after_help = "Examples:
  mcp data remove npm:@modelcontextprotocol/server-memory
  mcp data remove --all"
    )]
    Remove {
        /// The packages, as `mcp data` names them
        #[arg(value_name = "PACKAGE", required_unless_present = "all")]
        packages: Vec<String>,
        /// Everything that any package keeps
        #[arg(long, conflicts_with = "packages")]
        all: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp gc                         packages that no name refers to
  mcp gc --older-than 30d        packages that were not run for a month, too
  mcp gc --max-size 2G           the least recently used beyond 2 GiB, too")]
pub struct Gc {
    /// Keep the packages used last, up to this size
    #[arg(long, value_name = "SIZE", value_parser = parse::<Bytes>)]
    pub max_size: Option<Bytes>,
    /// Remove packages that were not used for this long
    #[arg(long, value_name = "TIME", value_parser = parse::<Duration>)]
    pub older_than: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp verify                     every package in the store
  mcp verify acme/test@1.0.0")]
pub struct Verify {
    /// Packages to check; without any, all of them
    #[arg(value_name = "REFERENCE")]
    pub references: Vec<String>,
    /// Check the signature with this minisign public key as well (a file, or the key itself)
    #[arg(long, value_name = "KEY")]
    pub require_signature: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp search filesystem
  mcp search github --json")]
pub struct Search {
    #[arg(value_name = "WORDS", required = true)]
    pub words: Vec<String>,
    /// Another registry that speaks the same
    #[arg(long, value_name = "URL", env = "MCP_PUBLIC_REGISTRY")]
    pub url: Option<String>,
    /// List at most this number of servers
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub limit: u32,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp login registry.example.com --username me --password-stdin < token.txt")]
pub struct Login {
    /// HOST or HOST:PORT
    #[arg(value_name = "REGISTRY")]
    pub host: String,
    #[arg(long, short, value_name = "NAME")]
    pub username: Option<String>,
    /// Read the password or token from standard input
    #[arg(long)]
    pub password_stdin: bool,
    /// Speak to the registry without TLS (localhost needs no flag)
    #[arg(long)]
    pub plain_http: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp logout registry.example.com")]
pub struct Logout {
    /// HOST or HOST:PORT
    #[arg(value_name = "REGISTRY")]
    pub host: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp log
  mcp log --json | jq .
  mcp log my-server --suggest                what these runs were refused, as a policy")]
pub struct Log {
    /// Only runs of what has this in its reference or command
    #[arg(value_name = "WORD")]
    pub word: Option<String>,
    /// Only what happened in the last TIME
    #[arg(long, value_name = "TIME", value_parser = parse::<Duration>)]
    pub since: Option<Duration>,
    /// Only what did not go well: refused, killed, or an exit code other than 0
    #[arg(long)]
    pub failed: bool,
    /// The last N runs (default: 50)
    #[arg(long, short = 'n', value_name = "N", value_parser = super::runs)]
    pub last: Option<usize>,
    /// Go on as new lines come
    #[arg(long, short)]
    pub follow: bool,
    /// Propose a policy from what these runs were refused
    #[arg(long, conflicts_with = "follow")]
    pub suggest: bool,
    /// The lines as they are, JSON
    #[arg(long)]
    pub json: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        // The value may be a secret: not repeated.
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}
