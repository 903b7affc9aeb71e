//! `mcp policy`: checks a file, shows what is in effect, compares two.

mod diff;

use mcp_policy::{Defaults, LayerKind, Policy, text};

use crate::args;
use crate::failure::Failure;
use crate::layers;
use crate::render;

pub fn run(args: args::Policy) -> Result<u8, Failure> {
    match args.command {
        args::PolicyCommand::Check { file } => {
            let mistakes = layers::mistakes(&file)?;
            for mistake in &mistakes {
                render::say(&render::printable(&mistake.to_string()));
            }
            if mistakes.len() > 1 {
                let shown = render::plain(&file.to_string_lossy());
                render::say(&format!("{shown}: {} mistakes", mistakes.len()));
            }
            if !mistakes.is_empty() {
                return Ok(2);
            }
            let layer = layers::file(&file, LayerKind::PolicyFile)?;
            Policy::merge(&[layer], Defaults::run())?;
            render::print(&format!("{}: valid\n", render::plain(&file.to_string_lossy())));
        }
        args::PolicyCommand::Diff { first, second, json } => {
            return diff::run(&first, &second, json);
        }
        args::PolicyCommand::Show { permissions, json } => {
            let policy = layers::effective(&permissions, Defaults::run())?;
            if json {
                render::print(&(to_json(&policy) + "\n"));
            } else {
                render::print(&policy.to_toml());
            }
        }
    }
    Ok(0)
}

/// Values of ours always serialise: no maps with other keys than strings, no failing types.
pub fn to_json<T: serde::Serialize>(value: &T) -> String {
    let json = serde_json::to_string_pretty(value);
    // As good as raw for programs, and nothing that a terminal would obey.
    json.map_or_else(|e| format!("{{\"error\": \"{e}\"}}"), |json| text::serialized(&json))
}
