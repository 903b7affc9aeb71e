//! The schema of a policy file. Strict: what is not known is an error with a caret.

mod env;
mod limits;
mod mistakes;
mod read;
mod tools;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Error;
use crate::layer::{Layer, LayerSource};
use crate::limit_rules::Limit;
use crate::paths::{PathRoots, Tilde};
use crate::policy::{NetworkMode, Sourced, Subprocess, Trust};
use crate::suggest;
use crate::text;
use crate::toml_source::TomlSource;
use crate::{Protect, ValueError};
pub(crate) use env::check_env_value;
use mistakes::mistakes;

type Value<'a> = Spanned<DeValue<'a>>;

/// The tables of a policy file, and the keys of each.
pub const TABLES: [(&str, &[&str]); 6] = [
    ("filesystem", &["read", "write", "deny", "protect", "allow_write"]),
    ("network", &["allow", "unix", "listen", "system_trust"]),
    ("process", &["subprocess"]),
    ("limits", &Limit::KEYS),
    ("env", &["allow", "set", "secrets"]),
    ("tools", &["sandbox"]),
];

pub(crate) fn layer(text: &str, from: LayerSource, others: &[&str]) -> Result<Layer, Error> {
    let mut source = TomlSource::new(text, from.shown_path());
    let root = source.parse()?;
    let roots = PathRoots { base: from.base.clone(), home: from.home.clone() };
    let schema = Schema { source, from, roots };
    let mut layer = Layer::empty(schema.from.kind);

    schema.read(&root, others, &mut layer)?;
    Ok(layer)
}

/// The first of `later` that is in `earlier` too.
pub(crate) fn contradiction<K: Eq + Hash, A: Copy, B>(
    earlier: impl Iterator<Item = (K, A)>,
    mut later: impl Iterator<Item = (K, B)>,
) -> Option<(A, B)> {
    let earlier: HashMap<K, A> = earlier.collect();
    later.find_map(|(key, b)| earlier.get(&key).map(|a| (*a, b)))
}

