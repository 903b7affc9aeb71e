//! `cargo xtask`: chores of this workspace that are more than one cargo command.

mod launcher;
mod servers;

use std::error::Error;
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
    Servers(servers::Args),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().verb {
        Verb::Servers(args) => servers::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
