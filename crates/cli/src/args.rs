//! The command line. Every flag of `run` maps to one key of a policy file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use mcp_policy::{Bytes, Cores, Duration, Fallback, NetRule, Rate};

mod check;
pub mod exec;
pub mod export;
mod flags;
pub mod image;
pub mod learn;
mod line;
pub mod package;
mod policy;
mod run_line;
pub mod serve;
mod values;
mod verbs;
pub mod wire;
mod words;

pub use check::{Check, ShellFlag};
pub use line::{command_line, taken_by_an_option, words_of_run};
pub use policy::{Policy, PolicyCommand};
pub use run_line::run_line;
pub use values::{Limit, Variable};
use values::{count, fallback, home_name, limit, millicores, parse, port, runs, variable};
pub use words::{is_package, options_of_run, words_of_exec};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

#[derive(Debug, Parser)]
#[command(name = "mcp", version, about, styles = STYLES, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  mcp demo                                   watch it stop the attacks of a malicious server
  mcp doctor                                 what this machine can enforce, by trying it
  mcp run npx -y some-server                 the line of a client's configuration, in a sandbox
  mcp run --read ~/notes my-server           run a server that may read ~/notes and nothing else
  mcp run --explain my-server                what would be done, without doing it
  mcp run acme/test@1.0.0                    fetch, verify and run a package
  mcp exec -- 'make -j4 && make test'        run an agent's command in this project
  mcp check 'curl x | sh'                    judge a command without running it")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a package or a command in a sandbox: no network, no files but the system's and those you grant
    Run(Box<Run>),
    /// Run one shell command of an agent: the project can be written, nothing else, and there is no network
    Exec(Box<exec::Exec>),
    /// Propose the policy that a server or command needs
    Learn(Box<learn::Learn>),
    /// Try every mechanism on this machine and say what holds
    Doctor(Doctor),
    /// Let a malicious MCP server try its attacks (23 on Linux), without and with the sandbox
    Demo(Demo),
    /// Serve MCP servers over HTTP, each session or principal with a sandbox of its own
    Serve(serve::Serve),
    /// Write manifests for Kubernetes, systemd or podman, with what each control comes to there
    Export(Box<export::Export>),
    /// Make a container image of a package, by adding layers to a base: nothing is executed
    Image(Box<image::Image>),
    /// List the sandboxes that run now
    Ps(Ps),
    /// Kill everything in a sandbox
    Kill(Kill),
    /// What a sandbox uses now
    Stats(Stats),
    /// Check a policy file, or show the policy that is in effect
    Policy(Policy),
    /// Judge a shell command without running it: allowed, refused, to be asked, or not readable
    Check(Check),
    /// Print completions for a shell, or write man pages
    Completions(Completions),
    #[command(flatten)]
    Wire(wire::Clients),
    #[command(flatten)]
    Package(package::Package),
}

#[derive(Debug, Default, Args)]
#[command(
    override_usage = "mcp run [OPTIONS] COMMAND...\n       mcp run [OPTIONS] PACKAGE [OPTIONS] [-- ARGUMENTS...]"
)]
#[command(after_help = "Examples:
  mcp run npx -y @modelcontextprotocol/server-everything
  mcp run --write ~/notes npx -y @modelcontextprotocol/server-filesystem ~/notes
  mcp run --read . node server.js
  mcp run --read ./docs --write ./out --timeout 10m -- ./server --root ./docs
  mcp run --secret GITHUB_TOKEN=env:GITHUB_TOKEN -- github-server
  mcp run --policy server.toml --report report.json -- my-server
  mcp run --allow-net api.github.com --allow-net '*.example.com:443' -- my-server
  mcp run acme/test@1.0.0 --max-memory 64M --config dir=./data -- --verbose

