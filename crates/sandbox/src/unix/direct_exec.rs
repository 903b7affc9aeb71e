//! The single exec that starts a program. `#!/usr/bin/env node` and version managers' stand-ins
//! take two: one for the helper, one for what it looks up. Where only one is allowed, the launcher
//! looks up and names the interpreter itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::core::error::Error;
use crate::unix::locate::{MOST_INTERPRETERS, ProgramSearch, find, real_program, shebang};

/// The program and arguments that do with one exec what `program` with `argv` does with more.
/// What the kernel does by itself is left to it.
pub fn direct(
    program: &Path,
    argv: Vec<OsString>,
    search: &ProgramSearch<'_>,
) -> Result<(PathBuf, Vec<OsString>), Error> {
    let (mut last, mut words) = (program.to_owned(), argv.clone());
    let mut helped = false;
    for _ in 0..MOST_INTERPRETERS {
        let Some(line) = shebang(&last) else {
            break;
        };
        let Some(next) = Interpreter::of(&line, &last, search)? else {
            break;
        };
        helped |= next.helped;
        let given = words.into_iter().skip(1);
        words = [next.program.clone().into_os_string()]
            .into_iter()
            .chain(next.arguments)
            .chain([last.into_os_string()])
            .chain(given)
            .collect();
        last = next.program;
    }
    Ok(if helped { (last, words) } else { (program.to_owned(), argv) })
}

struct Interpreter {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Whether another program would have looked it up.
    helped: bool,
}

impl Interpreter {
    fn of(line: &[u8], script: &Path, search: &ProgramSearch<'_>) -> Result<Option<Self>, Error> {
        let line = line.trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (name, rest) = (&line[..end], line[end..].trim_ascii());
        if name.is_empty() {
            return Ok(None);
        }
        let named = search.absolute(Path::new(OsStr::from_bytes(name)));
        if named.file_name() == Some(OsStr::new("env")) {
            let (command, arguments) = asked_of_env(rest).ok_or_else(|| second_exec(script))?;
            let program = find(&command, search)?;
            return Ok(Some(Interpreter { program, arguments, helped: true }));
        }
        let program = real_program(named.clone(), search);
        let helped = program != named;
        // The kernel hands everything after the name over as one argument.
        let arguments = if rest.is_empty() { vec![] } else { vec![word(rest)] };
        Ok(Some(Interpreter { program, arguments, helped }))
    }
}

/// The program and arguments of env's command line, if finding a program is all it is to do.
fn asked_of_env(rest: &[u8]) -> Option<(OsString, Vec<OsString>)> {
    let mut words = match rest.strip_prefix(b"-S") {
        None => vec![rest],
        Some(split) if split.iter().any(|byte| br#"'"\$#"#.contains(byte)) => return None,
        Some(split) => {
            split.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
        }
    };
    let plain = |word: &&[u8]| {
        !word.is_empty()
            && !word.starts_with(b"-")
            && !word.iter().any(|byte| *byte == b'=' || byte.is_ascii_whitespace())
    };
    let command = words.first().copied().filter(plain)?;
    words.remove(0);
    Some((word(command), words.into_iter().map(word).collect()))
}

fn word(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

fn second_exec(script: &Path) -> Error {
    Error::NotExecutable {
        path: script.to_owned(),
        why: "its #! line gives env more to do than to find a program, so env would need a second exec, which --no-subprocess refuses (name the interpreter in the command)"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests;
