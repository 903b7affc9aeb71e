//! `compatibility.runtimes` of a package, against the interpreter that it will be run with.
//!
//! Asking an interpreter for its version takes longer than starting a sandbox, so it is asked once
//! and remembered as long as it is the same file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mcp_package::manifest::suits;
use mcp_sandbox::Sandbox;

use crate::failure::Failure;
use crate::packages::open_store;
use crate::render;

/// What a package needs, by the names MCPB has for interpreters.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    pub package: String,
    pub runtimes: BTreeMap<String, String>,
}

/// `program` is what will be executed, found through PATH, links and version managers.
pub fn check(needs: &Needs, program: &Path) -> Result<(), Failure> {
    let file = program.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let file = file.unwrap_or_default();
    let Some((name, range)) = needs.runtimes.iter().find(|(name, _)| file.starts_with(*name))
    else {
        return Ok(());
    };
    if !["node", "python"].contains(&name.as_str()) {
        return Ok(());
    }
    let store = open_store()?;
    let Some(version) = store.noted(program, || version(program)) else {
        return Ok(());
    };
    if suits(range, &version) != Some(false) {
        return Ok(());
    }
    Err(Failure::Refused(render::plain(&format!(
        "{} needs {name} {range}, and {} is {version}; install that version, or get the package again for this one (mcp remove, then mcp run)",
        needs.package,
        render::path(program)
    ))))
}

/// `v20.20.2` or `Python 3.11.7`: the last word.
/// The package chose the program, and may have written it in an earlier run: it is not asked outside of a sandbox.
fn version(program: &Path) -> Option<String> {
    let mut sandbox = Sandbox::new(program);
    sandbox.arg("--version").timeout(Duration::from_secs(10));
    let output = sandbox.output().ok().filter(|output| output.outcome.success())?;
    let said = String::from_utf8(output.stdout).ok()?;
    said.split_ascii_whitespace().next_back().map(str::to_owned)
}
