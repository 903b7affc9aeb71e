//! MCP messages on their way between a client and a server, as a state machine without I/O.
//!
//! What is not changed passes byte for byte: a message is described by spans of its own text, and an edit replaces spans.
//! Both eras are known: 2024-11-05 to 2025-11-25 with `initialize`, and 2026-07-28, where every request says its version.
//!
//! Stops: text that is no JSON on a server's output, messages beyond a size, two readings of one message (a key that is
//! there twice), answers that no request waits for. Leaves open: what a message means; tools and their arguments are not looked at.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod edit;
pub mod error;
mod exchange;
mod framer;
mod id;
pub mod json;
mod message;
mod output_filter;
mod oversize;

pub use exchange::{Abandoned, Delivery, Exchange, Ids, Refusal};
pub use framer::{Frame, Framer};
pub use id::Id;
pub use message::{Kind, Malformed, Message};
pub use output_filter::{Destination, OutputFilter};

/// The most bytes of one message, unless a person says otherwise.
pub const MAX_MESSAGE: usize = 16 << 20;

/// The revision in which a request carries its own version and there are no sessions.
pub const STATELESS: &str = "2026-07-28";

/// Revisions with `initialize` and Streamable HTTP, oldest first.
pub const SESSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
