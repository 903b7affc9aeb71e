//! What a person typed after `mcp run`, before it is taken for a command: lines of package runners become
//! packages, and what can only be a mistake is told with what to type instead.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::args::Run;
use crate::failure::Failure;
use crate::package_runner::{self, Meaning, PackageLine};
use crate::{paths, render};

mod expand;
pub mod line;
mod mistake;

pub fn understand(args: &mut Run) -> Result<(), Failure> {
    for note in expand::home(&mut args.command, args.reference.is_some()) {
        if !args.starting.quiet {
            render::say(&render::plain(&note));
        }
    }
    if let Some(word) = &mut args.reference {
        return mistake::package(word);
    }
    if args.command.is_empty() {
        return Ok(());
    }
    match package_runner::understand(&args.command) {
        Meaning::Package(line) => as_package(args, line),
        Meaning::Program { words, directory } => program(args, words, directory),
        Meaning::AsIs { note } => {
            if let Some(note) = note.filter(|_| !args.starting.quiet) {
                render::say(&render::plain(&note));
            }
            mistake::command(&args.command, &args.permissions.env)
        }
    }
}

/// The package that a line of npx, uvx or their like names.
pub fn as_package(args: &mut Run, line: PackageLine) -> Result<(), Failure> {
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
