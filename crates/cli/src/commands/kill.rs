//! `mcp kill`: ends sandboxes, whoever of this user started them.

use mcp_sandbox::runs::Run;

use crate::args;
use crate::commands::ps::find;
use crate::failure::Failure;
use crate::render;
use crate::render::to_json;

pub fn run(args: &args::Kill) -> Result<u8, Failure> {
    // All of them, or none: a mistyped name must not be found out half-way.
    let runs = args.ids.iter().map(|id| find(id)).collect::<Result<Vec<Run>, Failure>>()?;
    for run in &runs {
        run.kill()?;
    }
    let killed: Vec<_> = runs.iter().map(|run| run.record.id.as_str()).collect();
    render::print(&if args.json {
        to_json(&serde_json::json!({ "killed": killed })) + "\n"
    } else {
        killed.join("\n") + "\n"
    });
    Ok(0)
}
