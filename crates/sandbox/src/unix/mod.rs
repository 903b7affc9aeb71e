//! Code that Linux and macOS share: finding the program and resolving a policy against the host.

pub(crate) use mcp_policy::glob;

pub mod denials;
pub mod deny;
pub mod direct_exec;
#[cfg(test)]
pub mod fixture;
pub mod grants;
pub mod layout;
pub mod listing;
pub mod locate;
pub mod peek;
pub mod protect;
pub mod relay;
pub mod resolve;
pub mod run_records;
pub mod shim;
pub mod sockets;
pub mod supervision;
pub mod terminal;
pub mod writable;
