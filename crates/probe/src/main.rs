//! `mcp-probe ACT ARGS… [--then ACT ARGS…]…`: one line of JSON per act.

use std::io::Write;
use std::process::ExitCode;

use mcp_probe::{Act, run, usage};

const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let acts = match Act::parse(std::env::args_os().skip(1)) {
        Ok(acts) => acts,
        Err(error) => {
            eprintln!("mcp-probe: {error}\n\n{}", usage());
            return ExitCode::from(USAGE_ERROR);
        }
    };
    for act in &acts {
        let outcome = run(act);
        // A closed stdout is one of the things under test, so it must not end the other acts.
        let mut out = std::io::stdout().lock();
        if !(outcome.ok && act.speaks_for_itself()) {
            let _ = writeln!(out, "{}", outcome.to_json());
        }
        let _ = out.flush();
        if outcome.is_usage_error() {
            eprintln!("mcp-probe: {}: {}", outcome.act, outcome.detail);
            return ExitCode::from(USAGE_ERROR);
        }
    }
    ExitCode::SUCCESS
}
