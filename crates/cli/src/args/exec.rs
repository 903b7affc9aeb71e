//! The flags of `mcp exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use mcp_policy::GuardMode;

use super::{Permissions, Starting, home_name};

#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  mcp exec -- 'cargo build && cargo test'
  mcp exec -C ~/src/app -- 'git commit -am done'
  mcp exec --allow-net registry.npmjs.org:443 --home npm -- npm ci
  mcp exec --unprotect .git/config -- git remote add origin https://github.com/a/a.git
  mcp exec --json -- 'make test' | jq .exit_code
  mcp exec --rules my-rules.toml --report report.json -- 'python3 -c 1'

With --json one JSON object on standard output says it all: exit_code, stdout, stderr, what the guard refused, which \
hosts were blocked, what was undone, hints at what to grant, and the whole report. Standard input is the command's.

The current directory (or -C) can be written; HOME is empty but for links to what is granted below yours, and there is no network. Settings that other \
programs act on (.git/hooks, .git/config, .vscode, .mcp.json, .bashrc …) stay as they are: those that are \
there are read-only, new ones are removed when the command has ended, and a line says so.

Network rules are written as for `mcp run`.

Limits by default: 2 minutes, 4 GiB of memory, 1024 processes, 1 GiB of temporary space.

Exit codes: the command's own; 126 the guard refused it, or not executable; otherwise as for `mcp run`.")]
#[command(mut_arg("max_memory", |arg| arg.help("Memory of all processes together (4 GiB; `none` for no limit)")))]
#[command(mut_arg("max_pids", |arg| arg.help("Processes and threads (1024)")))]
#[command(mut_arg("max_tmp", |arg| arg.help("Temporary space: /tmp, /dev/shm and a HOME that is not kept, together (1 GiB)")))]
pub struct Exec {
    #[command(flatten)]
    pub permissions: Permissions,
    /// Go there first: the project, and what relative paths mean
    #[arg(short = 'C', long = "cwd", value_name = "DIR", help_heading = "Run")]
    pub directory: Option<PathBuf>,
    /// The shell that runs it (default: bash where there is one; on Windows PowerShell, in constrained language
    /// mode)
    #[arg(long, value_enum, help_heading = "Run")]
    pub shell: Option<ExecShell>,
    /// Keep HOME between commands, under this name: caches of package managers (default: gone after the run)
    #[arg(long, value_name = "NAME", value_parser = home_name, help_heading = "Run")]
    pub home: Option<String>,
    /// A file with rules of your own for the guard (TOML)
    #[arg(long, value_name = "FILE", help_heading = "Guard")]
    pub rules: Option<PathBuf>,
    /// strict: refuse programs given as text (python -c), detaching and tools aimed at the loopback, too; usual:
    /// leave them to the sandbox and note them in the report
    #[arg(long, value_name = "MODE", value_parser = guard_mode, help_heading = "Guard")]
    pub guard: Option<GuardMode>,
    /// Yes to what the guard would ask; what it refuses stays refused
    #[arg(long, help_heading = "Guard")]
    pub yes: bool,
    /// Do not have the guard judge the command; the sandbox is the boundary
    #[arg(long, conflicts_with_all = ["rules", "yes", "guard"], help_heading = "Guard")]
    pub no_guard: bool,
    #[command(flatten)]
    pub starting: Starting,
    /// With --json: each piece of output as a line of JSON as it comes, the result as the last line
    #[arg(long, requires = "json", help_heading = "Output")]
    pub stream: bool,
    /// Marks the run whose output another mcp puts into JSON, and names the file for its hints.
    #[arg(long, value_name = "FILE", hide = true)]
    pub captured: Option<PathBuf>,
    /// The command: one quoted text for the shell ('make && make test'), or separate words (make test)
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

fn guard_mode(word: &str) -> Result<GuardMode, String> {
    let known = GuardMode::WORDS.iter().find(|(known, _)| *known == word);
    known.map(|(_, mode)| *mode).ok_or_else(|| "write usual or strict".to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExecShell {
    Bash,
    Sh,
    #[value(name = "powershell", alias = "pwsh")]
    PowerShell,
    Cmd,
}
