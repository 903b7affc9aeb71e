//! Windows: a job object around the tree, an AppContainer with a restricted token around its files and
//! network. `access`, `access_list`, `command_line`, `environment`, `facts`, `job`, `journal`, `keep`, `kept`, `network`,
//! `plan`, `spread`, `step` and `unseen` are pure; `deny` and `protect` look at files by the standard library alone. They
//! compile everywhere; the rest talks to the system.

pub(crate) mod access;
pub(crate) mod access_list;
pub(crate) mod command_line;
pub(crate) mod deny;
pub(crate) mod environment;
pub(crate) mod facts;
pub(crate) mod job;
pub(crate) mod journal;
pub(crate) mod keep;
pub(crate) mod kept;
pub(crate) mod network;
pub(crate) mod plan;
pub(crate) mod protect;
pub(crate) mod spread;
pub(crate) mod step;
pub(crate) mod unseen;

#[cfg(windows)]
mod apply;
#[cfg(windows)]
pub(crate) mod carrier;
#[cfg(windows)]
mod channel;
#[cfg(windows)]
mod denials;
#[cfg(windows)]
mod disk;
#[cfg(windows)]
mod entrance;
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
mod own_program;
#[cfg(windows)]
pub(crate) mod probe;
#[cfg(windows)]
mod relay;
#[cfg(windows)]
mod relay_process;
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
mod terminal;
#[cfg(windows)]
mod trail;
#[cfg(windows)]
mod walls;

pub use access::{Access, Grant};
pub use facts::WindowsFacts;
pub use job::{CpuRate, JobLimits};
pub use keep::{Keep, Kept};
pub use plan::{is_visible, plan};
pub use step::{Act, Stage, Step};
pub use unseen::explain;
