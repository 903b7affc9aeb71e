//! What a package says about itself, whatever format it says it in.
//!
//! A manifest is a stranger's word: it is bounded, parsed strictly, and only ever asks
//! ([`Launch::asks`]); nothing in it is granted here.

mod launch;
mod mcpb;
mod ours;
mod platform;
mod runtime;
mod server_json;
mod settings;
mod substitute;

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcp_policy::Layer;

use crate::error::{Error, Result};

pub use launch::{Launch, LaunchContext};
pub use ours::schema;
pub use platform::Platform;
pub use runtime::suits;
pub use server_json::{Origin, ServerJson};
pub use settings::{Access, Given, Setting, SettingKind};
pub use substitute::Places;

/// The largest manifest that is read.
pub const MAX_MANIFEST: u64 = 1 << 20;
/// The names of the two files in a package.
pub const MCPB: &str = "manifest.json";
/// The name of our own manifest.
pub const OURS: &str = "mcp.toml";

/// The manifest files of a package, as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The content of `manifest.json`.
    pub mcpb: Option<String>,
    /// The content of `mcp.toml`.
    pub ours: Option<String>,
}

/// What a package says of itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its description, for people.
    pub description: String,
    /// How its server is started.
    pub server: Server,
    /// The settings that the user can give, by name.
    pub settings: BTreeMap<String, Setting>,
    /// What `mcp.toml` asks for.
    pub asks: Option<Layer>,
    /// Programs and the versions of them that are needed, such as `node` `>=16`.
    pub runtimes: BTreeMap<String, String>,
    /// What was not understood and does no harm.
    pub warnings: Vec<String>,
}

/// How the server is started, variables not yet replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Server {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables.
    pub env: BTreeMap<String, String>,
    /// How clients talk to it.
    pub transport: Transport,
}

/// How clients talk to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Over stdin and stdout.
    Stdio,
    /// Over HTTP.
    Http,
}

impl Manifest {
    /// Reads the manifests of a package that lies in `directory`.
    pub fn read(
        files: &Files,
        platform: &Platform,
        directory: PathBuf,
        home: Option<PathBuf>,
    ) -> Result<Manifest> {
        let ours = match &files.ours {
            Some(text) => Some(ours::read(text, platform, directory, home)?),
            None => None,
        };
        let mcpb = match &files.mcpb {
            Some(text) => Some(mcpb::read(text, platform)?),
            None => None,
        };
        match (mcpb, ours) {
            (None, None) => Err(Error::package(format!("there is neither a {MCPB} nor an {OURS}"))
                .hinted("a package has one of them at its top")),
            (Some(mcpb), None) => Ok(mcpb),
            (None, Some(ours)) => ours.alone(),
            (Some(mcpb), Some(ours)) => ours.over(mcpb),
        }
    }
}

#[cfg(test)]
mod tests;
