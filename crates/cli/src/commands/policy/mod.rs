//! `mcp policy`: checks a file, shows what is in effect, compares two, drops what is not used.

mod diff;
mod minimize;

use mcp_policy::{Defaults, LayerKind, Policy};

use crate::args;
use crate::failure::Failure;
use crate::layers;
use crate::render::{self, to_json};

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
            let policy = Policy::merge(&[layer], Defaults::run())?;
            let files = &policy.filesystem;
            for (key, paths) in [("read", &files.read), ("write", &files.write)] {
                for path in paths.iter().filter(|path| !path.value.exists()) {
                    render::say(&render::plain(&format!(
                        "warning: {key}: {} does not exist here; a run with this file is refused until it does",
                        path.value.display()
                    )));
                }
            }
            render::print(&format!("{}: valid\n", render::plain(&file.to_string_lossy())));
        }
        args::PolicyCommand::Diff { first, second, json } => {
            return diff::run(&first, &second, json);
        }
        args::PolicyCommand::Minimize { file, output, json, subject } => {
            return minimize::run(&file, output.as_deref(), json, &subject);
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
