//! `mcp wire`, `mcp unwire`, `mcp add`: the built program on files of throw-away homes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(unix)]

mod add;
mod corpus;
mod crash;
mod files;
mod place;
mod samples;
mod traps;
