//! Lines for the user about protected places: removed, put back, set aside.

use std::ffi::OsStr;
use std::path::Path;

use mcp_policy::protect::EXCEPTION;
use mcp_sandbox::{Report, Undone};

use super::quoted;
use crate::render;

/// Lines of each kind; the report has more of them.
const MOST: usize = 10;
/// Characters of a path in a line.
const LONGEST: usize = 240;

/// What could not be undone is told even when nothing else is.
pub fn tell(report: &Report, quiet: bool) {
    if let Some(why) = &report.stopped {
        render::say(&format!("the command was ended: {}", render::plain(why)));
    }
    let (removed, left): (Vec<&Undone>, Vec<&Undone>) =
        report.undone.iter().partition(|undone| undone.failed.is_none() && undone.aside.is_none());
    left.iter().take(MOST).for_each(|undone| tell_left(undone));
    tell_more(left.len(), report.more_undone.left, "more were made by the command and not removed");
    for path in report.replaced.iter().take(MOST) {
        render::say(&format!(
            "warning: {} was replaced while the command ran. It was closed to the command again, but not at once: \
             look at it before you use it",
            shown(path)
        ));
    }
    tell_more(report.replaced.len(), 0, "more were replaced while the command ran");
    if !quiet {
        for undone in removed.iter().take(MOST) {
            render::say(&format!(
                "removed {}, which was new ({}) — keep it with {}",
                shown(&undone.path),
                undone.why,
                flag(&undone.path)
            ));
        }
        let more = report.more_undone.removed;
        tell_more(removed.len(), more, "more that were new were removed");
    }
    if quiet {
        return;
    }
    for path in &report.kept {
        render::say(&format!(
            "{} is protected and was not changed — allow it with {}",
            shown(path),
            flag(path)
        ));
    }
}

fn tell_left(undone: &Undone) {
    let path = shown(&undone.path);
    let why = &undone.why;
    let line = match (&undone.aside, &undone.failed) {
        (Some(aside), _) => {
            let aside = shown(aside);
            format!("warning: {path} is now {aside}: {why}. Look at it before you move it back")
        }
        // We do not know whether it is the command's.
        (None, Some(failed)) if failed.starts_with("could not be searched") => {
            format!("warning: {path} {}: {why}", render::plain(failed))
        }
        (None, failed) => {
            let failed = render::plain(failed.as_deref().unwrap_or_default());
            format!("warning: {path} was made by the command and is still there ({why}): {failed}")
        }
    };
    render::say(&line);
}

/// One line for all that has none of its own.
fn tell_more(named: usize, unnamed: u64, what: &str) {
    let more = (named.saturating_sub(MOST)) as u64 + unnamed;
    if more > 0 {
        render::say(&format!("… and {more} {what}"));
    }
}

fn flag(path: &str) -> String {
    if below_here(path).chars().count() > LONGEST {
        return format!("{EXCEPTION} and its path");
    }
    format!("{EXCEPTION} {}", render::plain(&quoted(OsStr::new(&below_here(path)))))
}

/// A path for a line. The command chose it, and how long it is: of a long one both ends are shown.
fn shown(path: &str) -> String {
    let path = below_here(path);
    let count = path.chars().count();
    if count <= LONGEST {
        return render::plain(&path);
    }
    let head: String = path.chars().take(LONGEST / 4).collect();
    let tail: String = path.chars().skip(count - LONGEST / 2).collect();
    format!("{}…{}", render::plain(&head), render::plain(&tail))
}

fn below_here(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = Path::new(path).strip_prefix(here).ok().filter(|below| *below != Path::new(""));
    below.map_or_else(|| path.to_owned(), |below| below.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_shortened() {
        let long = format!("/top/{}.git/hooks", "é/".repeat(100_000));
        let line = shown(&long);
        assert!(line.chars().count() < LONGEST, "{line}");
        assert!(line.starts_with("/top/é/") && line.ends_with("é/.git/hooks"), "{line}");
        assert_eq!(flag(&long), format!("{EXCEPTION} and its path"));
        assert_eq!(shown("/top/.git/hooks"), "/top/.git/hooks");
    }
}
