//! What goes in and what comes out.

use mcp_policy::Policy;
use serde::Serialize;

use crate::{Intents, controls, yaml};

/// One server, as it is to run elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its name in servers.toml.
    pub name: String,
    /// What it may do: every layer merged, the user's own settings too, since those stay behind.
    pub policy: Policy,
    /// Options of `mcp run` that are no part of a policy.
    pub options: Vec<String>,
    /// What is started.
    pub start: Start,
}

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A program of the target, and its arguments.
    Command(Vec<String>),
    /// A package.
    Package {
        /// Its reference, such as `npm:NAME`.
        reference: String,
        /// Options about where it comes from, such as `--registry HOST`.
        fetching: Vec<String>,
        /// For its server.
        arguments: Vec<String>,
    },
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct File {
    /// Its name, relative to the directory of the export.
    pub name: String,
    /// What is in it.
    pub text: String,
}

impl File {
    pub(crate) fn new(name: impl Into<String>, text: impl Into<String>) -> File {
        File { name: name.into(), text: text.into() }
    }
}

/// One server for one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Export {
    /// Its name in servers.toml.
    pub server: String,
    /// The files, in the order in which people read them.
    pub files: Vec<File>,
    /// What the target enforces of the policy.
    pub controls: Intents,
    /// What a person has to know or to do.
    pub notes: Vec<String>,
}

impl Export {
    /// The head of the first file: what holds there, and what is to be done.
    pub(crate) fn head(&self, title: &str) -> String {
        let mut lines = vec![title.to_owned(), String::new()];
        lines.extend(controls::lines(&self.controls));
        if !self.notes.is_empty() {
            lines.push(String::new());
            lines.extend(self.notes.iter().cloned());
        }
        yaml::comments(&lines)
    }
}
