//! Words of the command that name files of the host's.

use std::path::Path;

use super::facts::{Argument, Facts, Kind, PathState, Role, Starts, below_home};
use super::shown::{directory_of, holds_everything, typed};
use super::{Hint, Runs};
use crate::commands::run::quoted;
use crate::paths;

/// What can be said before the start: the word can mean nothing but the path.
pub fn before(facts: &Facts) -> Vec<Hint> {
    if facts.runs == Runs::Agent {
        return Vec::new();
    }
    // A script that is not here may be inside, in a HOME that is kept.
    let is_sure = |argument: &&Argument| {
        argument.role != Role::Word && (argument.role, argument.kind) != (Role::Script, Kind::New)
    };
    facts.arguments.iter().filter(is_sure).filter_map(|argument| hint(argument, facts)).collect()
}

/// After a failure the others may have been paths, too.
pub fn after(facts: &Facts) -> Vec<Hint> {
    let unwritten = |argument: &&Argument| {
        argument.kind == Kind::New
            && argument.role == Role::Path
            && argument.seen == PathState::ReadOnly
            && !is_system(argument)
    };
    let unwritten =
        facts.arguments.iter().filter(unwritten).map(|argument| read_only(argument, facts));
    let hidden = facts.arguments.iter().filter_map(|argument| hint(argument, facts));
    hidden.chain(unwritten).collect()
}

fn hint(argument: &Argument, facts: &Facts) -> Option<Hint> {
    match (&argument.seen, argument.role, argument.kind) {
        (PathState::Denied(rule), ..) => Some(Hint::new(
            &argument.word,
            format!("{} is denied to the command (by --deny {rule})", argument.word),
        )),
        (_, _, Kind::Device) => None,
        (PathState::Hidden, _, Kind::Socket) => Some(socket(argument, facts)),
        (PathState::ReadOnly, Role::Written, _) if !is_system(argument) => {
            Some(read_only(argument, facts))
        }
        // In an empty HOME it works, and is gone: that is another line.
        (PathState::Hidden, Role::Written, Kind::New)
            if argument.path.parent() == Some(&facts.here) =>
        {
            None
        }
        (_, Role::Script, Kind::New) => missing(argument, facts),
        (PathState::Hidden, Role::Path, Kind::New) => None,
        // `~` is another home inside, and can be written.
        (PathState::Hidden, Role::Written, Kind::New)
            if facts.runs == Runs::Agent
                && below_home(&argument.word).is_some_and(|below| !below.contains('/')) =>
        {
            None
        }
        // The command has a /tmp of its own, in which it may write whatever the host's holds under that name.
        (PathState::Hidden, Role::Written, Kind::File)
            if argument.path.parent() == Some("/tmp".as_ref()) =>
        {
            None
        }
        (PathState::Hidden, ..) => Some(hidden(argument, facts)),
        _ => None,
    }
}

fn socket(argument: &Argument, facts: &Facts) -> Hint {
    // A word without a directory is looked for where the command starts.
    let is_relative = Path::new(&argument.word).is_relative();
    let here = if is_relative && facts.starts == Starts::InEmptyHome { " -r ." } else { "" };
    let line = format!(
        "{} is a socket of this machine's, and not visible to the command (add --allow-unix {}{here})",
        argument.word,
        typed(&argument.path, facts)
    );
    Hint::new(&argument.word, line)
}

/// A script that is neither here nor inside: no grant would help.
fn missing(argument: &Argument, facts: &Facts) -> Option<Hint> {
    let word = &argument.word;
    let is_name = |c: char| c.is_alphanumeric() || "/._-+@~".contains(c);
    // A shell may have gone elsewhere.
    let is_agent = facts.runs == Runs::Agent;
    if is_agent || Path::new(word).extension().is_none() || !word.chars().all(is_name) {
        return None;
    }
    let line = match Path::new(word).is_absolute() {
        true => format!("there is no {word}"),
        false => format!("there is no {word} in {}", facts.here.display()),
    };
    Some(Hint::new(word, line))
}

/// A relative path leads nowhere from the empty HOME that the command starts in, unless what is granted brings the
/// current directory with it: one of the two lies in the other.
fn leads_nowhere(argument: &Argument, granted: &Path, facts: &Facts) -> bool {
    let here = paths::real(&facts.here).unwrap_or_else(|_| facts.here.clone());
    Path::new(&argument.word).is_relative()
        && facts.starts == Starts::InEmptyHome
        && !here.starts_with(granted)
        && !granted.starts_with(&here)
}

/// What to type where the relative path would lead nowhere: the directory and the file in full.
fn in_full(argument: &Argument, facts: &Facts) -> Option<Hint> {
    let granted = match argument.role {
        Role::Script => directory_of(&argument.path, facts),
        Role::Written => written(argument, facts),
        Role::Path | Role::Word => argument.path.clone(),
    };
    let granted = paths::real(&granted).ok()?;
    if !leads_nowhere(argument, &granted, facts) {
        return None;
    }
    let file = match (argument.path.parent(), argument.path.file_name()) {
        (Some(above), Some(name)) => paths::real(above).ok()?.join(name),
        _ => paths::real(&argument.path).ok()?,
    };
    let (what, flag) = match argument.role {
        Role::Written => ("is not writable for the command", "-w"),
        _ => ("is here, but not visible to the command", "-r"),
    };
    let word = &argument.word;
    Some(Hint::new(
        word,
        format!(
            "{word} {what}, which starts in an empty HOME (add {flag} {}, and write {} instead of {word})",
            quoted(granted.as_os_str()),
            quoted(file.as_os_str())
        ),
    ))
}

fn hidden(argument: &Argument, facts: &Facts) -> Hint {
    if let Some(hint) = in_full(argument, facts) {
        return hint;
    }
    let word = &argument.word;
    let whole = match holds_everything(&argument.path, facts) && argument.kind == Kind::Directory {
        true => "; that shows all that is in it",
        false => "",
    };
    let line = match argument.role {
        Role::Script => format!(
            "{word} is here, but not visible to the command (add -r {}, its directory)",
            typed(&directory_of(&argument.path, facts), facts)
        ),
        Role::Written => {
            let path = written(argument, facts);
            // What is not there cannot be granted, and the directory above it holds too much.
            let is_new =
                argument.kind == Kind::New && path.file_name() == argument.path.file_name();
            let first = if is_new { "make it, and " } else { "" };
            let path = typed(&path, facts);
            format!("{word} is not writable for the command ({first}add -w {path})")
        }
        Role::Path | Role::Word => {
            let path = typed(&argument.path, facts);
            format!(
                "{word} is here, but not visible to the command (add -r {path}, or -w {path} to write{whole})"
            )
        }
    };
    Hint::new(word, line)
}

fn read_only(argument: &Argument, facts: &Facts) -> Hint {
    let path = typed(&written(argument, facts), facts);
    Hint::new(
        &argument.word,
        format!("{} can only be read by the command (add -w {path} to write)", argument.word),
    )
}

/// A program that writes a file often makes others beside it, and renames: it needs the directory.
fn written(argument: &Argument, facts: &Facts) -> std::path::PathBuf {
    match argument.kind {
        Kind::Directory => argument.path.clone(),
        _ => directory_of(&argument.path, facts),
    }
}

/// No user grants the system's own files for writing.
fn is_system(argument: &Argument) -> bool {
    ["/usr", "/etc", "/bin", "/lib", "/lib64", "/sbin", "/opt", "/nix"]
        .iter()
        .any(|system| argument.path.starts_with(system))
}
