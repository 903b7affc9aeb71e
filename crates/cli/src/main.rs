//! `mcp`: runs MCP servers and AI-agent commands as programs nobody trusts.

mod args;
mod commands;
mod failure;
mod layers;
mod paths;
mod render;

use std::process::ExitCode;

fn main() -> ExitCode {
    // For programs that use the library with this binary as their helper.
    mcp_sandbox::helper::dispatch();
    // Before anything else: inside a sandbox of `doctor` or `demo` this binary is the guest.
    if let Some(code) = commands::guest::dispatch() {
        return code;
    }
    let args = args::command_line();
    let outcome = match args.command {
        args::Command::Run(run) => commands::run::run(run),
        args::Command::Doctor(doctor) => commands::doctor::run(doctor),
        args::Command::Demo(demo) => commands::demo::run(demo),
        args::Command::Policy(policy) => commands::policy::run(policy),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{} {failure}", render::prefix());
            ExitCode::from(failure.exit_code())
        }
    }
}
