//! `mcp check`: what the guard says about a command, without running it.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use mcp_guard::{Context, Decision, Finding, NetworkAccess, Rules, Shell, Strictness, Verdict};

use mcp_sandbox::agent;

use crate::args::{Check, ShellFlag};
use crate::failure::Failure;
use crate::render::to_json;
use crate::render::{self, Paint};

/// More than the guard reads, so that it says so itself.
const MOST_INPUT: u64 = 4 * 1024 * 1024;

pub fn run(args: &Check) -> Result<u8, Failure> {
    let shell = match args.shell {
        ShellFlag::Bash => Shell::Bash,
        ShellFlag::PowerShell => Shell::PowerShell,
        ShellFlag::Cmd => Shell::Cmd,
    };
    let command = match args.command.as_slice() {
        [only] if only == "-" => standard_input()?,
        words => text(words, shell)?,
    };
    let network = if args.network { NetworkAccess::Given } else { NetworkAccess::None };
    let strictness = if args.strict { Strictness::Strict } else { Strictness::Confined };
    let context = Context { network, strictness, rules: rules(args.rules.as_deref())? };
    let verdict = mcp_guard::judge(&command, shell, &context);
    if args.json {
        render::print(&(to_json(&verdict) + "\n"));
    } else {
        render::print(&shown(&command, &verdict, Paint::stdout()));
    }
    Ok(match verdict.decision {
        Decision::Allow => 0,
        Decision::Unknown => 3,
        Decision::Ask => 4,
        _ => 1,
    })
}

/// One text is the shell's; several words are words.
pub fn text(command: &[OsString], shell: Shell) -> Result<String, Failure> {
    let word = |word: &OsString| word.to_str().map(str::to_owned);
    let words: Option<Vec<String>> = command.iter().map(word).collect();
    match words.as_deref() {
        None => Err(Failure::Usage("the command is not valid UTF-8".to_owned())),
        Some([one]) => Ok(one.clone()),
        Some(words) => agent::joined(words, shell)
            .map_err(|why| Failure::Usage(format!("a word of the command {why}"))),
    }
}

fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(MOST_INPUT)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Usage(format!("standard input: {error}")))?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::Usage("standard input is not valid UTF-8".to_owned()))
}

/// The built-in rules, with those of a file.
pub fn rules(file: Option<&Path>) -> Result<Arc<Rules>, Failure> {
    let built_in = Rules::built_in();
    let Some(file) = file else {
        return Ok(built_in);
    };
    let text = mcp_files::read_text(file, MOST_INPUT, mcp_files::Links::Follow)
        .map_err(|error| Failure::input(file, &error))?;
    match built_in.with(&text) {
        Ok(rules) => Ok(Arc::new(rules)),
        Err(error) => Err(Failure::Input { path: file.to_owned(), why: error.to_string() }),
    }
}

fn shown(command: &str, verdict: &Verdict, paint: Paint) -> String {
    if verdict.findings.is_empty() {
        return format!("{}\n", paint.good("allowed"));
    }
    verdict.findings.iter().map(|finding| explain(command, finding, paint)).collect()
}

/// The verdict, the text with the part underlined, and both sentences.
fn explain(command: &str, finding: &Finding, paint: Paint) -> String {
    let (word, colour): (_, fn(Paint, &str) -> String) = match finding.decision {
        Decision::Ask => ("ask", Paint::warn),
        Decision::Unknown => ("unknown", Paint::warn),
        Decision::Allow => ("allowed, noted", Paint::good),
        _ => ("refused", Paint::bad),
    };
    let (line, from, to) = excerpt(command, finding);
    let underline =
        format!("{}{}", " ".repeat(from), colour(paint, &"^".repeat((to - from).max(1))));
    format!(
        "{} {}\n    {line}\n    {underline}\n  {}\n  {} {}\n",
        colour(paint, &format!("{word}:")),
        paint.strong(&render::plain(&finding.rule)),
        render::plain(&finding.human),
        paint.faint("for the model:"),
        render::plain(&finding.model),
    )
}

/// As much of the command's line as fits, and which columns of it the finding is about.
fn excerpt(command: &str, finding: &Finding) -> (String, usize, usize) {
    const WIDTH: usize = 96;
    let span = &finding.span;
    let start = command[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = command[span.start..].find('\n').map_or(command.len(), |at| span.start + at);
    let width = |text: &str| render::plain(text).chars().count();
    let line = render::plain(&command[start..end]);
    let from = width(&command[start..span.start]);
    let to = width(&command[start..span.end.min(end)]).max(from);
    // A long line is cut to begin shortly before the finding.
    let skip = if to < WIDTH { 0 } else { from.saturating_sub(8) };
    let cut: String = line.chars().skip(skip).take(WIDTH).collect();
    let shown = cut.chars().count();
    (cut, (from - skip).min(shown), (to - skip).min(shown))
}
