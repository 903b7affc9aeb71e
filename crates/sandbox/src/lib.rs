//! Plans, starts, supervises and reports on sandboxed programs.
//!
//! ```text
//! RunSpec ──resolve──▶ Request ─┐
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

pub mod agent;
mod core;
pub mod helper;
mod host_files;
mod identity;
// Its planner is pure, and its tests run on every system.
#[cfg(any(target_os = "linux", test))]
mod linux;
pub mod macos;
mod order;
pub mod platform;
mod protected;
pub mod runs;
mod sandbox;
pub mod session;
#[cfg(unix)]
mod unix;
pub mod windows;

pub use crate::core::control::Control;
pub use crate::core::error::{Error, SetupFailure};
pub use crate::core::exit_code;
pub use crate::core::file_id::FileId;
pub use crate::core::host::{Caller, Fact, Ids, Rootless};
pub use crate::core::notices::Notices;
pub use crate::core::plan::{Describe, Intent, Plan, Planned};
pub use crate::core::report::{
    Answer, Ending, Evidence, Judged, MoreUndone, Report, Status, Undone, Usage,
};
pub use crate::core::request::{
    Denied, DeniedKind, Guarded, HOME, HeldBack, Home, Link, Place, PlaceKind, Protected, Request,
    Secret, Stdio, Unshown,
};
pub use crate::core::run_spec::{Identity, RunSpec};
pub use agent::prepare_run_command;
#[cfg(target_os = "linux")]
pub use linux::facts::{CgroupFacts, CgroupMeans, EntryKind, HeldCgroup, LinuxFacts, SystemEntry};
#[cfg(target_os = "linux")]
pub use linux::step::{Stage, Step};
pub use mcp_net::broker::{NetworkUse, RefusedDestination, Traffic};
pub use mcp_policy::{Bytes, Cores, Fallback, Policy, Protect, Rate, SecretRef};
#[doc(hidden)]
pub use protected::git_config;
pub use sandbox::{Outcome, Output, Running, Sandbox};
