//! macOS: a Seatbelt profile for `/usr/bin/sandbox-exec`, limits set by a helper inside it, a
//! watch over the process tree. `deny`, `facts`, `network`, `pattern`, `plan`, `profile`, `step` and
//! `unseen` are pure and compile everywhere; the rest talks to the system.

pub(crate) mod deny;
pub(crate) mod facts;
pub(crate) mod network;
pub(crate) mod pattern;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod protect;
pub(crate) mod step;
pub(crate) mod unseen;

#[cfg(target_os = "macos")]
mod apply;
#[cfg(target_os = "macos")]
pub(crate) mod carrier;
#[cfg(target_os = "macos")]
mod channel;
#[cfg(target_os = "macos")]
mod guardian;
#[cfg(target_os = "macos")]
pub(crate) mod launch;
#[cfg(target_os = "macos")]
pub(crate) mod line;
#[cfg(target_os = "macos")]
pub(crate) mod probe;
#[cfg(target_os = "macos")]
pub(crate) mod runs;
#[cfg(target_os = "macos")]
mod scratch;
#[cfg(target_os = "macos")]
pub(crate) mod stdio;
#[cfg(target_os = "macos")]
pub(crate) mod stored;
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

pub use facts::MacFacts;
pub use plan::{plan, profile_with};
pub use profile::{Parameter, Profile, is_visible};
pub use step::{Act, Stage, Step};
pub use unseen::explain;