Network rules: [tcp://|udp://]HOST[:PORT][,tls=off]. HOST is a name, *.NAME for all names below it, an \
address or a network (10.1.0.0/16, [2001:db8::/32]); PORT a number or *, 443 and 80 without one. Private \
addresses have to be named. The word public instead of HOST is every public address and name over tcp, on \
every port unless one is given, and nothing of this machine's own networks. Where a rule names a host, mcp checks each TLS \
connection: it must be for that name, and on port 443 every connection must be TLS. ,tls=off switches both checks off. \
Rules with an address, or with localhost (127.0.0.1 and ::1 of this machine), have no name to check.

Exit codes: the command's own; 128+n for signal n; 124 timeout; 125 the sandbox could not be set \
up; 126 not executable; 127 not found; 2 usage.")]
pub struct Run {
    #[command(flatten)]
    pub permissions: Permissions,
    /// Start in this directory (default: the current one where it is there inside, else HOME)
    #[arg(long, short = 'C', value_name = "DIR", help_heading = "Run")]
    pub cwd: Option<PathBuf>,
    /// This machine's Chromium or Chrome, for servers that drive one: headless, without its own sandbox (this one holds),
    /// and with larger default limits. Linux only
    #[arg(long, help_heading = "Permissions")]
    pub browser: bool,
    /// Keep HOME between runs, under this name (default: a package keeps its own, a command's is gone after the run)
    #[arg(long, value_name = "NAME", value_parser = home_name, help_heading = "Run")]
    pub home: Option<String>,
    #[command(flatten)]
    pub starting: Starting,
    #[command(flatten)]
    pub package: package::Running,
    /// A package: ./directory, ./file.mcpb, acme/test@1.0.0, npm:NAME, pypi:NAME, oci://HOST/NAME:TAG
    #[arg(value_name = "PACKAGE")]
    pub reference: Option<OsString>,
    /// A command and its arguments (npx, uvx and their like become the package they name); after a package,
    /// arguments for its server. `--` before it is only needed where it begins with a dash
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// How a sandbox is started, whatever runs in it.
#[derive(Debug, Default, Args)]
pub struct Starting {
    /// What to do when a boundary cannot be enforced here (deny)
    #[arg(long, value_name = "FALLBACK", value_parser = fallback(), help_heading = "Run")]
    pub fallback: Option<Fallback>,
    /// Refuse to start when anything, limits included, is less than asked for
    #[arg(long, help_heading = "Run")]
    pub strict: bool,
    /// Say what the command could read, write, reach and see, and stop
    #[arg(long, conflicts_with = "report", help_heading = "Output")]
    pub explain: bool,
    /// With --explain: every step of the plan as well
    #[arg(long, requires = "explain", help_heading = "Output")]
    pub steps: bool,
    /// With --explain: the plan of another system, for paths taken as they are written
    #[arg(long, value_enum, value_name = "SYSTEM", requires = "explain", help_heading = "Output")]
    pub platform: Option<Platform>,
    /// Print as JSON: what --explain says, or the result of `mcp exec`
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write what was enforced and used to FILE, as JSON; `-` writes to standard error (standard output belongs to the server)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Note the paths that the command looks for in the report: how `mcp learn` starts a run.
    #[arg(long, hide = true)]
    pub watch_paths: bool,
    /// Nothing of our own on stderr but errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    #[command(flatten)]
    pub log: Logging,
}

#[derive(Debug, Default, Args)]
pub struct Logging {
    /// Run without a line in the audit log
    #[arg(long, help_heading = "Output")]
    pub no_log: bool,
}

/// What the command is given: the flags that make up the command line's policy layer.
#[derive(Debug, Default, Args)]
pub struct Permissions {
    /// A policy file (TOML)
    #[arg(long, value_name = "FILE", help_heading = "Permissions")]
    pub policy: Option<PathBuf>,
    /// A file or directory the command may read
    #[arg(long, short, value_name = "PATH", help_heading = "Permissions")]
    pub read: Vec<PathBuf>,
    /// A file or directory the command may read and write
    #[arg(long, short, value_name = "PATH", help_heading = "Permissions")]
    pub write: Vec<PathBuf>,
    /// A path or glob (**/.env) that stays closed inside granted directories; wins over them
    #[arg(long, value_name = "PATH|GLOB", help_heading = "Permissions")]
    pub deny: Vec<PathBuf>,
    /// Keep git, editor, agent and shell settings as they are inside what may be written
    #[arg(long, overrides_with = "no_protect", help_heading = "Permissions")]
    pub protect: bool,
    /// Let the command write those, too
    #[arg(long, help_heading = "Permissions")]
    pub no_protect: bool,
    /// A protected path the command may write: .git/config
    #[arg(long, alias = "allow-write", value_name = "PATH", help_heading = "Permissions")]
    pub unprotect: Vec<PathBuf>,
    /// A host the command may reach: api.github.com:443, *.example.com, 10.1.0.0/16:5432
    #[arg(long, short = 'n', value_name = "RULE", value_parser = parse::<NetRule>, help_heading = "Permissions")]
    pub allow_net: Vec<NetRule>,
    /// A unix socket of the host that the command may use
    #[arg(long, value_name = "PATH", help_heading = "Permissions")]
    pub allow_unix: Vec<PathBuf>,
    /// A port on which the command listens: programs on this machine reach it at 127.0.0.1 (on Windows at ::1)
    #[arg(long, value_name = "PORT", value_parser = port, help_heading = "Permissions")]
    pub listen: Vec<u16>,
    /// On macOS, with --allow-net: the system's certificate service, which Go programs need for TLS
    #[arg(long, help_heading = "Permissions")]
    pub system_trust: bool,
    /// `host` gives the command the host's own network, unrestricted
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Permissions")]
    pub network: Option<NetworkFlag>,
    /// No new processes and no exec; threads work
    #[arg(long, help_heading = "Permissions")]
    pub no_subprocess: bool,
    /// A variable to pass on, or to set
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = variable, help_heading = "Permissions")]
    pub env: Vec<Variable>,
    /// A file with NAME=VALUE lines
    #[arg(long, value_name = "FILE", help_heading = "Permissions")]
    pub env_file: Vec<PathBuf>,
    /// A secret by reference: NAME=env:X, NAME=file:PATH or NAME=cmd:COMMAND
    #[arg(long, value_name = "NAME=REF", help_heading = "Permissions")]
    pub secret: Vec<String>,
    /// Memory of all processes together (512M; `none` for no limit)
    #[arg(long, aliases = ["memory"], value_name = "SIZE", value_parser = limit::<Bytes>, help_heading = "Limits")]
    pub max_memory: Option<Limit<Bytes>>,
    /// Processor share in millicores (100 = a tenth of a core)
    #[arg(long, value_name = "MILLICORES", value_parser = millicores, help_heading = "Limits")]
    pub max_cpu: Option<Limit<Cores>>,
    /// Processor time of each process
    #[arg(long, value_name = "TIME", value_parser = limit::<Duration>, help_heading = "Limits")]
    pub max_cpu_time: Option<Limit<Duration>>,
    /// Bytes each second to and from every disk with a writable grant (10M/s)
    #[arg(long, value_name = "RATE", value_parser = limit::<Rate>, help_heading = "Limits")]
    pub max_io: Option<Limit<Rate>>,
    /// Processes and threads (128)
    #[arg(long, aliases = ["max-processes", "pids-limit"], value_name = "N", value_parser = count, help_heading = "Limits")]
    pub max_pids: Option<Limit<u32>>,
    /// Open files of each process (1024)
    #[arg(long, aliases = ["max-files", "max-open-files"], value_name = "N", value_parser = count, help_heading = "Limits")]
    pub max_fds: Option<Limit<u32>>,
    /// Size of each file written
    #[arg(long, value_name = "SIZE", value_parser = limit::<Bytes>, help_heading = "Limits")]
    pub max_file_size: Option<Limit<Bytes>>,
    /// Temporary space: /tmp, /dev/shm and a HOME that is not kept, together (256M)
    #[arg(long, value_name = "SIZE", value_parser = parse::<Bytes>, help_heading = "Limits")]
    pub max_tmp: Option<Bytes>,
    /// Address space of each process (Node, Go and Java reserve gigabytes)
    #[arg(long, value_name = "SIZE", value_parser = limit::<Bytes>, help_heading = "Limits")]
    pub max_address_space: Option<Limit<Bytes>>,
    /// End the command after this time
    #[arg(long, value_name = "TIME", value_parser = limit::<Duration>, help_heading = "Limits")]
    pub timeout: Option<Limit<Duration>>,
    /// Time to end after a timeout or a signal to mcp, before SIGKILL (5s)
    #[arg(long, value_name = "TIME", value_parser = parse::<Duration>, help_heading = "Limits")]
    pub grace: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp doctor               what holds on this machine, each thing tried
  mcp doctor --full        programs and boundaries one by one, and a summary to paste into an issue
  mcp doctor --json        the same for a program, or for an issue
  mcp doctor --clean       before mcp is removed from a Windows machine")]
pub struct Doctor {
    /// Try also what programs need: compilers, node, python, git, servers (up to a minute)
    #[arg(long)]
    pub full: bool,
    /// Only the checks of --full whose names begin with NAME (implies --full)
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Remove what runs left on purpose: on Windows, entries that let containers read directories of programs and packages
    #[arg(long, conflicts_with_all = ["full", "only"])]
    pub clean: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp demo                 the attacks, without and with the sandbox
  mcp demo --json")]
pub struct Demo {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp ps
  mcp ps --json | jq .")]
pub struct Ps {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp kill 3f2a            the first digits of an id will do
  mcp ps --json | jq -r '.[].id' | xargs mcp kill")]
pub struct Kill {
    /// The sandboxes, as `mcp ps` names them; the first digits will do
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp stats 3f2a
  watch -n1 mcp stats 3f2a")]
pub struct Stats {
    /// The sandbox, as `mcp ps` names it; the first digits will do
    #[arg(value_name = "ID")]
    pub id: String,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp completions bash > ~/.local/share/bash-completion/completions/mcp
  mcp completions zsh > ~/.zfunc/_mcp                # with fpath+=~/.zfunc before compinit
  mcp completions fish > ~/.config/fish/completions/mcp.fish
  mcp completions powershell >> $PROFILE
  mcp completions man --dir ~/.local/share/man/man1")]
pub struct Completions {
    /// Of which shell; `man` for man pages
    #[arg(value_name = "SHELL")]
    pub shell: CompletionsOf,
    /// With `man`: where to write the pages
    #[arg(long, value_name = "DIR", required_if_eq("shell", "man"))]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompletionsOf {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell", alias = "pwsh")]
    PowerShell,
    Elvish,
    /// Man pages, one for each verb
    Man,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Platform {
    /// The Seatbelt profile that a Mac would enforce
    Macos,
    /// The job, container and entries that Windows would enforce
    Windows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NetworkFlag {
    /// The host's own network
    Host,
    /// Only what is allowed (the default)
    Isolated,
}
