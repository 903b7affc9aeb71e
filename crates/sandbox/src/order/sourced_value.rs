//! A value with its origin, as it crosses.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use mcp_policy::{EnvName, SecretRef, ValueError};
use serde::{Deserialize, Serialize};

use super::{Origin, Sourced};

/// [`Sourced`], with a value that serde keeps exactly.
#[derive(Serialize, Deserialize)]
pub struct SourcedValue<T> {
    value: T,
    by: By,
}

/// [`Origin`].
#[derive(Serialize, Deserialize)]
enum By {
    Default,
    UserConfig(String),
    PolicyFile(String),
    Manifest(String),
    CommandLine(String),
}

impl<T> SourcedValue<T> {
    pub fn new<V>(sourced: Sourced<V>, send: impl FnOnce(V) -> T) -> SourcedValue<T> {
        let by = match sourced.origin {
            Origin::Default => By::Default,
            Origin::UserConfig { place } => By::UserConfig(place),
            Origin::PolicyFile { place } => By::PolicyFile(place),
            Origin::Manifest { place } => By::Manifest(place),
            Origin::CommandLine { flag } => By::CommandLine(flag),
        };
        SourcedValue { value: send(sourced.value), by }
    }

    pub fn map<V>(self, receive: impl FnOnce(T) -> V) -> Sourced<V> {
        let origin = match self.by {
            By::Default => Origin::Default,
            By::UserConfig(place) => Origin::UserConfig { place },
            By::PolicyFile(place) => Origin::PolicyFile { place },
            By::Manifest(place) => Origin::Manifest { place },
            By::CommandLine(flag) => Origin::CommandLine { flag },
        };
        Sourced::new(receive(self.value), origin)
    }

    fn try_map<V>(
        self,
        receive: impl FnOnce(T) -> Result<V, ValueError>,
    ) -> Result<Sourced<V>, ValueError> {
        let Sourced { value, origin } = self.map(receive);
        Ok(Sourced::new(value?, origin))
    }
}

pub fn list<V, T>(list: Vec<Sourced<V>>, send: impl Fn(V) -> T) -> Vec<SourcedValue<T>> {
    list.into_iter().map(|item| SourcedValue::new(item, &send)).collect()
}

pub fn unlist<T, V>(
    list: Vec<SourcedValue<T>>,
    receive: impl Fn(T) -> Result<V, ValueError>,
) -> Result<Vec<Sourced<V>>, ValueError> {
    list.into_iter().map(|item| item.try_map(&receive)).collect()
}

pub fn map<V, T>(
    map: BTreeMap<EnvName, Sourced<V>>,
    send: impl Fn(V) -> T,
) -> Vec<(String, SourcedValue<T>)> {
    let item =
        |(name, value): (EnvName, _)| (name.as_str().to_owned(), SourcedValue::new(value, &send));
    map.into_iter().map(item).collect()
}

pub fn unmap<T, V>(
    map: Vec<(String, SourcedValue<T>)>,
    receive: impl Fn(T) -> Result<V, ValueError>,
) -> Result<BTreeMap<EnvName, Sourced<V>>, ValueError> {
    let item =
        |(name, value): (String, SourcedValue<T>)| Ok((name.parse()?, value.try_map(&receive)?));
    map.into_iter().map(item).collect()
}

/// [`SecretRef`].
#[derive(Serialize, Deserialize)]
pub enum Reference {
    Env(String),
    File(OsString),
    Command(String),
}

impl Reference {
    pub fn new(reference: SecretRef) -> Reference {
        match reference {
            SecretRef::Env(name) => Reference::Env(name.as_str().to_owned()),
            SecretRef::File(path) => Reference::File(path.into_os_string()),
            SecretRef::Command(command) => Reference::Command(command),
        }
    }

    pub fn reference(self) -> Result<SecretRef, ValueError> {
        Ok(match self {
            Reference::Env(name) => SecretRef::Env(name.parse()?),
            Reference::File(path) => SecretRef::File(PathBuf::from(path)),
            Reference::Command(command) => SecretRef::Command(command),
        })
    }
}
