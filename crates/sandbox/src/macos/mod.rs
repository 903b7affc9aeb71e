//! macOS: a Seatbelt profile for `/usr/bin/sandbox-exec`, limits set by a helper inside it, a
//! watch over the process tree. `denial_log`, `deny`, `explain_offline`, `facts`, `network`, `pattern`, `plan`, `profile` and
//! `step` are pure and compile everywhere; the rest talks to the system.

#[cfg(any(target_os = "macos", test))]
mod denial_log;
pub(crate) mod deny;
pub(crate) mod explain_offline;
pub(crate) mod facts;
pub(crate) mod network;
pub(crate) mod pattern;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod protect;
pub(crate) mod step;

#[cfg(target_os = "macos")]
mod channel;
#[cfg(target_os = "macos")]
mod guardian;
#[cfg(target_os = "macos")]
pub(crate) mod helper_link;
#[cfg(target_os = "macos")]
mod helper_main;
#[cfg(target_os = "macos")]
pub(crate) mod launch;
#[cfg(target_os = "macos")]
mod log_reader;
#[cfg(target_os = "macos")]
pub(crate) mod on_disk_case;
#[cfg(target_os = "macos")]
pub(crate) mod probe;
#[cfg(target_os = "macos")]
pub(crate) mod proxy_host;
#[cfg(target_os = "macos")]
mod run_directory;
#[cfg(target_os = "macos")]
pub(crate) mod runs;
#[cfg(target_os = "macos")]
pub(crate) mod stdio;
#[cfg(target_os = "macos")]
mod supervise;
#[cfg(target_os = "macos")]
mod sys;
#[cfg(target_os = "macos")]
pub(crate) mod terminal;
#[cfg(target_os = "macos")]
mod tree;
#[cfg(target_os = "macos")]
mod watch;

pub use explain_offline::explain;
pub use facts::MacFacts;
pub use plan::{plan, profile_with};
pub use profile::{Parameter, Profile, is_visible};
pub use step::{Act, Stage, Step};
#[cfg(target_os = "macos")]
pub use sys::own_networks;
