//! Manifest and settings → the command to run, and what it asks for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mcp_policy::{EnvName, Layer, LayerBuilder};

use super::settings::{Given, Value};
use super::substitute::{Places, Text, Variables};
use super::{MCPB, Manifest, Setting};
use crate::Access;
use crate::error::{Error, Result};

/// Where a package is started: its user's directories, and what the user set.
pub struct LaunchContext<'a> {
    /// The user's directories.
    pub places: &'a Places,
    /// The settings that the user gave.
    pub given: &'a Given,
    /// The working directory.
    pub cwd: &'a Path,
}

/// How a package's server is started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Launch {
    /// A path, or a name to be found on PATH.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that the package sets for itself.
    pub env: BTreeMap<EnvName, String>,
    /// What the package asks for: of kind manifest, so it grants nothing.
    pub asks: Vec<Layer>,
    /// What the user gave by naming it in a setting: paths to read, paths to write, secrets.
    pub given: Layer,
}

impl Manifest {
    /// Replaces the variables of the manifest, and checks the settings.
    pub fn launch(&self, scene: &LaunchContext<'_>) -> Result<Launch> {
        let home = scene.places.home.clone();
        // The user's own words: what is named in a setting is given.
        let mut given = Layer::command_line(scene.cwd, home.clone());
        let mut asked = Layer::manifest(MCPB, &scene.places.directory, home);
        let settings = self.values(scene, &mut given, &mut asked)?;
        let variables = Variables { places: scene.places, settings: &settings };

        let command = variables.text(&self.server.command, "server.command")?;
        let mut args = Vec::new();
        for arg in &self.server.args {
            match variables.replace(arg, "server.args")? {
                Text::One(text) => args.push(text),
                Text::Many(texts) => args.extend(texts),
                Text::Absent => {}
                Text::Secret(_) => {
                    return Err(variables.text(arg, "server.args").err().unwrap_or_else(never));
                }
            }
        }
        let mut env = BTreeMap::new();
        for (name, value) in &self.server.env {
            let place = format!("server.env {name}");
            let name: EnvName =
                name.parse().map_err(|e| Error::package(format!("{place}: {e}")))?;
            match variables.replace(value, &place)? {
                Text::One(text) => drop(env.insert(name, text)),
                Text::Absent => {}
                Text::Secret(reference) => drop(given.secret(name, reference)),
                // As a path list, for want of a better custom: MCPB says nothing.
                Text::Many(texts) => {
                    drop(env.insert(name, texts.join(if cfg!(windows) { ";" } else { ":" })))
                }
            }
        }
        let mut asks: Vec<Layer> = self.asks.iter().cloned().collect();
        asks.push(asked.build().map_err(|e| Error::package(e.to_string()))?);
        Ok(Launch {
            program: program(command, &scene.places.directory)?,
            args,
            env,
            asks,
            given: given.build().map_err(|e| Error::usage(e.to_string(), ""))?,
        })
    }

    fn values(
        &self,
        scene: &LaunchContext<'_>,
        given: &mut LayerBuilder,
        asked: &mut LayerBuilder,
    ) -> Result<BTreeMap<String, Value>> {
        if let Some((key, _)) =
            scene.given.0.iter().find(|(key, _)| !self.settings.contains_key(key))
        {
            let known: Vec<&str> = self.settings.keys().map(String::as_str).collect();
            return Err(Error::usage(
                format!("--config {key}: the package has no such setting"),
                match known.is_empty() {
                    true => "it has none".to_owned(),
                    false => format!("it has: {}", known.join(", ")),
                },
            ));
        }
        let none = BTreeMap::new();
        let defaults = Variables { places: scene.places, settings: &none };
        let mut values = BTreeMap::new();
        for (key, setting) in &self.settings {
            let said = scene.given.of(key);
            let (value, layer) = if said.is_empty() {
                let place = format!("user_config.{key}.default");
                let texts = setting.default.iter().map(|text| defaults.text(text, &place));
                (setting.value(texts.collect::<Result<_>>()?), &mut *asked)
            } else {
                let home = scene.places.home.as_deref();
                (setting.given(key, &said, scene.cwd, home)?, &mut *given)
            };
            let is_missing = match &value {
                Value::Absent => true,
                Value::Many(values) => values.is_empty(),
                Value::One(_) | Value::Secret(_) => false,
            };
            if setting.is_required && is_missing {
                return Err(missing(key, setting));
            }
            if setting.is_path() {
                grant(setting, &value, layer);
            }
            values.insert(key.clone(), value);
        }
        Ok(values)
    }
}

fn grant(setting: &Setting, value: &Value, layer: &mut LayerBuilder) {
    let paths: &[String] = match value {
        Value::One(path) => std::slice::from_ref(path),
        Value::Many(paths) => paths,
        Value::Absent | Value::Secret(_) => &[],
    };
    for path in paths {
        match setting.access {
            Access::Read => layer.read(path),
            Access::Write => layer.write(path),
        };
    }
}

fn missing(key: &str, setting: &Setting) -> Error {
    let what = [&setting.title, &setting.description].into_iter().find(|text| !text.is_empty());
    let what: String = what.map_or(String::new(), |text| {
        let text: String = mcp_policy::text::word(text).chars().take(120).collect();
        format!(" ({text})")
    });
    let form = if setting.is_sensitive { "env:NAME" } else { "VALUE" };
    Error::usage(
        format!("the package needs the setting {key}{what}"),
        format!("give it with --config {key}={form}"),
    )
}

/// A path in the package, or a name to be found on PATH.
fn program(command: String, directory: &Path) -> Result<String> {
    if command.is_empty() {
        return Err(Error::package("the command to start is empty"));
    }
    let path = PathBuf::from(&command);
    if path.is_absolute() || path.components().count() == 1 && !command.starts_with('.') {
        return Ok(command);
    }
    let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
    if climbs {
        return Err(Error::package(format!("the command {command:?} leads out of the package")));
    }
    let joined: PathBuf = directory.join(path).components().collect();
    joined
        .into_os_string()
        .into_string()
        .map_err(|_| Error::machine("the package's directory is not UTF-8", ""))
}

/// A secret among arguments is always an error of `text`.
fn never() -> Error {
    Error::package("server.args: a sensitive setting among the arguments")
}
