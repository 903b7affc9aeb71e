//! From what a confined program asked for to the policy that it needs. Pure: nothing here looks at the machine.
//!
//! ```text
//! Observations ──propose──▶ Proposals ──accepted──▶ Draft ──▶ TOML that --policy takes
//!                               ╰── what is never proposed, by name
//! ```
//!
//! Stops: a proposal that would open a place of credentials, the whole home directory, `/`, another user's home, `/proc`, or a
//! private network, unless a person asked for such proposals. Leaves open: what a program does with what it is granted.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arguments;
mod diff;
mod draft;
mod grant;
mod headroom;
mod insert;
mod observation;
mod propose;
mod sensitive;

pub use arguments::{Explored, arguments};
pub use diff::{Change, Effect, diff};
pub use draft::Draft;
pub use grant::Grant;
pub use headroom::{bytes_with_headroom, count_with_headroom};
pub use insert::{Unmergeable, insert};
pub use observation::{
    Access, Concern, Evidence, FileKind, HostSeen, Observations, PathSeen, Peaks, VariableSeen,
};
pub use propose::{Proposal, Proposals, Scene, Sensitive, Withheld, propose};
pub use sensitive::{is_secret_name, path_reason, secret_places};
