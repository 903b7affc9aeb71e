//! The front door: what people type, what they are told, and that it is true.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod exec_json;
mod hints;
mod mistakes;
mod person;
mod session;
mod wire;
