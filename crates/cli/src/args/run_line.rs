//! A line of `mcp run` that stands elsewhere, taken apart: its permissions become a policy file, the rest stays options.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Args, FromArgMatches};

use super::{Permissions, Run, package, words};

/// A `mcp run` line in its parts.
pub struct RunLine {
    pub run: Run,
    /// Options that are neither permissions nor about fetching.
    pub options: Vec<String>,
    /// Options about where a package comes from.
    pub fetching: Vec<String>,
}

/// What belongs to one run on one machine: not carried elsewhere.
const LOCAL: [&str; 9] =
    ["reference", "command", "cwd", "home", "explain", "steps", "platform", "report", "ephemeral"];

/// The words after `mcp run`.
///
/// # Errors
/// What `mcp run` says of them.
pub fn run_line(line: &[String]) -> Result<RunLine, String> {
    let verb = Run::augment_args(clap::Command::new("mcp").no_binary_name(false));
    let first = std::iter::once(OsString::from("run"));
    let all: Vec<OsString> = first.chain(line.iter().map(OsString::from)).collect();
    let all = words::with_separator(&verb, &all);
    let arguments: Vec<clap::Arg> = verb.get_arguments().cloned().collect();
    let matches = verb.try_get_matches_from(all).map_err(|e| e.render().to_string())?;
    let ids = |of: clap::Command| -> Vec<String> {
        of.get_arguments().map(|arg| arg.get_id().to_string()).collect()
    };
    let permissions = ids(Permissions::augment_args(clap::Command::new("x")));
    let about_fetching = ids(package::Fetching::augment_args(clap::Command::new("x")));
    let (mut options, mut fetching) = (Vec::new(), Vec::new());
    for arg in &arguments {
        let id = arg.get_id().as_str();
        let is_kept =
            permissions.iter().any(|it| it == id) || LOCAL.contains(&id) || arg.is_hide_set();
        let (false, Some(long)) = (is_kept, arg.get_long()) else { continue };
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let to =
            if about_fetching.iter().any(|it| it == id) { &mut fetching } else { &mut options };
        if !arg.get_action().takes_values() {
            to.push(format!("--{long}"));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            to.push(format!("--{long}"));
            to.push(value.to_string_lossy().into_owned());
        }
    }
    let run = Run::from_arg_matches(&matches).map_err(|e| e.render().to_string())?;
    Ok(RunLine { run, options, fetching })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> RunLine {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        run_line(&words).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_line_is_permissions_options_and_fetching() {
        let line = line(
            "--read /srv --max-memory 64M --strict --config a=1 --config b=2 --registry r.test --no-log npm:x -- -v",
        );
        assert_eq!(line.options, ["--strict", "--no-log", "--config", "a=1", "--config", "b=2"]);
        assert_eq!(line.fetching, ["--registry", "r.test"]);
        assert_eq!(line.run.permissions.read.len(), 1);
        assert_eq!(line.run.command, ["-v"]);
    }

    #[test]
    fn what_run_refuses_is_refused() {
        assert!(run_line(&["--max-memroy".to_owned(), "x".to_owned()]).is_err());
        assert!(run_line(&["--max-memory".to_owned(), "lots".to_owned()]).is_err());
    }
}
