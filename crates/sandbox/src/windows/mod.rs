//! Windows: a job object around the tree, an AppContainer with a restricted token around its files and
//! network. `access`, `command_line`, `environment`, `facts`, `job`, `journal`, `plan`, `step` and `unseen` are
//! pure and compile everywhere; the rest talks to the system.

pub(crate) mod access;
pub(crate) mod command_line;
pub(crate) mod environment;
pub(crate) mod facts;
pub(crate) mod job;
pub(crate) mod journal;
pub(crate) mod plan;
pub(crate) mod step;
pub(crate) mod unseen;

pub use access::{Access, Grant};
pub use facts::WindowsFacts;
pub use job::{CpuRate, JobLimits};
pub use plan::plan;
pub use step::{Act, Stage, Step};
pub use unseen::explain;
