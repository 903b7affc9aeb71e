//! `mcp add npx -y NAME`: the line of a package runner, as it stands in the server's README.

use std::ffi::OsString;

use crate::args::wire::Add;
use crate::failure::Failure;
use crate::package_runner::{self, Meaning};
use crate::render;

/// Options of `mcp add` that people write at the end, where they are the server's.
const OURS: [&str; 6] = ["--client", "--name", "--project", "--dry-run", "--remove", "--binary"];

/// The same with the package that the line means. What is no such line is left as it is.
pub fn understood(mut args: Add) -> Result<Add, Failure> {
    let words: Vec<OsString> =
        std::iter::once(&args.reference).chain(&args.args).map(OsString::from).collect();
    match package_runner::understand(&words) {
        Meaning::Package(line) if line.with.is_empty() => {
            let is_ours = |word: &&OsString| OURS.iter().any(|ours| *word == ours);
            if let Some(ours) = line.arguments.iter().find(is_ours) {
                return Err(Failure::Usage(format!(
                    "{0} behind the package is an argument of the server; write it before {1}: mcp add {0} … {1} …",
                    render::plain(&ours.to_string_lossy()),
                    render::plain(&args.reference)
                )));
            }
            args.reference = line.reference;
            args.program = line.program;
            args.args =
                line.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            Ok(args)
        }
        Meaning::Package(line) => Err(Failure::Usage(render::plain(&format!(
            "{} is wanted together with {}, and mcp installs one package",
            line.reference,
            line.with.join(", ")
        )))),
        Meaning::AsIs { note: Some(note) } => Err(Failure::Usage(render::plain(&note))),
        _ => Ok(args),
    }
}
