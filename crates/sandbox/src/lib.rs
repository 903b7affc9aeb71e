//! Plans, starts, supervises and reports on sandboxed programs.
//!
//! ```text
//! Wish ──resolve──▶ Request ─┐
//!                            ├─plan──▶ Plan ──run──▶ Report
//!                  HostFacts ┘
//! ```
//!
//! [`plan`] is pure; [`platform`] holds what touches the system.

mod control;
mod error;
mod host;
mod linux;
mod plan;
pub mod platform;
mod report;
mod request;
#[cfg(unix)]
mod unix;
mod wish;

pub use control::Control;
pub use error::{Error, SetupFailure};
pub use host::{Caller, CgroupFacts, EntryKind, Fact, HostFacts, SystemEntry};
pub use linux::step::{Stage, Step};
pub use plan::{Intent, Plan, Planned};
pub use report::{Answer, Ending, Evidence, Report, Status, Usage};
pub use request::{HOME, Home, Link, Place, PlaceKind, Request, Secret, Stdio};
pub use wish::Wish;

/// What will be done for a request on a host with these facts.
pub fn plan(request: &Request, facts: &HostFacts) -> Plan {
    linux::plan::plan(request, facts)
}

/// Whether a host path can be reached inside, at the same place.
pub fn is_visible(path: &std::path::Path, request: &Request, facts: &HostFacts) -> bool {
    linux::view::is_visible(path, request, facts)
}
