//! `${…}` in commands, arguments, variables and defaults.
//!
//! One pass: what a value brings in is not looked at again, so a setting cannot smuggle in a variable.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcp_policy::SecretRef;

use super::settings::Value;
use crate::error::{Error, Result};

/// What the variables stand for that are not settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The package's own directory.
    pub directory: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The user's desktop.
    pub desktop: Option<PathBuf>,
    /// The user's documents.
    pub documents: Option<PathBuf>,
    /// The user's downloads.
    pub downloads: Option<PathBuf>,
}

pub(super) struct Variables<'a> {
    pub places: &'a Places,
    pub settings: &'a BTreeMap<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    One(String),
    /// All of it was a setting with several values.
    Many(Vec<String>),
    /// All of it was a secret.
    Secret(SecretRef),
    /// All of it was a setting that no user set.
    Absent,
}

impl Variables<'_> {
    /// Replaces the variables in `text`; `place` says where it stands, for errors.
    pub fn replace(&self, text: &str, place: &str) -> Result<Text> {
        if let Some(key) = whole_setting(text) {
            return Ok(match self.setting(key, place)? {
                Value::Absent => Text::Absent,
                Value::One(value) => Text::One(value.clone()),
                Value::Many(values) => Text::Many(values.clone()),
                Value::Secret(reference) => Text::Secret(reference.clone()),
            });
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out += before;
            let Some((name, after)) = after.split_once('}') else {
                return Err(Error::package(format!("{place}: \"${{\" without \"}}\" in {text:?}")));
            };
            out += &self.named(name, place)?;
            rest = after;
        }
        Ok(Text::One(out + rest))
    }

    /// For places that hold one text and nothing else.
    pub fn text(&self, text: &str, place: &str) -> Result<String> {
        match self.replace(text, place)? {
            Text::One(text) => Ok(text),
            Text::Absent => Ok(String::new()),
            Text::Many(values) if values.len() == 1 => Ok(values.concat()),
            Text::Many(_) => {
                Err(Error::package(format!("{place}: several values where one belongs")))
            }
            Text::Secret(_) => Err(secret_in_text(place)),
        }
    }

    fn setting(&self, key: &str, place: &str) -> Result<&Value> {
        self.settings.get(key).ok_or_else(|| {
            Error::package(format!("{place}: ${{user_config.{key}}} is not in user_config"))
        })
    }

    fn named(&self, name: &str, place: &str) -> Result<String> {
        if let Some(key) = name.strip_prefix("user_config.") {
            return match self.setting(key, place)? {
                Value::Absent => Ok(String::new()),
                Value::One(value) => Ok(value.clone()),
                Value::Many(values) if values.len() == 1 => Ok(values.concat()),
                Value::Many(_) => Err(Error::package(format!(
                    "{place}: ${{{name}}} has several values and has to stand alone"
                ))),
                Value::Secret(_) => Err(secret_in_text(place)),
            };
        }
        let places = self.places;
        let path = match name {
            "/" | "pathSeparator" => return Ok(std::path::MAIN_SEPARATOR_STR.to_owned()),
            "__dirname" => Some(&places.directory),
            "HOME" => places.home.as_ref(),
            "DESKTOP" => places.desktop.as_ref(),
            "DOCUMENTS" => places.documents.as_ref(),
            "DOWNLOADS" => places.downloads.as_ref(),
            _ => {
                return Err(Error::package(format!(
                    "{place}: ${{{}}} is not a variable",
                    mcp_policy::text::word(name)
                ))
                .hinted(
                    "known: __dirname, HOME, DESKTOP, DOCUMENTS, DOWNLOADS, / and user_config.KEY",
                ));
            }
        };
        let path = path.ok_or_else(|| {
            Error::machine(format!("{place}: ${{{name}}} is not known on this machine"), "set HOME")
        })?;
        path.to_str().map(str::to_owned).ok_or_else(|| {
            Error::machine(format!("{place}: ${{{name}}} is not UTF-8 on this machine"), "")
        })
    }
}

fn secret_in_text(place: &str) -> Error {
    Error::package(format!(
        "{place}: a sensitive setting can only be all of an environment variable"
    ))
    .hinted("on a command line every process could read it; ask the publisher to use a variable")
}

/// The key, when the text is one `${user_config.KEY}` and nothing else.
fn whole_setting(text: &str) -> Option<&str> {
    let key = text.strip_prefix("${user_config.")?.strip_suffix('}')?;
    (!key.contains(['$', '}'])).then_some(key)
}
