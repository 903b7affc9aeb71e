//! Attacks on the sandbox of Windows, and its life from start to end; the names are those of the other systems'.
//!
//! What this machine enforces is found out by `mcp doctor`, never by its name: a test of something that does not
//! hold here prints `NOT VERIFIED: what: why` and proves nothing. `MCP_REQUIRE=container,limits,cpu_rate,ui,token`
//! turns that into a failure, as on a real Windows.
#![cfg(windows)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod container;
mod demo;
mod deny;
mod exec;
mod handles;
mod journal;
mod limits;
mod listen;
mod network;
mod packages;
mod portable;
mod runs;
mod time_and_death;
mod truth;
