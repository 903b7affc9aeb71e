//! What an entry becomes: the same server behind `mcp run`, with the least that its line speaks of.
//!
//! Pure but for looking whether a word names a directory or a file.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::client::Environment;
use crate::entry::{Shape, Stdio};

mod paths;

/// What the words of an entry mean to `mcp run`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Line {
    /// A package, and what its server is given.
    Package {
        /// The reference that `mcp run` takes.
        reference: String,
        /// The program in the package, where it is not the package's own name.
        program: Option<String>,
        /// The arguments of the server.
        arguments: Vec<String>,
    },
    /// A wrapper taken off: the program that it would start.
    Program {
        /// The program and its arguments.
        words: Vec<String>,
    },
    /// As it stands.
    Original,
    /// Cannot be put behind `mcp run`.
    Unclear {
        /// The reason that is shown to the user.
        why: String,
    },
}

/// What is known of a server beside its line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Network rules, and who says so.
    pub network: Vec<String>,
    /// A policy file that was learned before.
    pub policy: Option<PathBuf>,
    /// Variables that the server reads.
    pub variables: Vec<String>,
    /// Whether it writes to the directories it is given.
    pub writes: bool,
    /// Who says so: a line for the user.
    pub source: Option<String>,
}

impl Wanted {
    /// Sets the network rules and who says so.
    pub fn set_network(mut self, network: Vec<String>, source: impl Into<String>) -> Wanted {
        self.network = network;
        self.source = Some(source.into());
        self
    }

    /// Sets the policy file.
    #[must_use]
    pub fn set_policy(mut self, policy: PathBuf) -> Wanted {
        self.source = Some(format!("{}, learned before", policy.display()));
        self.policy = Some(policy);
        self
    }

    /// Sets whether the server writes.
    #[must_use]
    pub fn set_writes(mut self, writes: bool) -> Wanted {
        self.writes = writes;
        self
    }

    /// Sets the variables that the server reads.
    #[must_use]
    pub fn set_variables(mut self, variables: Vec<String>) -> Wanted {
        self.variables = variables;
        self
    }
}

/// For whom it is written.
pub struct Target<'a> {
    /// The absolute path of `mcp`.
    pub mcp: &'a str,
    /// The user's home directory.
    pub home: &'a Path,
    /// What relative paths start from; none outside of a project.
    pub base: Option<&'a Path>,
    /// Which variables the client passes on to its servers.
    pub environment: Environment,
    /// Looks a variable up in the client's environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// What a server may do in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Access {
    /// Read only.
    Read,
    /// Read and write.
    Write,
}

impl Access {
    /// The flag of `mcp run` for this access.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Access::Read => "--read",
            Access::Write => "--write",
        }
    }
}

/// A place that the line speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Grant {
    /// As it is written, with what the client expands.
    pub text: String,
    /// Whether the server may write there.
    pub access: Access,
    /// Whether a person may choose; code is only ever read.
    pub is_open: bool,
}

/// What an entry would become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Proposal {
    /// The absolute path of `mcp`.
    pub mcp: String,
    /// Names for `--env`.
    pub env: Vec<String>,
    /// The file for `--env-file`.
    pub env_file: Option<String>,
    /// The places that the server may use.
    pub grants: Vec<Grant>,
    /// Rules for `--allow-net`.
    pub network: Vec<String>,
    /// The file for `--policy`.
    pub policy: Option<String>,
    /// Who says what of the network; none where nothing is known.
    pub network_source: Option<String>,
    /// The package or `--` and the command.
    pub body: Vec<String>,
    /// How many of the last words stay as they stand.
    pub keep: usize,
    /// Variables that the client would not pass on unless the entry names them.
    pub add_env: Vec<(String, String)>,
    /// The package, if the command is one.
    pub reference: Option<String>,
    /// Remarks for the user.
    pub notes: Vec<String>,
    #[serde(skip)]
    shape: Shape,
}

/// Why an entry stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The reason that is shown to the user.
    pub why: String,
}

/// Characters of which a shell makes something else.
const SHELL: &str = "\"'`$&|;<>()*?\\\n";

/// A command with blanks in it: clients that start it by a shell take it apart.
fn apart(stdio: &Stdio) -> Result<Option<Stdio>, Refusal> {
    let is_one = !stdio.command.contains(char::is_whitespace)
        || stdio.shape != Shape::Separate
        || Path::new(&stdio.command).exists()
        || !stdio.args.is_empty();
    if is_one {
        return Ok(None);
    }
    if stdio.command.contains(|c| SHELL.contains(c)) {
        return Err(Refusal {
            why: "its command is a line for a shell; write it as a command and arguments"
                .to_owned(),
        });
    }
    let mut words = stdio.command.split_whitespace().map(str::to_owned);
    let command = words.next().unwrap_or_default();
    Ok(Some(Stdio { command, args: words.collect(), ..stdio.clone() }))
}

