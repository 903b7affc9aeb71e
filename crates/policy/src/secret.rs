//! Where a secret is kept. The value itself is never in a policy, so it can be printed,
//! logged and committed.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::text;
use crate::{EnvName, ValueError};

/// A reference the launcher follows when the run starts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretRef {
    /// `env:NAME`: a variable of the launcher's own environment.
    Env(EnvName),
    /// `file:PATH`: the content of a file.
    File(PathBuf),
    /// `cmd:COMMAND`: what a command of the user's prints.
    Command(String),
}

const FORMS: &str = "write env:NAME, file:PATH or cmd:COMMAND";

impl FromStr for SecretRef {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        if let Some(name) = value.strip_prefix("env:") {
            return name.parse().map(Self::Env).map_err(|error| error.shifted("env:".len()));
        }
        let (kind, rest) = value.split_once(':').unwrap_or(("", value));
        match kind {
            "file" | "cmd" if rest.is_empty() => {
                Err(ValueError::new(0..value.len(), format!("nothing after \"{kind}:\""), FORMS))
            }
            "file" | "cmd" if rest.contains('\0') => Err(ValueError::new(
                0..value.len(),
                format!("NUL character after \"{kind}:\""),
                FORMS,
            )),
            "file" => Ok(Self::File(PathBuf::from(rest))),
            "cmd" => Ok(Self::Command(rest.to_owned())),
            // Whatever it is, it may be the secret itself: say nothing of it.
            _ => Err(ValueError::new(
                0..value.len(),
                "secrets are given by reference, not by value",
                FORMS,
            )),
        }
    }
}

/// The reference, never the value.
impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", text::word(&path.to_string_lossy())),
            Self::Command(command) => write!(f, "cmd:{}", text::word(command)),
        }
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms() {
        for reference in ["env:GITHUB_TOKEN", "file:/run/secrets/token", "cmd:pass show github"] {
            assert_eq!(reference.parse::<SecretRef>().unwrap().to_string(), reference);
        }
    }

    #[test]
    fn a_literal_is_refused_and_not_repeated() {
        for literal in ["ghp_hunter2", "hunter2:hunter2", "https://hunter2@host"] {
            let error = literal.parse::<SecretRef>().unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
            assert!(error.contains("env:NAME, file:PATH or cmd:COMMAND"), "{error}");
        }
    }

    #[test]
    fn empty_references_are_refused() {
        for reference in ["", "env:", "file:", "cmd:", "env:A=B", "file:a\0b"] {
            assert!(reference.parse::<SecretRef>().is_err(), "{reference:?}");
        }
    }
}
