//! `mcp learn` and what belongs to it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod from_log;
mod hostile;
mod proof;
mod questions;
mod rounds;
mod user;
mod watch;
