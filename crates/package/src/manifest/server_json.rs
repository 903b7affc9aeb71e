//! `server.json` of the public MCP registry: where a server's package is, and how it is started.
//!
//! It names packages of other registries; what each asks its user for becomes settings, as those
//! of a bundle. Of several packages the first that can be run here is taken.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::settings::{Access, Setting, SettingKind};
use super::{MAX_MANIFEST, Manifest};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::reference::{Package, Reference};

/// An entry of the public MCP registry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerJson {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its description, for people.
    pub description: String,
    /// Where the package is.
    pub origin: Origin,
    /// Added to what the package itself is started with; variables as in MCPB.
    pub args: Vec<String>,
    /// Variables for the server.
    pub env: BTreeMap<String, String>,
    /// The settings that the user can give, by name.
    pub settings: BTreeMap<String, Setting>,
    /// Parts of the entry that are ignored, for the user to read.
    pub warnings: Vec<String>,
}

/// Where the package itself is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// On npm.
    Npm(Package),
    /// On PyPI.
    Pypi(Package),
    /// A bundle at an address.
    Mcpb {
        /// The address.
        url: String,
        /// The digest that the bundle must have.
        sha256: Digest,
    },
}

#[derive(Deserialize)]
struct Raw {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    packages: Vec<RawPackage>,
    #[serde(default)]
    remotes: Vec<Value>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

const KNOWN: [&str; 7] =
    ["$schema", "title", "repository", "websiteUrl", "icons", "_meta", "status"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPackage {
    registry_type: String,
    identifier: String,
    version: Option<String>,
    file_sha256: Option<String>,
    transport: Option<RawTransport>,
    #[serde(default)]
    runtime_arguments: Vec<Argument>,
    #[serde(default)]
    package_arguments: Vec<Argument>,
    #[serde(default)]
    environment_variables: Vec<Input>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

const KNOWN_OF_PACKAGE: [&str; 2] = ["registryBaseUrl", "runtimeHint"];

#[derive(Deserialize)]
struct RawTransport {
    r#type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    r#type: ArgumentType,
    value_hint: Option<String>,
    #[serde(default)]
    is_repeated: bool,
    #[serde(flatten)]
    input: Input,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ArgumentType {
    Positional,
    Named,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    is_required: bool,
    #[serde(default)]
    is_secret: bool,
    format: Option<String>,
    value: Option<String>,
    default: Option<String>,
    #[serde(default)]
    variables: BTreeMap<String, Input>,
}

fn wrong(why: impl std::fmt::Display) -> Error {
    Error::package(format!("server.json: {why}"))
}

impl ServerJson {
    /// Reads `server.json`.
    pub fn read(text: &str) -> Result<ServerJson> {
        if text.len() as u64 > MAX_MANIFEST {
            return Err(wrong("is larger than 1 MiB"));
        }
        let raw: Raw = serde_json::from_str(text).map_err(wrong)?;
        let mut warnings: Vec<String> = unknown(&raw.other, &KNOWN).collect();
        let mut refused = Vec::new();
        for package in raw.packages {
            let stdio =
                package.transport.as_ref().is_none_or(|transport| transport.r#type == "stdio");
            let origin = match origin(&package) {
                Ok(_) if !stdio => Err(wrong(format_args!(
                    "{} speaks over HTTP, not over stdio",
                    package.identifier
                ))),
                origin => origin,
            };
            match origin {
                Err(why) => refused.push(why),
                Ok(origin) => {
                    let mut server = ServerJson {
                        name: raw.name,
                        version: raw.version,
                        description: raw.description,
                        origin,
                        args: Vec::new(),
                        env: BTreeMap::new(),
                        settings: BTreeMap::new(),
                        warnings: Vec::new(),
                    };
                    warnings.extend(unknown(&package.other, &KNOWN_OF_PACKAGE));
                    server.arguments(&package, &mut warnings)?;
                    server.variables(&package)?;
                    server.warnings = warnings;
                    return Ok(server);
                }
            }
        }
        // The first says most; the rest are alternatives to it.
        match refused.into_iter().next() {
            Some(why) => Err(why),
            None if !raw.remotes.is_empty() => {
                Err(wrong(format_args!("{} is a remote server", raw.name))
                    .hinted("there is nothing to run here; give its address to the client"))
            }
            None => Err(wrong(format_args!("{} names no package", raw.name))),
        }
    }

    /// Adds what is said here to what the package's own manifest says.
    pub fn onto(&self, manifest: &mut Manifest) {
        manifest.server.args.extend(self.args.iter().cloned());
        manifest.server.env.extend(self.env.clone());
        manifest.settings.extend(self.settings.clone());
        manifest.warnings.extend(self.warnings.iter().cloned());
    }

    fn arguments(&mut self, package: &RawPackage, warnings: &mut Vec<String>) -> Result<()> {
        for argument in &package.runtime_arguments {
            // Those of npx and uvx, which are not used here.
            let word = argument.input.value.as_deref().unwrap_or(&argument.input.name);
            if !["-y", "--yes"].contains(&word) {
                warnings.push(format!(
                    "server.json: runtime argument {word:?} is ignored: no npx or uvx is used"
                ));
            }
        }
        for (number, argument) in (1..).zip(&package.package_arguments) {
            let Argument { r#type, value_hint, is_repeated, input } = argument;
            let name = match (r#type, value_hint) {
                (ArgumentType::Named, _) => input.name.trim_start_matches('-').to_owned(),
                (ArgumentType::Positional, Some(hint)) => hint.clone(),
                (ArgumentType::Positional, None) => format!("argument{number}"),
            };
            let value = self.input(&name, input, *is_repeated)?;
            match r#type {
                ArgumentType::Named if value.is_none() && !input.is_required => {
                    self.args.push(input.name.clone())
                }
                ArgumentType::Named => self.args.push(input.name.clone()),
                ArgumentType::Positional => {}
            }
            self.args.extend(value);
        }
        Ok(())
    }

    fn variables(&mut self, package: &RawPackage) -> Result<()> {
        for input in &package.environment_variables {
            if let Some(value) = self.input(&input.name, input, false)? {
                self.env.insert(input.name.clone(), value);
            }
        }
        Ok(())
    }

    /// The text of an input; what its user decides becomes a setting and a variable for it.
    fn input(&mut self, name: &str, input: &Input, is_repeated: bool) -> Result<Option<String>> {
        if let Some(value) = &input.value {
            let mut text = value.clone();
            for (variable, of) in &input.variables {
                self.setting(variable, of, false)?;
                text = text
                    .replace(&format!("{{{variable}}}"), &format!("${{user_config.{variable}}}"));
            }
            return Ok(Some(text));
        }
        let is_flag = input.name.starts_with('-') && !input.is_required && input.default.is_none();
        if is_flag && input.format.is_none() {
            return Ok(None);
        }
        self.setting(name, input, is_repeated)?;
        Ok(Some(format!("${{user_config.{name}}}")))
    }

    fn setting(&mut self, name: &str, input: &Input, is_multiple: bool) -> Result<()> {
        let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || !name.chars().all(good) {
            return Err(wrong(format_args!("{name:?} is no name for a setting")));
        }
        let kind = match input.format.as_deref() {
            None | Some("string") => SettingKind::String,
            Some("number") => SettingKind::Number,
            Some("boolean") => SettingKind::Boolean,
            Some("filepath") => SettingKind::File,
            Some(other) => {
                return Err(wrong(format_args!("format {other:?} of {name} is not known")));
            }
        };
        let default = input.default.clone().filter(|text| !text.is_empty() && !input.is_secret);
        let setting = Setting {
            kind,
            title: String::new(),
            description: input.description.clone(),
            is_required: input.is_required,
            is_multiple,
            is_sensitive: input.is_secret,
            min: None,
            max: None,
            default: default.into_iter().collect(),
            access: Access::Write,
        };
        self.settings.insert(name.to_owned(), setting);
        Ok(())
    }
}

fn unknown<'a>(
    other: &'a BTreeMap<String, Value>,
    known: &'a [&str],
) -> impl Iterator<Item = String> + 'a {
    let keys = other.keys().filter(|key| !known.contains(&key.as_str()));
    keys.map(|key| {
        format!("server.json: unknown key \"{}\" is ignored", mcp_policy::text::word(key))
    })
}

fn origin(package: &RawPackage) -> Result<Origin> {
    let RawPackage { identifier, version, .. } = package;
    let exact = || match version {
        Some(version) => Ok(version),
        None => Err(wrong(format_args!("{identifier} has no version"))),
    };
    match package.registry_type.as_str() {
        "npm" => match format!("npm:{identifier}@{}", exact()?).parse()? {
            Reference::Npm(package) if is_exact(&package) => Ok(Origin::Npm(package)),
            _ => Err(wrong(format_args!("{identifier} has no exact version"))),
        },
        "pypi" => match format!("pypi:{identifier}=={}", exact()?).parse()? {
            Reference::Pypi(package) if is_exact(&package) => Ok(Origin::Pypi(package)),
            _ => Err(wrong(format_args!("{identifier} has no exact version"))),
        },
        "mcpb" => {
            let sha256 = package.file_sha256.as_deref().ok_or_else(|| {
                wrong(format_args!(
                    "{identifier} has no fileSha256, so nothing says what it should be"
                ))
            })?;
            if !identifier.starts_with("https://") {
                return Err(wrong(format_args!("{identifier} is not an https address")));
            }
            Ok(Origin::Mcpb { url: identifier.clone(), sha256: Digest::from_hex(sha256)? })
        }
        "oci" => {
            Err(wrong(format_args!("{identifier} is a container image, which mcp does not run"))
                .hinted(format!("run it with podman or docker: podman run -i --rm {identifier}")))
        }
        "nuget" => {
            Err(wrong(format_args!("{identifier} is a .NET tool, which mcp does not install"))
                .hinted(format!(
                    "install it with dotnet tool install {identifier}, then mcp run -- COMMAND"
                )))
        }
        other => {
            Err(wrong(format_args!("{identifier} is of a registry mcp does not know: {other:?}"))
                .hinted("known: npm, pypi, mcpb"))
        }
    }
}

/// A version, and not a word that means another one tomorrow.
fn is_exact(package: &Package) -> bool {
    package
        .version
        .as_ref()
        .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}
