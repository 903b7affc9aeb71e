//! `cargo xtask`: chores of this workspace that are more than one cargo command.

mod api;
mod clients;
mod dist;
mod gateway;
mod launcher;
#[cfg(unix)]
mod learn;
mod modules;
mod servers;
mod sizes;
mod switches;
mod vm;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Chores of this workspace that are more than one cargo command.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Api(api::Args),
    Clients(clients::Args),
    Modules(modules::Args),
    Dist(dist::Args),
    Gateway(gateway::Args),
    #[cfg(unix)]
    Learn(learn::Args),
    Servers(servers::Args),
    Sizes(sizes::Args),
    Switches(switches::Args),
    Vm(vm::Args),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().verb {
        Verb::Api(args) => api::run(&args),
        Verb::Clients(args) => clients::run(&args),
        Verb::Modules(args) => modules::run(&args),
        Verb::Dist(args) => dist::run(&args),
        Verb::Gateway(args) => gateway::run(&args),
        #[cfg(unix)]
        Verb::Learn(args) => learn::run(&args),
        Verb::Servers(args) => servers::run(&args),
        Verb::Sizes(args) => sizes::run(&args),
        Verb::Switches(args) => switches::run(&args),
        Verb::Vm(args) => vm::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The top of this workspace. Set by `cargo run`; a copy of this program that was started by hand
/// uses the directory it is in.
fn workspace() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let workspace = package.as_deref().and_then(|path| path.parent()).map(PathBuf::from);
    workspace.unwrap_or_else(|| ".".into())
}

/// Where cargo puts what it makes.
fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}
