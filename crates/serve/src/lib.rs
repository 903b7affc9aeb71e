//! `mcp serve`: Streamable HTTP in front of MCP servers that speak over pipes, each in a sandbox of its own.
//!
//! A sandbox is a child process `mcp run …`, so that its walls are those of any run. No two clients share one: in the revisions
//! with sessions (2025-03-26 to 2025-11-25) each session has its own, in 2026-07-28 each principal and server.
//!
//! Stops: answers that reach another session or principal, requests of strangers and of web pages (Host, Origin, tokens),
//! more sandboxes, connections, bytes or time than configured. Leaves open: what a server does within its policy, and
//! what it tells the principal it belongs to.
#![forbid(unsafe_code)]

mod access_log;
mod addresses;
mod auth;
mod config;
mod connection;
mod error;
mod events;
mod flag;
mod gateway;
mod http;
mod listener;
mod memory;
mod metrics;
mod oauth;
mod pipes;
mod principal;
mod rewound;
mod sandbox;
mod sandboxes;
mod session;
mod slots;
mod socket;
mod trace;
mod traffic;
mod usage;
mod write_time;

pub use auth::token_line;
pub use config::{Config, Server};
pub use error::Error;
pub use listener::serve;
