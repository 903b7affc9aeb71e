//! `mcp`: runs MCP servers and AI-agent commands as untrusted programs.
#![cfg_attr(all(target_os = "linux", target_env = "gnu", not(test)), no_main)]

mod args;
mod audit;
mod commands;
mod failure;
mod guest_arguments;
mod layers;
mod package_runner;
mod packages;
mod paths;
mod progress;
mod render;
#[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
mod start;

#[cfg(not(all(target_os = "linux", target_env = "gnu", not(test))))]
fn main() -> std::process::ExitCode {
    run().into()
}

/// The whole program; its exit code.
fn run() -> u8 {
    // For programs that use the library with this binary as their helper.
    mcp_sandbox::helper::dispatch();
    // Before anything else: inside a sandbox of `doctor` or `demo` this binary is the guest.
    if let Some(code) = commands::guest::dispatch() {
        return code;
    }
    let args = args::command_line();
    let outcome = match args.command {
        args::Command::Run(run) => commands::run::run(run),
        args::Command::Exec(exec) => commands::exec::run(exec),
        args::Command::Doctor(doctor) => commands::doctor::run(doctor),
        args::Command::Learn(learn) => commands::learn::run(*learn),
        args::Command::Demo(demo) => commands::demo::run(demo),
        args::Command::Serve(serve) => commands::serve::run(serve),
        args::Command::Export(export) => commands::export::run(*export),
        args::Command::Image(image) => commands::image::run(&image),
        args::Command::Ps(ps) => commands::ps::run(ps),
        args::Command::Kill(kill) => commands::kill::run(&kill),
        args::Command::Stats(stats) => commands::stats::run(&stats),
        args::Command::Policy(policy) => commands::policy::run(policy),
        args::Command::Check(check) => commands::check::run(&check),
        args::Command::Completions(completions) => commands::completions::run(&completions),
        args::Command::Wire(verb) => commands::clients::run(verb),
        args::Command::Package(verb) => commands::package::run(verb),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            render::say(&failure.to_string());
            failure.exit_code()
        }
    }
}
