//! Runs programs that are not trusted: each sees its own files, its own network and its own processes, within limits,
//! and leaves a report of what the kernel enforced.
//!
//! # Run a program
//!
//! [`Sandbox`] is a builder like [`std::process::Command`]. By default the program has no network, none of the
//! user's files, a clean environment, 512 MiB of memory and 128 processes.
//!
//! ```standalone_crate
//! use mcp_sandbox::Sandbox;
//!
//! fn main() -> Result<(), mcp_sandbox::Error> {
//!     // First in main: the program is its own launcher.
//!     mcp_sandbox::helper::dispatch();
//! #   if !cfg!(target_os = "linux") { return Ok(()); }
//!     let output = Sandbox::new("echo").arg("hello").output()?;
//!     assert_eq!(output.stdout, b"hello\n");
//!     Ok(())
//! }
//! ```
//!
//! # Run a command that an agent wrote
//!
//! [`prepare_run_command`] is `mcp exec`: the guard judges the command, and its project is all that it may write. See
//! [`agent`] for the gate of file tools as well.
//!
//! ```standalone_crate
//! use mcp_sandbox::agent::{Shell, project_policy};
//! use mcp_sandbox::prepare_run_command;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     mcp_sandbox::helper::dispatch();
//! #   if !cfg!(target_os = "linux") { return Ok(()); }
//!     let project = std::env::temp_dir().join(format!("agent-{}", std::process::id()));
//!     std::fs::create_dir(&project)?;
//!     let policy = project_policy(&project)?;
//!     match prepare_run_command("echo done > made", Shell::Bash, policy).sandbox() {
//!         Ok(mut sandbox) => assert!(sandbox.current_dir(&project).status()?.success()),
//!         Err(verdict) => println!("refused: {:?}", verdict.reason()),
//!     }
//!     assert_eq!(std::fs::read_to_string(project.join("made"))?, "done\n");
//! #   std::fs::remove_dir_all(&project)?;
//!     Ok(())
//! }
//! ```
//!
//! # Read the report
//!
//! Every run that came to an end has a [`Report`]: for each [`Control`] a [`Status`] with what the kernel answered,
//! the [`Ending`], the [`Usage`], refused connections, and what became of protected files. It is never filled from what was
//! only planned, and it is the JSON that `mcp run --report` writes.
//!
//! ```standalone_crate
//! use mcp_sandbox::{Control, Sandbox, Status};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     mcp_sandbox::helper::dispatch();
//! #   if !cfg!(target_os = "linux") { return Ok(()); }
//!     let outcome = Sandbox::new("true").status()?;
//!     let report = outcome.report.ok_or("the launcher was killed")?;
//!     assert!(report.controls[&Control::Network].is_enforced());
//!     for (control, status) in &report.controls {
//!         if let Status::Partial { missing, .. } = status {
//!             println!("{control}: {missing}");
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # What else there is
//!
//! [`runs`] lists, measures and kills sandboxes that other programs started. [`exit_code`] has the exit codes of `mcp`.
//!
//! [`session`] is what all of this and `mcp` itself go through, for a program that is a launcher of its own: a
//! [`request::RunSpec`] becomes a [`request::Request`], that a [`plan::Plan`], and that a [`Report`]. [`watched`] is what
//! learning mode saw. Items that these pages do not show are for `mcp` alone, and change without notice.

#![cfg_attr(not(feature = "fuzzing"), deny(missing_docs))]

pub mod agent;
mod core;
pub mod helper;
mod host_files;
mod identity;
// Its planner is pure, and its tests run on every system.
#[doc(hidden)]
#[cfg(any(target_os = "linux", test))]
mod linux;
#[doc(hidden)]
pub mod macos;
mod order;
#[doc(hidden)]
pub mod platform;
#[doc(hidden)]
mod protected;
pub mod runs;
mod sandbox;
pub mod session;
#[cfg(unix)]
mod unix;
#[doc(hidden)]
pub mod windows;

pub use crate::core::control::Control;
pub use crate::core::error::{Error, SetupFailure};
pub use crate::core::exit_code;
#[doc(hidden)]
pub use crate::core::file_id::FileId;
#[doc(hidden)]
pub use crate::core::host::{Caller, Fact, Ids, Rootless};
pub use crate::core::notices::Notices;
#[doc(hidden)]
pub use crate::core::plan::{Describe, Intent, Intents, Plan, Planned};
pub use crate::core::report::{
    Answer, Ending, Evidence, Judged, MoreUndone, Report, Status, Undone, Usage,
};
#[doc(hidden)]
pub use crate::core::request::{
    Denied, DeniedKind, Guarded, HOME, HeldBack, Home, LayerWriting, Link, Place, PlaceKind,
    Protected, Request, Script, Secret, Stdio, Unshown, WritableLayer,
};
#[doc(hidden)]
pub use crate::core::run_spec::{Identity, RunSpec};
#[doc(hidden)]
pub use crate::core::watched::{MissingPath, UsedGrant, Watched, WatchedAct, Watching};
pub use agent::prepare_run_command;
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use linux::facts::{CgroupFacts, CgroupMeans, EntryKind, HeldCgroup, LinuxFacts, SystemEntry};
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use linux::step::{Stage, Step};
pub use mcp_net::broker::{NetworkUse, RefusedDestination, Traffic};
pub use mcp_policy::{Bytes, Cores, Fallback, Policy, Protect, Rate, SecretRef};
/// git's grammar of configuration files, public for the fuzz target alone.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::protected::git_config;
}
pub use sandbox::{Outcome, Output, Running, Sandbox};

/// What a run is: as its caller asks for it ([`RunSpec`]), and with paths, program and secrets found on this host
/// ([`Request`]).
pub mod request {
    pub use crate::core::file_id::FileId;
    pub use crate::core::host::{Caller, Fact, Ids, Rootless};
    pub use crate::core::request::{
        Denied, DeniedKind, Guarded, HOME, HeldBack, Home, LayerWriting, Link, Place, PlaceKind,
        Protected, Request, Script, Secret, Stdio, Unshown, WritableLayer,
    };
    pub use crate::core::run_spec::{Identity, RunSpec};
}

/// What will be done for a request on this host, step by step, and what is promised for each control.
pub mod plan {
    pub use crate::core::plan::{Describe, Intent, Intents, Plan, Planned};
}

/// Which paths a command looked for and which grants it used, as far as learning mode saw it.
pub mod watched {
    pub use crate::core::watched::{MissingPath, UsedGrant, Watched, WatchedAct, Watching};
}
