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
pub use mcp_policy::{Bytes, Cores, Policy, Protect, Rate, SecretRef};
pub use notices::Notices;
pub use plan::{Describe, Intent, Plan, Planned};
#[doc(hidden)]
pub use protected::git_config;
pub use report::{Answer, Ending, Evidence, Judged, MoreUndone, Report, Status, Undone, Usage};
pub use request::{
    Denied, DeniedKind, Guarded, HOME, HeldBack, Home, Link, Place, PlaceKind, Protected, Request,
    Secret, Stdio, Unshown,
};
pub use sandbox::{Fallback, Outcome, Output, Running, Sandbox};
pub use wish::{Identity, Wish};

/// What will be done for a request on a host with these facts.
pub fn plan(request: &Request, facts: &platform::Facts) -> Plan<platform::Step> {
    platform::plan(request, facts)
}

/// What [`plan_again`] found.
pub struct Again {
    pub facts: platform::Facts,
    pub plan: Plan<platform::Step>,
    pub claim: platform::Claim,
}

/// Another plan for a request whose set-up failed, made from what is found by trying. `None` where the
/// failure is not the host's, and the same would only fail again. Nothing has run yet.
pub fn plan_again(
    request: &Request,
    failed: &Plan<platform::Step>,
    error: &Error,
) -> Result<Option<Again>, Error> {
    match error {
        Error::Setup(failure) if !failure.is_shortage() => {}
        _ => return Ok(None),
    }
    let mut facts = platform::probe_host()?;
    let claim = platform::claim(request, &mut facts);
    let plan = plan(request, &facts);
    let differs = !platform::same_walls(&plan, failed);
    Ok(differs.then_some(Again { facts, plan, claim }))
}

/// Whether a host path can be reached inside, at the same place.
pub fn is_visible(path: &std::path::Path, request: &Request, facts: &platform::Facts) -> bool {
    platform::is_visible(path, request, facts)
}
