//! Policies: the files, network, variables and limits of a run, parsed, merged and validated. Data only.
//!
//! Nothing in this crate touches the machine: callers read the files and pass the text in,
//! and paths come out absolute but neither canonical nor checked to exist.
//!
//! ```
//! use mcp_policy::{Bytes, Defaults, Layer, LayerKind, LayerSource, Policy};
//!
//! let source = LayerSource {
//!     kind: LayerKind::PolicyFile,
//!     path: "policy.toml".into(),
//!     base: "/srv/app".into(),
//!     home: None,
//! };
//! let file = Layer::from_toml("[limits]\nmemory = '64M'", source)?;
//! let policy = Policy::merge(&[file], Defaults::run())?;
//! assert_eq!(policy.limits.memory.value, Some(Bytes::mib(64)));
//! assert_eq!(policy.limits.memory.origin.to_string(), "policy.toml:2");
//! # Ok::<(), mcp_policy::Error>(())
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod bytes;
mod cores;
mod decimal;
mod defaults;
mod duration;
mod env;
mod error;
mod excerpt;
pub mod glob;
mod host;
mod layer;
mod layer_builder;
mod limit_rules;
mod merge;
mod net_rule;
mod origin;
mod parse;
mod paths;
mod policy;
pub mod protect;
mod rate;
mod secret;
mod show;
mod suggest;
pub mod text;
mod toml_source;
pub mod toml_text;
mod tools;
mod unmet;
mod value_error;
pub mod wildcard;
pub mod windows_path;

pub use bytes::Bytes;
pub use cores::Cores;
pub use defaults::{CERTIFICATE_VARIABLES, Defaults};
pub use duration::Duration;
pub use env::{EnvName, EnvPattern};
pub use error::Error;
pub use host::{Host, HostName, Wildcard};
pub use layer::{Layer, LayerKind, LayerLimits, LayerSource, MAX_POLICY_FILE};
pub use layer_builder::LayerBuilder;
pub use net_rule::{NetRule, Ports, Protocol, Tls};
pub use origin::Origin;
pub use parse::TABLES;
pub use policy::{
    Env, Filesystem, Limits, Network, NetworkMode, Policy, Process, Sourced, Subprocess, Trust,
};
pub use protect::Protect;
pub use rate::Rate;
pub use secret::SecretRef;
pub use suggest::nearest;
pub use tools::{Fallback, GuardMode, Tools};
pub use unmet::asked_but_not_granted;
pub use value_error::ValueError;
pub use windows_path::WindowsPath;
