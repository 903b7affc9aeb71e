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
    // A line may be given as one text, as it is copied.
    let first = args.reference.split_whitespace().map(OsString::from);
    let words: Vec<OsString> = first.chain(args.args.iter().map(OsString::from)).collect();
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

/// What was meant by a word that is no package.
pub fn no_package(args: &Add) -> Failure {
    let word = args.reference.as_str();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.@/".contains(c);
    let way = match word {
        _ if word.contains("://") => {
            "is an address: a server elsewhere runs on its own machine; add it to the client as it stands".to_owned()
        }
        _ if !args.args.is_empty() || word.contains(char::is_whitespace) || mcp_package::is_path(word) => {
            "is no package; mcp add takes packages (npx -y NAME, uvx NAME, npm:NAME, pypi:NAME, ./file.mcpb): add a \
             program of your own to the client as it stands, then type: mcp wire"
                .to_owned()
        }
        _ if word.starts_with('@') && word.contains('/') => {
            format!("is no package; a package of npm is written npm:{word}")
        }
        _ if word.chars().all(is_name) && !word.contains('/') => {
            format!("is no package; type: mcp add npm:{word}, or mcp add pypi:{word}")
        }
        _ => "is no package; write npm:NAME, pypi:NAME, OWNER/NAME@VERSION or a path of a bundle".to_owned(),
    };
    Failure::Usage(render::plain(&format!("{word} {way}")))
}
