//! The lines that people have in their clients' configurations: `npx -y some-server`, `uvx some-server`,
//! `uv --directory DIR run server.py`. A package runner becomes the package it would run; a wrapper
//! becomes the program it would start.
//!
//! Pure: words in, meaning out. An option that is not known here leaves the line as it stands, with a
//! sentence that says so, because guessing at an option could run another package than the one meant.

use std::ffi::OsString;
use std::path::PathBuf;

mod node;
mod python;

#[cfg(test)]
mod tests;

/// What a command line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// A package of npm or PyPI, as a reference of `mcp run`.
    Package(PackageLine),
    /// A program, and a directory that it works in and has to see.
    Program { words: Vec<OsString>, directory: Option<PathBuf> },
    /// As it stands, with a sentence for the user where there is something to say.
    AsIs { note: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageLine {
    /// `npm:@scope/name@1.2.3`, `pypi:name@1.2.3`
    pub reference: String,
    /// The program to run, where the package has another name than it.
    pub program: Option<String>,
    /// Packages to be installed beside it, as references.
    pub with: Vec<String>,
    /// What the server is given.
    pub arguments: Vec<OsString>,
}

impl Meaning {
    fn as_is() -> Meaning {
        Meaning::AsIs { note: None }
    }

    fn unknown_option(runner: &str, option: &str) -> Meaning {
        Meaning::AsIs {
            note: Some(format!(
                "`{runner}` has the option {option}, which mcp does not know; the line is run as it stands, so {runner} \
                 itself needs network and a home (name the package instead: mcp run npm:NAME or pypi:NAME)"
            )),
        }
    }
}

/// What the words of a command mean.
pub fn understand(words: &[OsString]) -> Meaning {
    let Some(texts) = words.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>() else {
        return Meaning::as_is();
    };
    let Some((program, rest)) = texts.split_first() else {
        return Meaning::as_is();
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    let name = [".cmd", ".exe", ".ps1", ".bat"]
        .iter()
        .find_map(|end| lower.strip_suffix(end))
        .unwrap_or(&lower);
    match (name, rest) {
        ("npx" | "pnpx", rest) => node::npx(name, rest),
        ("bunx", rest) => node::npx(name, rest),
        ("npm", ["exec" | "x", rest @ ..]) => node::npm_exec(rest),
        ("bun", ["x", rest @ ..]) => node::npx("bun x", rest),
        ("pnpm", ["dlx" | "exec", rest @ ..]) => node::npx("pnpm dlx", rest),
        ("yarn", ["dlx", rest @ ..]) => node::npx("yarn dlx", rest),
        ("uvx", rest) => python::uvx("uvx", rest),
        ("uv", ["tool", "run", rest @ ..]) => python::uvx("uv tool run", rest),
        ("uv", rest) => python::uv(rest),
        ("pipx", ["run", rest @ ..]) => python::pipx(rest),
        // Windows has npx as a batch file, which only cmd starts.
        ("cmd", [switch, rest @ ..]) if matches!(*switch, "/c" | "/C" | "/k" | "/K") => {
            let inner: Vec<OsString> = rest.iter().map(OsString::from).collect();
            match understand(&inner) {
                Meaning::AsIs { note } if !inner.is_empty() && !cfg!(windows) => match note {
                    None => Meaning::Program { words: inner, directory: None },
                    note => Meaning::AsIs { note },
                },
                meaning => meaning,
            }
        }
        ("sh" | "bash" | "dash" | "zsh", ["-c" | "-lc", text]) => shell(name, text),
        ("env", rest) => env(rest),
        ("docker" | "podman" | "nerdctl", ["run", ..]) => Meaning::AsIs {
            note: Some(format!(
                "`{name} run` asks a service of the machine to start the server, outside of this sandbox; run the \
                 server's package instead (mcp run npm:NAME or pypi:NAME), or leave this line to {name} alone"
            )),
        },
        _ => Meaning::as_is(),
    }
}

/// `sh -c 'npx …'`: a text of plain words is what they say. A runner in a text that needs a shell would install inside of
/// the sandbox, where it has neither network nor a home.
fn shell(shell: &str, text: &str) -> Meaning {
    const RUNNERS: [&str; 4] = ["npx", "bunx", "uvx", "pipx"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.strip_prefix(&["exec"]).unwrap_or(&words);
    let is_plain = |c: char| c.is_alphanumeric() || " \t/._-+=:@,%".contains(c);
    if text.chars().all(is_plain) {
        return match understand(&owned(words)) {
            meaning @ Meaning::Package(_) => meaning,
            _ => Meaning::as_is(),
        };
    }
    match words.iter().find(|word| RUNNERS.contains(word)) {
        Some(runner) => Meaning::AsIs {
            note: Some(format!(
                "`{shell} -c` starts {runner} inside of the sandbox, where it cannot install anything; give the words \
                 of {runner} without the shell: mcp run {runner} NAME"
            )),
        },
        None => Meaning::as_is(),
    }
}

/// `env NAME=VALUE npx …` sets variables, which `--env` does here.
fn env(rest: &[&str]) -> Meaning {
    let first = rest.iter().position(|word| !word.contains('=') || word.starts_with('-'));
    let Some(first) = first.filter(|at| !rest[*at].starts_with('-')) else {
        return Meaning::as_is();
    };
    let inner: Vec<OsString> = rest[first..].iter().map(OsString::from).collect();
    match (first, understand(&inner)) {
        (0, meaning @ Meaning::Package(_)) => meaning,
        (_, Meaning::Package(line)) => {
            // Not the values: one may be a secret, and this line goes into the logs of clients.
            let names = rest[..first].iter().filter_map(|word| word.split_once('='));
            let flags: Vec<String> = names.map(|(name, _)| format!("--env {name}=…")).collect();
            Meaning::AsIs {
                note: Some(format!(
                    "the variables before the package are given by mcp: mcp run {} {}",
                    flags.join(" "),
                    line.reference
                )),
            }
        }
        _ => Meaning::as_is(),
    }
}

/// Options of a runner, one by one: what is left after them.
struct Options<'a> {
    rest: &'a [&'a str],
}

enum Next<'a> {
    /// An option and the value glued to it by `=`.
    Option(&'a str, Option<&'a str>),
    /// The first word that is none; not taken yet.
    Word,
    /// After `--`.
    Ended,
    Nothing,
}

impl<'a> Options<'a> {
    fn next(&mut self) -> Next<'a> {
        let Some((word, rest)) = self.rest.split_first() else {
            return Next::Nothing;
        };
        if *word == "--" {
            self.rest = rest;
            return Next::Ended;
        }
        if !word.starts_with('-') || *word == "-" {
            return Next::Word;
        }
        self.rest = rest;
        match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => Next::Option(name, Some(value)),
            _ => Next::Option(word, None),
        }
    }

    /// The value of an option: glued, or the next word.
    fn value(&mut self, glued: Option<&'a str>) -> Option<&'a str> {
        if glued.is_some() {
            return glued;
        }
        let (value, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(value)
    }
}

fn owned(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
