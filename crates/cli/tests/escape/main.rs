//! Attacks on the sandbox, one file per kind. Each refusal is paired with its control: the same
//! act, allowed, succeeds.
//!
//! `MCP_BIN` and `MCP_PROBE_BIN` choose other binaries; `MCP_REQUIRE=userns,cgroup` turns skips into
//! failures. `MCP_TEST_WATCH=1` runs every test in learning mode, which must change no outcome.
//!
//! On a Mac the same attacks have the same names. Those that are identical are in `shared/`; where the attack or the
//! promise differs, it is in `macos/`. Attacks on what only Linux has are not tried there.
#![cfg(any(target_os = "linux", target_os = "macos"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
mod allowlist;
#[cfg(target_os = "linux")]
mod allowlist_tls;
#[cfg(target_os = "linux")]
mod bad_input;
#[cfg(target_os = "linux")]
mod bad_surroundings;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg_attr(target_os = "macos", path = "macos/deny.rs")]
mod deny;
#[cfg(target_os = "linux")]
mod deny_places;
#[cfg(target_os = "linux")]
mod deny_ways;
#[cfg(target_os = "linux")]
mod doctor_full;
#[cfg_attr(target_os = "macos", path = "macos/environment.rs")]
mod environment;
#[cfg(target_os = "linux")]
mod fds;
#[cfg_attr(target_os = "macos", path = "macos/filesystem.rs")]
mod filesystem;
#[cfg(target_os = "linux")]
mod folded_names;
#[cfg(target_os = "linux")]
mod grants;
#[cfg(target_os = "linux")]
mod host_names;
#[cfg(target_os = "linux")]
mod kill_launcher_200;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod layers;
#[cfg_attr(target_os = "macos", path = "macos/limits.rs")]
mod limits;
#[cfg_attr(target_os = "macos", path = "macos/network.rs")]
mod network;
#[cfg(target_os = "linux")]
mod network_bounds;
#[cfg(target_os = "linux")]
mod network_ways;
#[cfg_attr(target_os = "macos", path = "macos/no_subprocess.rs")]
mod no_subprocess;
#[cfg(target_os = "linux")]
mod own_place;
#[cfg(target_os = "linux")]
mod plain;
#[cfg(target_os = "linux")]
mod planted;
#[cfg_attr(target_os = "macos", path = "macos/privileges.rs")]
mod privileges;
#[cfg_attr(target_os = "macos", path = "macos/processes.rs")]
mod processes;
#[cfg(target_os = "linux")]
mod protected;
#[cfg(target_os = "linux")]
mod protected_deep;
#[cfg(target_os = "linux")]
mod protected_end;
#[cfg(target_os = "linux")]
mod protected_git;
#[cfg(target_os = "linux")]
mod protected_links;
#[cfg(target_os = "linux")]
mod protected_meanwhile;
#[cfg(target_os = "linux")]
mod public;
#[cfg(target_os = "linux")]
mod races;
#[cfg(target_os = "linux")]
mod rebinding;
#[cfg_attr(target_os = "macos", path = "macos/report.rs")]
mod report;
#[cfg(target_os = "linux")]
mod rootless;
#[cfg_attr(target_os = "macos", path = "macos/runs.rs")]
mod runs;
mod shared;
#[cfg(target_os = "linux")]
mod shut_directories;
#[cfg(target_os = "linux")]
mod sudo;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg_attr(target_os = "macos", path = "macos/time_and_death.rs")]
mod time_and_death;
#[cfg(target_os = "linux")]
mod words;
