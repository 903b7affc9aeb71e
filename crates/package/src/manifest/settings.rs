//! `user_config`: what a package lets its user set.

use std::path::{Path, PathBuf};

use mcp_policy::{SecretRef, windows_path};
use serde::Deserialize;

use crate::error::{Error, Result};

/// A setting that the user can give to a package.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// The type of its value.
    pub kind: SettingKind,
    /// A short name for people.
    pub title: String,
    /// Its description, for people.
    pub description: String,
    /// Whether the server cannot start without it.
    pub is_required: bool,
    /// Whether it may be given more than once.
    pub is_multiple: bool,
    /// Whether its value is a secret.
    pub is_sensitive: bool,
    /// The smallest number.
    pub min: Option<f64>,
    /// The largest number.
    pub max: Option<f64>,
    /// In text, variables not yet replaced.
    pub default: Vec<String>,
    /// What a directory or file is wanted for.
    pub access: Access,
}

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SettingKind {
    /// Text.
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// The path of a directory.
    Directory,
    /// The path of a file.
    File,
}

/// MCPB does not say, and most servers that take a directory write to it; `mcp.toml` can say less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Access {
    /// Read only.
    Read,
    /// Read and write.
    Write,
}

/// What the user said on the command line: `KEY=VALUE`, some of them several times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given(pub Vec<(String, String)>);

impl Given {
    /// The values that were given for a key.
    #[must_use]
    pub fn of(&self, key: &str) -> Vec<&str> {
        self.0.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str()).collect()
    }
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Absent,
    One(String),
    Many(Vec<String>),
    Secret(SecretRef),
}

impl Setting {
    /// Whether its value is the path of a file or a directory.
    #[must_use]
    pub fn is_path(&self) -> bool {
        matches!(self.kind, SettingKind::Directory | SettingKind::File)
    }

    /// Checks what the user gave. Paths become absolute.
    pub(super) fn given(
        &self,
        key: &str,
        values: &[&str],
        cwd: &Path,
        home: Option<&Path>,
    ) -> Result<Value> {
        let wrong = |why: &str| Error::usage(format!("--config {key}: {why}"), "");
        if self.is_sensitive {
            let [reference] = values else {
                return Err(wrong("expected one value"));
            };
            // The value may be the secret itself: not repeated.
            return reference.parse().map(Value::Secret).map_err(|_| {
                wrong("is secret, so it is given by reference: env:NAME, file:PATH or cmd:COMMAND")
            });
        }
        if values.len() > 1 && !self.is_multiple {
            return Err(wrong("takes one value, and was given several"));
        }
        let mut checked = Vec::new();
        for value in values {
            checked.push(self.checked(value, cwd, home).map_err(|why| wrong(&why))?);
        }
        Ok(self.value(checked))
    }

    pub(super) fn value(&self, mut values: Vec<String>) -> Value {
        match self.is_multiple {
            true => Value::Many(values),
            false if values.len() == 1 => values.pop().map_or(Value::Absent, Value::One),
            false => Value::Absent,
        }
    }

    fn checked(
        &self,
        value: &str,
        cwd: &Path,
        home: Option<&Path>,
    ) -> std::result::Result<String, String> {
        if value.contains('\0') {
            return Err("NUL character".to_owned());
        }
        match self.kind {
            SettingKind::String => Ok(value.to_owned()),
            SettingKind::Boolean if ["true", "false"].contains(&value) => Ok(value.to_owned()),
            SettingKind::Boolean => Err(format!("expected true or false, found {value:?}")),
            SettingKind::Number => {
                let number: f64 = value
                    .parse()
                    .ok()
                    .filter(|number: &f64| number.is_finite())
                    .ok_or_else(|| format!("expected a number, found {value:?}"))?;
                if self.min.is_some_and(|min| number < min)
                    || self.max.is_some_and(|max| number > max)
                {
                    let (min, max) = (bound(self.min), bound(self.max));
                    return Err(format!("expected a number from {min} to {max}, found {value}"));
                }
                Ok(value.to_owned())
            }
            SettingKind::Directory | SettingKind::File => {
                let path = absolute(value, cwd, home);
                path.into_os_string().into_string().map_err(|_| "expected UTF-8".to_owned())
            }
        }
    }
}

fn bound(value: Option<f64>) -> String {
    value.map_or_else(|| "any".to_owned(), |value| value.to_string())
}

fn absolute(value: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let path = match (value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if value == "~" => home.unwrap_or(cwd).to_owned(),
        _ => cwd.join(value),
    };
    let path: PathBuf = path.components().collect();
    let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
    // Inside, what is above a granted directory may not be there to climb over.
    match climbs.then(|| path.canonicalize().map(windows_path::plain)) {
        Some(Ok(real)) => real,
        _ => path,
    }
}
