//! The policy of an MCP server, as manifests for the engines that run services: Kubernetes, systemd, podman. Pure: text comes
//! in, text goes out, and nothing here looks at the machine.
//!
//! ```text
//! Server (policy, command or package) + Settings (servers.toml)
//!        │ target
//!        ▼
//! Export { files, controls, notes }     controls: Enforce, Partial or Unavailable *there*, with the reason
//! ```
//!
//! A target is a platform of the planner: the same policy, another place. In every target `mcp serve` is the process that the
//! engine starts, with the whole policy beside it, so that rules which the engine has no words for (host names, a read-only
//! grant) still hold; what the engine can say itself is said as well, as a second wall.
//!
//! Stops: names, arguments and values that would become other YAML, another directive or another specifier; a rule that would
//! become wider on the way (every port of one protocol, a name that only an address can stand for); an image that is not
//! pinned by its digest. Leaves open: whether the cluster enforces what it accepts (a NetworkPolicy needs a network plugin).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod controls;
mod egress;
mod error;
mod image;
pub mod kubernetes;
mod names;
mod place;
pub mod podman;
mod server;
mod settings;
mod size;
pub mod systemd;
mod yaml;

pub use error::{Error, Result};
pub use image::Image;
pub use mcp_sandbox::{Control, Intent, Intents};
pub use server::{Export, File, Server, Start};
pub use settings::Settings;
