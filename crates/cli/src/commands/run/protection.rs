//! What became of protected places, in lines for the user.

use std::ffi::OsStr;
use std::path::Path;

use mcp_sandbox::Report;

use super::quoted;
use crate::render;

/// What could not be undone is told even when nothing else is.
pub fn tell(report: &Report, quiet: bool) {
    for undone in &report.undone {
        let path = render::plain(&below_here(&undone.path));
        let flag = flag(&undone.path);
        match &undone.failed {
            Some(why) => render::say(&format!(
                "warning: {path} was made by the command and is still there ({}): {}",
                undone.why,
                render::plain(why)
            )),
            None if quiet => {}
            None => render::say(&format!(
                "removed {path}, which was new ({}) — keep it with {flag}",
                undone.why
            )),
        }
    }
    if quiet {
        return;
    }
    for path in &report.kept {
        render::say(&format!(
            "{} is protected and was not changed — allow it with {}",
            render::plain(&below_here(path)),
            flag(path)
        ));
    }
}

fn flag(path: &str) -> String {
    format!("--allow-write {}", render::plain(&quoted(OsStr::new(&below_here(path)))))
}

fn below_here(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = Path::new(path).strip_prefix(here).ok().filter(|below| *below != Path::new(""));
    below.map_or_else(|| path.to_owned(), |below| below.to_string_lossy().into_owned())
}
