//! `[env]`: what is taken over, what is set, and what is a secret.

use toml::de::DeValue;

use super::{Entries, Schema, Value, contradiction};
use crate::error::Error;
use crate::layer::Layer;
use crate::paths::Tilde;
use crate::{EnvName, SecretRef, ValueError};

impl<'a> Schema<'a> {
    pub(super) fn env(&self, entries: &Entries<'_, 'a>, layer: &mut Layer) -> Result<(), Error> {
        for (key, value) in entries {
            match *key {
                "allow" => layer.env.allow = self.parsed(key, value)?,
                "set" => {
                    for (name, value) in self.named(key, value)? {
                        let text = self.string(value)?;
                        self.checked(value, text, check_env_value(text))?;
                        let said = self.said(text.to_owned(), value.span().start);
                        layer.env.set.insert(name, said);
                    }
                }
                _ => {
                    for (name, value) in self.named(key, value)? {
                        let text = self.string(value)?;
                        let reference = self.checked(value, text, self.secret(text))?;
                        let said = self.said(reference, value.span().start);
                        layer.env.secrets.insert(name, said);
                    }
                }
            }
        }
        self.one_value_each(entries)
    }

    fn secret(&self, text: &str) -> Result<SecretRef, ValueError> {
        match text.parse()? {
            SecretRef::File(path) => self
                .roots
                .resolve(&path, Tilde::File)
                .map(SecretRef::File)
                .map_err(|error| error.shifted("file:".len())),
            other => Ok(other),
        }
    }

    fn named<'t>(
        &self,
        key: &str,
        value: &'t Value<'a>,
    ) -> Result<Vec<(EnvName, &'t Value<'a>)>, Error> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong_type(value, "a table", format!("write [env.{key}]")));
        };
        let mut named = Vec::with_capacity(table.len());
        for (name, value) in table {
            let parsed = name
                .get_ref()
                .parse()
                .map_err(|error| self.source.in_value(name.span(), name.get_ref(), error))?;
            named.push((parsed, value));
        }
        Ok(named)
    }

    fn one_value_each(&self, entries: &Entries<'_, 'a>) -> Result<(), Error> {
        let keys = |wanted: &str| {
            let entry = entries.iter().find(|(key, _)| *key == wanted);
            let table = entry.and_then(|(_, value)| value.get_ref().as_table());
            table.into_iter().flat_map(|table| table.keys())
        };
        let set = keys("set").map(|key| (key.get_ref(), key.span().start));
        let secrets = keys("secrets").map(|key| (key.get_ref(), key.span()));
        match contradiction(set, secrets) {
            None => Ok(()),
            Some((at, span)) => Err(self.source.at(
                span,
                "this variable is in both set and secrets",
                format!(
                    "a variable has one value: remove this, or the one in line {}",
                    self.source.line(at)
                ),
            )),
        }
    }
}

/// A variable's value can be anything but what no kernel can pass on.
pub(crate) fn check_env_value(value: &str) -> Result<(), ValueError> {
    match value.find('\0') {
        None => Ok(()),
        Some(at) => {
            let message = "NUL character in an environment variable's value";
            Err(ValueError::new(at..at + 1, message, "remove it"))
        }
    }
}
