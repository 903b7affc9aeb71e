//! Plans, starts, supervises and reports on sandboxed programs.
//!
//! ```text
//! Wish ──resolve──▶ Request ─┐
//!                            ├─plan──▶ Plan ──run──▶ Report
//!                  HostFacts ┘
//! ```
//!
//! [`plan`] is pure; [`platform`] holds what touches the system. Programs that just want to run
//! a command use [`Sandbox`], which is all of this behind a builder:
//!
//! ```standalone_crate
//! use mcp_sandbox::Sandbox;
//!
//! fn main() -> Result<(), mcp_sandbox::Error> {
//!     mcp_sandbox::helper::dispatch();
//! #   if !cfg!(target_os = "linux") { return Ok(()); }
//!     let output = Sandbox::new("echo").arg("hello").output()?;
//!     assert_eq!(output.stdout, b"hello\n");
//!     Ok(())
//! }
//! ```

// Much that is portable has its only user in the launcher of Linux.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

pub mod agent;
mod control;
mod error;
pub mod exit_code;
mod file_id;
mod file_names;
mod glob_set;
pub mod helper;
mod host;
mod identity;
mod linux;
pub mod macos;
mod notices;
mod plan;
pub mod platform;
mod protected;
mod report;
mod request;
pub mod runs;
mod sandbox;
pub mod session;
mod termination;
#[cfg(unix)]
mod unix;
mod variables;
// What its launcher alone uses is compiled and tested here all the same.
#[cfg_attr(not(windows), allow(dead_code))]
pub mod windows;
mod wish;

pub use agent::prepare_run_command;
pub use control::Control;
pub use error::{Error, SetupFailure};
pub use file_id::FileId;
pub use host::{
    Caller, CgroupFacts, CgroupMeans, EntryKind, Fact, HeldCgroup, HostFacts, Ids, Rootless,
    SystemEntry,
};
pub use linux::step::{Stage, Step};
pub use mcp_net::broker::{NetworkUse, Refusal, Traffic};
pub use mcp_policy::{Bytes, Cores, Fallback, Policy, Protect, Rate, SecretRef};
pub use notices::Notices;
pub use plan::{Describe, Intent, Plan, Planned};
#[doc(hidden)]
pub use protected::git_config;
pub use report::{Answer, Ending, Evidence, Judged, MoreUndone, Report, Status, Undone, Usage};
pub use request::{
    Denied, DeniedKind, Guarded, HOME, HeldBack, Home, Link, Place, PlaceKind, Protected, Request,
    Secret, Stdio, Unshown,
};
pub use sandbox::{Outcome, Output, Running, Sandbox};
pub use wish::{Identity, Wish};