/// What an entry would become, or why it stays.
pub fn propose(
    stdio: &Stdio,
    understand: &dyn Fn(&[String]) -> Line,
    known: &dyn Fn(&str) -> Wanted,
    target: &Target<'_>,
) -> Result<Proposal, Refusal> {
    let taken = apart(stdio)?;
    let whole = taken.as_ref().unwrap_or(stdio);
    let mut notes = Vec::new();
    let (body, mut keep, reference, given) = match understand(&whole.words()) {
        Line::Unclear { why } => return Err(Refusal { why }),
        Line::Package { reference, program, arguments } => {
            let mut body = Vec::new();
            if let Some(program) = program {
                body.extend(["--bin".to_owned(), program]);
            }
            body.push(reference.clone());
            if !arguments.is_empty() {
                body.push("--".to_owned());
            }
            (body, arguments.len(), Some(reference), arguments)
        }
        Line::Program { words } => (vec!["--".to_owned()], words.len(), None, words),
        Line::Original => {
            let body = vec!["--".to_owned(), whole.command.clone()];
            (body, whole.args.len(), None, whole.words())
        }
    };
    let mut body = body;
    if taken.is_some() || !whole.args.ends_with(&given[given.len() - keep..]) {
        // Not written as these words anywhere: all of them are new.
        body.extend(given[given.len() - keep..].iter().cloned());
        keep = 0;
    }
    let wanted = reference.as_deref().map(known).unwrap_or_default();
    let (env, add_env) = variables(whole, &wanted, target, &mut notes);
    let is_package = reference.is_some();
    let grants = paths::grants(whole, &given, is_package, &wanted, target, &mut notes);
    if stdio.has_client_sandbox {
        notes.push(
            "it has sandboxEnabled, which also lets the client approve every call of it; take that out".to_owned(),
        );
    }
    Ok(Proposal {
        mcp: target.mcp.to_owned(),
        env,
        env_file: whole.env_file.clone(),
        grants,
        network: wanted.network,
        policy: wanted.policy.and_then(|path| path.to_str().map(str::to_owned)),
        network_source: wanted.source,
        body,
        keep,
        add_env,
        reference,
        notes,
        shape: stdio.shape,
    })
}

/// Names that the sandbox gives values of its own.
const OWN: [&str; 6] = ["HOME", "TMPDIR", "TMP", "TEMP", "USERPROFILE", "PWD"];

/// What is passed on, and what the client has to be told to pass on.
fn variables(
    stdio: &Stdio,
    wanted: &Wanted,
    target: &Target<'_>,
    notes: &mut Vec<String>,
) -> (Vec<String>, Vec<(String, String)>) {
    let mut names: Vec<String> = Vec::new();
    let set = |name: &str| stdio.env.iter().any(|(known, _)| known == name);
    let own = stdio.env.iter().map(|(name, _)| name).chain(&stdio.inherit);
    // What the server reads and the session has: those of the entry come first.
    let read = wanted.variables.iter().filter(|name| (target.variable)(name).is_some());
    for name in own.chain(read) {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if OWN.contains(&name.as_str()) {
            notes.push(format!("{name} is not passed on: the sandbox has its own"));
        } else if name.is_empty() || !name.chars().all(good) {
            notes.push(format!("{name:?} is no name that can be passed on by --env"));
        } else if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let mut add = Vec::new();
    if target.environment == Environment::PathOnly {
        // mcp itself needs to know where its packages are.
        for name in
            ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"]
        {
            let value = (target.variable)(name).filter(|_| !set(name));
            add.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    if target.environment != Environment::Usual {
        let is_dropped = |name: &&String| {
            let upper = name.to_ascii_uppercase();
            target.environment == Environment::PathOnly
                || ["TOKEN", "KEY", "SECRET", "PASSWORD", "AUTH", "CREDENTIAL"]
                    .iter()
                    .any(|part| upper.contains(part))
        };
        for name in names.iter().filter(|name| !set(name)).filter(is_dropped) {
            // The client puts the value in: it is not written into the file.
            add.push((name.clone(), format!("${{{name}}}")));
        }
    }
    (names, add)
}

impl Proposal {
    /// The words after the path of `mcp` and before those that stay.
    #[must_use]
    pub fn head(&self) -> Vec<String> {
        let mut head = vec!["run".to_owned()];
        for name in &self.env {
            head.extend(["--env".to_owned(), name.clone()]);
        }
        for file in self.env_file.iter() {
            head.extend(["--env-file".to_owned(), file.clone()]);
        }
        for policy in self.policy.iter() {
            head.extend(["--policy".to_owned(), policy.clone()]);
        }
        for grant in &self.grants {
            head.extend([grant.access.flag().to_owned(), grant.text.clone()]);
        }
        for rule in &self.network {
            head.extend(["--allow-net".to_owned(), rule.clone()]);
        }
        head.extend(self.body.iter().cloned());
        head
    }

    /// The whole line that results.
    #[must_use]
    pub fn words(&self, stdio: &Stdio) -> Vec<String> {
        let mut words = vec![self.mcp.clone()];
        words.extend(self.head());
        words.extend(stdio.args[stdio.args.len() - self.keep..].iter().cloned());
        words
    }

    /// What is written in the place of the first words of the list.
    pub(crate) fn replacement(&self) -> Vec<String> {
        match self.shape {
            Shape::Argv => std::iter::once(self.mcp.clone()).chain(self.head()).collect(),
            _ => self.head(),
        }
    }

    /// The same with another path of `mcp` alone, for an entry that is wired to one that is gone.
    #[must_use]
    pub fn repointed(stdio: &Stdio, mcp: &str) -> Proposal {
        Proposal {
            mcp: mcp.to_owned(),
            env: Vec::new(),
            env_file: None,
            grants: Vec::new(),
            network: Vec::new(),
            policy: None,
            network_source: None,
            body: Vec::new(),
            keep: stdio.args.len().saturating_sub(1),
            add_env: Vec::new(),
            reference: None,
            notes: Vec::new(),
            shape: stdio.shape,
        }
    }
}
