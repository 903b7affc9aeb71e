//! Windows: a job object around the tree, an AppContainer with a restricted token around its files and
//! network. `access`, `command_line`, `environment`, `facts`, `job`, `journal`, `network`, `plan`, `step` and
//! `unseen` are pure and compile everywhere; the rest talks to the system.

pub(crate) mod access;
pub(crate) mod command_line;
pub(crate) mod environment;
pub(crate) mod facts;
pub(crate) mod job;
pub(crate) mod journal;
pub(crate) mod network;
pub(crate) mod plan;
pub(crate) mod step;
pub(crate) mod unseen;

#[cfg(windows)]
mod apply;
#[cfg(windows)]
pub(crate) mod carrier;
#[cfg(windows)]
mod channel;
#[cfg(windows)]
mod inside;
#[cfg(windows)]
pub(crate) mod launch;
#[cfg(windows)]
pub(crate) mod line;
#[cfg(windows)]
mod locate;
#[cfg(windows)]
mod outlet;
#[cfg(windows)]
pub(crate) mod probe;
#[cfg(windows)]
mod relay;
#[cfg(windows)]
pub(crate) mod resolve;
#[cfg(windows)]
pub(crate) mod runs;
#[cfg(windows)]
mod secrets;
#[cfg(windows)]
mod stdio;
#[cfg(windows)]
mod streams;
#[cfg(windows)]
mod supervise;
#[cfg(windows)]
mod sys;
#[cfg(windows)]
mod trail;
#[cfg(windows)]
mod walls;

pub use access::{Access, Grant};
pub use facts::WindowsFacts;
pub use job::{CpuRate, JobLimits};
pub use plan::{is_visible, plan};
pub use step::{Act, Stage, Step};
pub use unseen::explain;
