//! `mcp search`: the public MCP registry.

use mcp_package::registry::{PUBLIC, Public};
use serde_json::json;

use crate::args::package::Search;
use crate::failure::Failure;
use crate::packages::fetch;
use crate::render::to_json;
use crate::render::{self, Paint};

pub fn run(args: &Search) -> Result<u8, Failure> {
    let http = fetch::http();
    let public = Public::new(&http, args.url.as_deref().unwrap_or(PUBLIC))?;
    let found = public.search(&args.words.join(" "), args.limit as usize).map_err(|error| {
        Failure::Refused(format!(
            "the public MCP registry does not answer, so nothing can be searched: {error}\n     (a package whose name you know needs no \
             search: mcp run npx -y NAME, mcp run uvx NAME; mcp list shows what is here)"
        ))
    })?;
    if args.json {
        let list: Vec<_> = found
            .iter()
            .map(|one| json!({"name": one.name, "version": one.version, "description": one.description, "kinds": one.kinds}))
            .collect();
        render::print(&(to_json(&list) + "\n"));
        return Ok(0);
    }
    if found.is_empty() {
        render::say("nothing found");
        return Ok(1);
    }
    let paint = Paint::stdout();
    for one in &found {
        let name = paint.strong(&render::plain(&format!("{}@{}", one.name, one.version)));
        let kinds = paint.faint(&render::plain(&one.kinds.join(", ")));
        render::print(&format!("{name}  {kinds}\n    {}\n", render::plain(&one.description)));
    }
    Ok(0)
}
