//! Attacks on the sandbox, one file per kind. Each refusal is paired with its control: the same
//! act, allowed, succeeds.
//!
//! `MCP_BIN` and `MCP_PROBE_BIN` choose other binaries; `MCP_REQUIRE=userns,cgroup` turns skips into
//! failures.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod allowlist;
mod bad_input;
mod bad_surroundings;
mod cgroup;
mod deny;
mod environment;
mod fds;
mod filesystem;
mod grants;
mod kill_launcher_200;
mod landlock;
mod layers;
mod limits;
mod network;
mod network_bounds;
mod network_ways;
mod no_subprocess;
mod own_place;
mod plain;
mod planted;
mod privileges;
mod processes;
mod races;
mod rebinding;
mod report;
mod runs;
mod sudo;
mod syscalls;
mod terminal;
mod time_and_death;
