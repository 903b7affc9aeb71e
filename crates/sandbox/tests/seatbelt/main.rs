//! What the generated Seatbelt profiles allow and refuse, by an evaluator of the language they are
//! written in: "read ~/.ssh/id_rsa" is a question with an answer here, on every system.
// Elsewhere a path that starts with a slash is not absolute.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod evaluator;
mod support;

mod base;
mod deny;
mod escaping;
mod first_contact;
mod network;
mod plan;
mod precedence;
mod processes;
mod properties;
mod protected;
mod replay;
mod seed_test_plan;
mod threats;
