//! What a person typed after `mcp run`, before it is taken for a command: lines of package runners become
//! packages, and what can only be a mistake is told with what to type instead.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::args::Run;
use crate::failure::Failure;
use crate::package_runner::{self, Meaning, PackageLine};
use crate::{paths, render};

pub fn understand(args: &mut Run) -> Result<(), Failure> {
    if args.reference.is_some() || args.command.is_empty() {
        return Ok(());
    }
    match package_runner::understand(&args.command) {
        Meaning::Package(line) => package(args, line),
        Meaning::Program { words, directory } => program(args, words, directory),
        Meaning::AsIs { note } => {
            if let Some(note) = note.filter(|_| !args.starting.quiet) {
                render::say(&render::plain(&note));
            }
            mistake(&args.command)
        }
    }
}

fn package(args: &mut Run, line: PackageLine) -> Result<(), Failure> {
    if let Some(with) = line.with.first() {
        return Err(Failure::Usage(render::plain(&format!(
            "{} is wanted together with {with}; mcp installs one package and what it depends on, so run it with \
             uvx or npx in a directory of your own, or without {with}: mcp run {}",
            line.reference, line.reference
        ))));
    }
    args.package.program = line.program;
    args.reference = Some(line.reference.into());
    args.command = line.arguments;
    Ok(())
}

/// A program of a project's environment, with the project shown and started in.
fn program(
    args: &mut Run,
    words: Vec<OsString>,
    directory: Option<PathBuf>,
) -> Result<(), Failure> {
    let Some(directory) = directory else {
        args.command = words;
        return Ok(());
    };
    let real = paths::real(&directory).map_err(|e| Failure::input(&directory, &e))?;
    let shown = render::plain(&directory.display().to_string());
    let holds_home = paths::home().and_then(|home| paths::real(&home).ok());
    if real.parent().is_none() || holds_home.is_some_and(|home| home.starts_with(&real)) {
        return Err(Failure::Usage(format!(
            "uv would run in {shown}, which is or holds your whole home; name the project: --directory DIR"
        )));
    }
    let first = words.first().map(PathBuf::from).unwrap_or_default();
    if !first.exists() {
        return Err(Failure::Usage(format!(
            "uv would run {} there, and it is not installed yet; once, outside of the sandbox: uv sync --directory {shown}",
            render::plain(&first.display().to_string())
        )));
    }
    args.command = words;
    args.permissions.read.push(directory.clone());
    args.cwd.get_or_insert(directory);
    Ok(())
}

/// Words that are no command anywhere, and what was meant.
fn mistake(command: &[OsString]) -> Result<(), Failure> {
    let Some(word) = command.first().and_then(|word| word.to_str()) else {
        return Ok(());
    };
    let shown = render::plain(word);
    if word.starts_with('@') && word.contains('/') {
        return Err(Failure::Usage(format!(
            "{shown} is no command; a package of npm is written npm:{shown}"
        )));
    }
    let path = Path::new(word);
    let interpreter = match path.extension().and_then(|end| end.to_str()) {
        Some("py") => "python3",
        Some("js" | "mjs" | "cjs") => "node",
        Some("ts" | "mts") => "npx tsx",
        Some("rb") => "ruby",
        Some("sh") => "bash",
        _ => return Ok(()),
    };
    if !path.is_file() || is_executable(path) && word.contains('/') {
        return Ok(());
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory
        .map_or_else(|| ".".to_owned(), |parent| render::plain(&parent.display().to_string()));
    Err(Failure::Usage(format!(
        "{shown} is a script, not a program; type: mcp run --read {directory} {interpreter} {shown}"
    )))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}
