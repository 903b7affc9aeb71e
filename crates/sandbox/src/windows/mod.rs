//! Windows: a job object around the tree, an AppContainer with a restricted token around its files and
//! network. `access`, `acl_apply`, `command_line`, `dacl`, `environment`, `exclusion`, `exclusion_plan`, `explain_offline`,
//! `facts`, `job`, `journal`, `lasting`, `network`, `plan` and `step` are pure; `deny` and `protect` look at files by the standard library alone. They
//! compile everywhere; the rest talks to the system.

pub(crate) mod access;
#[cfg(any(windows, test))]
pub(crate) mod acl_apply;
#[cfg(any(windows, test))]
pub(crate) mod command_line;
#[cfg(test)]
mod container_world;
#[cfg(any(windows, test))]
pub(crate) mod dacl;
#[cfg(any(windows, test))]
pub(crate) mod deny;
#[cfg(any(windows, test))]
pub(crate) mod effective_access;
pub(crate) mod environment;
pub(crate) mod exclusion;
pub(crate) mod exclusion_plan;
pub(crate) mod explain_offline;
pub(crate) mod facts;
pub(crate) mod job;
#[cfg(any(windows, test))]
pub(crate) mod journal;
pub(crate) mod lasting;
pub(crate) mod network;
pub(crate) mod plan;
#[cfg(any(windows, test))]
pub(crate) mod program_files;
#[cfg(any(windows, test))]
pub(crate) mod protect;
pub(crate) mod step;
pub(crate) mod win32;

#[cfg(windows)]
mod channel;
#[cfg(windows)]
mod confinement;
#[cfg(windows)]
mod denials;
#[cfg(windows)]
mod disk;
#[cfg(windows)]
mod failure;
#[cfg(windows)]
pub(crate) mod helper_link;
#[cfg(windows)]
mod helper_main;
#[cfg(windows)]
pub(crate) mod lasting_log;
#[cfg(windows)]
pub(crate) mod launch;
#[cfg(windows)]
mod listen_relay;
#[cfg(windows)]
mod locate;
#[cfg(windows)]
mod own_program;
#[cfg(windows)]
pub(crate) mod probe;
#[cfg(windows)]
pub(crate) mod proxy_host;
#[cfg(windows)]
mod relay_main;
#[cfg(windows)]
mod relay_process;
#[cfg(windows)]
pub(crate) mod resolve;
#[cfg(windows)]
pub(crate) mod runs;
#[cfg(windows)]
mod secrets;
#[cfg(windows)]
mod self_test;
#[cfg(windows)]
mod stdio;
#[cfg(windows)]
mod stdio_copy;
#[cfg(windows)]
mod stdio_pipes;
#[cfg(windows)]
mod supervise;
#[cfg(windows)]
mod sys;
#[cfg(windows)]
mod terminal;
#[cfg(windows)]
mod tree_kill;
#[cfg(windows)]
pub(crate) mod ui_limit;
#[cfg(windows)]
mod undo_log;

pub use access::{Access, Grant};
pub use exclusion::{Exclusion, ExclusionKind};
pub use explain_offline::explain;
pub use facts::WindowsFacts;
pub use job::{CpuRate, JobLimits};
pub use plan::{is_visible, plan};
pub use step::{Act, Stage, Step};
#[cfg(windows)]
pub use sys::adapters::own_networks;