/// Entries by their known keys.
type Known<'t, 'a> = Vec<(&'t str, &'t Value<'a>)>;
type Entries<'t, 'a> = [(&'t str, &'t Value<'a>)];

struct Schema<'a> {
    source: TomlSource<'a>,
    from: LayerSource,
    roots: PathRoots,
}

impl<'a> Schema<'a> {
    fn read(&self, root: &DeTable<'a>, others: &[&str], layer: &mut Layer) -> Result<(), Error> {
        let names: Vec<&str> =
            TABLES.iter().map(|(name, _)| *name).chain(others.iter().copied()).collect();
        for (name, value) in self.entries(root, None, &names)? {
            if others.contains(&name) {
                continue;
            }
            let table = match value.get_ref() {
                DeValue::Table(table) => table,
                DeValue::String(mode) if name == "network" => {
                    layer.network_mode = Some(self.network_mode(value, mode)?);
                    continue;
                }
                _ => return Err(self.wrong_type(value, "a table", format!("write [{name}]"))),
            };
            let keys = TABLES.iter().find(|table| table.0 == name).map_or(&[][..], |table| table.1);
            self.table(name, &self.entries(table, Some(name), keys)?, layer)?;
        }
        Ok(())
    }

    fn table(&self, name: &str, entries: &Entries<'_, 'a>, layer: &mut Layer) -> Result<(), Error> {
        match name {
            "filesystem" => self.filesystem(entries, layer),
            "network" => self.network(entries, layer),
            "process" => self.process(entries, layer),
            "tools" => self.tools(entries, layer),
            "limits" => self.limits(entries, &mut layer.limits),
            _ => self.env(entries, layer),
        }
    }

    /// The known entries of a table, and a mistake for each of the others.
    fn sorted<'t>(
        &self,
        table: &'t DeTable<'a>,
        name: Option<&str>,
        known: &[&str],
    ) -> (Known<'t, 'a>, Vec<(usize, Error)>) {
        let mut entries = Vec::new();
        let mut mistakes = Vec::new();
        for (key, value) in table.iter() {
            match known.contains(&&**key.get_ref()) {
                true => entries.push((&**key.get_ref(), value)),
                false => mistakes.push((key.span().start, self.unknown_key(key, name, known))),
            }
        }
        (entries, mistakes)
    }

    /// The entries of a table in the order they were written, every key a known one.
    fn entries<'t>(
        &self,
        table: &'t DeTable<'a>,
        name: Option<&str>,
        known: &[&str],
    ) -> Result<Vec<(&'t str, &'t Value<'a>)>, Error> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        if let Some((key, _)) = entries.iter().find(|(key, _)| !known.contains(&&**key.get_ref())) {
            return Err(self.unknown_key(key, name, known));
        }
        Ok(entries.into_iter().map(|(key, value)| (&**key.get_ref(), value)).collect())
    }

    fn unknown_key(
        &self,
        key: &Spanned<Cow<'_, str>>,
        table: Option<&str>,
        known: &[&str],
    ) -> Error {
        let word = key.get_ref();
        let elsewhere = || {
            let at = TABLES.iter().find(|(_, keys)| keys.contains(&&**word))?;
            Some(format!("{word} belongs in [{}]", at.0))
        };
        let hint = suggest::nearest(word, known)
            .map(|near| format!("did you mean {near:?}?"))
            .or_else(elsewhere)
            .unwrap_or_else(|| format!("known here: {}", known.join(", ")));
        let shown: String = text::word(word).chars().take(60).collect();
        let message = match table {
            Some(table) => format!("unknown key \"{shown}\" in [{table}]"),
            None => format!("unknown key \"{shown}\""),
        };
        self.source.at(key.span(), message, hint)
    }

    fn wrong_type(&self, value: &Value<'_>, expected: &str, hint: impl Into<String>) -> Error {
        let found = match value.get_ref().type_str() {
            "array" => "a list",
            "integer" => "a whole number",
            "float" => "a number",
            "string" => "a string",
            "boolean" => "true or false",
            "table" => "a table",
            _ => "a date",
        };
        self.source.at(value.span(), format!("expected {expected}, found {found}"), hint)
    }

    fn said<T>(&self, value: T, at: usize) -> Sourced<T> {
        Sourced::new(value, self.from.origin(self.source.line(at)))
    }

    /// Checks a decoded value; an error goes under the part of the file it is about.
    fn checked<T>(
        &self,
        value: &Value<'_>,
        text: &str,
        result: Result<T, ValueError>,
    ) -> Result<T, Error> {
        result.map_err(|error| self.source.in_value(value.span(), text, error))
    }

    fn list<'t>(&self, key: &str, value: &'t Value<'a>) -> Result<&'t [Value<'a>], Error> {
        match value.get_ref() {
            DeValue::Array(items) => Ok(items),
            _ => Err(self.wrong_type(value, "a list", format!("write {key} = [ … ]"))),
        }
    }

    fn string<'t>(&self, value: &'t Value<'a>) -> Result<&'t str, Error> {
        let hint = "put it in quotes";
        value.get_ref().as_str().ok_or_else(|| self.wrong_type(value, "a string", hint))
    }

    /// A list of strings, each read by `read`, with the place of each.
    fn strings<T>(
        &self,
        key: &str,
        value: &Value<'a>,
        read: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Result<Vec<(T, Range<usize>)>, Error> {
        let items = self.list(key, value)?;
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            let text = self.string(item)?;
            out.push((self.checked(item, text, read(text))?, item.span()));
        }
        Ok(out)
    }

    fn parsed<T: FromStr<Err = ValueError>>(
        &self,
        key: &str,
        value: &Value<'a>,
    ) -> Result<Vec<Sourced<T>>, Error> {
        Ok(self.sourced(self.strings(key, value, str::parse)?))
    }

    fn sourced<T>(&self, items: Vec<(T, Range<usize>)>) -> Vec<Sourced<T>> {
        items.into_iter().map(|(value, span)| self.said(value, span.start)).collect()
    }

    fn path(&self, text: &str) -> Result<PathBuf, ValueError> {
        self.roots.resolve(Path::new(text), Tilde::File)
    }

    fn filesystem(&self, entries: &Entries<'_, 'a>, layer: &mut Layer) -> Result<(), Error> {
        let (mut read, mut write, mut deny) = (Vec::new(), Vec::new(), Vec::new());
        for (key, value) in entries {
            match *key {
                "read" => read = self.strings(key, value, |text| self.path(text))?,
                "write" => write = self.strings(key, value, |text| self.path(text))?,
                "allow_write" => {
                    let paths = self.strings(key, value, |text| self.path(text))?;
                    layer.filesystem.allow_write = self.sourced(paths);
                }
                "protect" => {
                    let hint =
                        "write protect = true to keep git, editor and shell settings as they are";
                    let protect = match self.switch(value, hint)? {
                        true => Protect::Usual,
                        false => Protect::Nothing,
                    };
                    layer.protect = Some(self.said(protect, value.span().start));
                }
                _ => {
                    deny = self.strings(key, value, |text| {
                        self.roots.resolve_deny(Path::new(text), Tilde::File)
                    })?;
                }
            }
        }
        for (verb, granted) in [("read", &read), ("write", &write)] {
            let granted = granted.iter().map(|(path, span)| (path, span.start));
            let denied = deny.iter().map(|(path, span)| (path, span.clone()));
            if let Some((at, span)) = contradiction(granted, denied) {
                return Err(self.source.at(
                    span,
                    format!("this path is in both {verb} and deny"),
                    format!(
                        "deny always wins: remove this, or the {verb} entry in line {}",
                        self.source.line(at)
                    ),
                ));
            }
        }
        layer.filesystem.read = self.sourced(read);
        layer.filesystem.write = self.sourced(write);
        layer.filesystem.deny = self.sourced(deny);
        Ok(())
    }

    fn switch(&self, value: &Value<'a>, hint: &str) -> Result<bool, Error> {
        match value.get_ref() {
            DeValue::Boolean(on) => Ok(*on),
            _ => Err(self.wrong_type(value, "true or false", hint)),
        }
    }

    fn network_mode(&self, value: &Value<'a>, mode: &str) -> Result<Sourced<NetworkMode>, Error> {
        if mode == "host" {
            return Ok(self.said(NetworkMode::Host, value.span().start));
        }
        Err(self.source.at(
            value.span(),
            "unknown network mode",
            "write \"host\", or a table [network] with what to allow",
        ))
    }

    fn network(&self, entries: &Entries<'_, 'a>, layer: &mut Layer) -> Result<(), Error> {
        for (key, value) in entries {
            match *key {
                "allow" => layer.allow = self.parsed(key, value)?,
                "unix" => {
                    let paths = self.strings(key, value, |text| self.path(text))?;
                    layer.unix = self.sourced(paths);
                }
                "system_trust" => {
                    let hint = "write system_trust = true to let the command ask the system's \
                                certificate service (macOS)";
                    let trust = match self.switch(value, hint)? {
                        true => Trust::System,
                        false => Trust::Closed,
                    };
                    layer.trust = Some(self.said(trust, value.span().start));
                }
                _ => {
                    let mut seen = HashSet::new();
                    for item in self.list(key, value)? {
                        let port = self.port(item)?;
                        if seen.insert(port) {
                            layer.listen.push(self.said(port, item.span().start));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn port(&self, value: &Value<'a>) -> Result<u16, Error> {
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong_type(value, "a port number", "write listen = [8080]"));
        };
        u16::from_str_radix(number.as_str(), number.radix())
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| {
                self.source.at(value.span(), "not a port", "write a number from 1 to 65535")
            })
    }

    fn process(&self, entries: &Entries<'_, 'a>, layer: &mut Layer) -> Result<(), Error> {
        for (_, value) in entries {
            let hint = "write subprocess = false to refuse new processes";
            let subprocess = match self.switch(value, hint)? {
                true => Subprocess::Allowed,
                false => Subprocess::Refused,
            };
            layer.subprocess = Some(self.said(subprocess, value.span().start));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
