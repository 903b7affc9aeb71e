//! macOS: a Seatbelt profile for `/usr/bin/sandbox-exec`, limits set by a helper inside it, a
//! watch over the process tree. `deny`, `facts`, `network`, `pattern`, `plan`, `profile`, `step` and
//! `unseen` are pure and compile everywhere; the rest talks to the system.

pub(crate) mod deny;
pub(crate) mod facts;
pub(crate) mod network;
pub(crate) mod pattern;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod step;
pub(crate) mod unseen;

pub use facts::MacFacts;
pub use network::Trust;
pub use plan::{plan, profile_with};
pub use profile::{Parameter, Profile, is_visible};
pub use step::{Act, Stage, Step};
pub use unseen::explain;
