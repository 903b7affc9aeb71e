//! What Linux and macOS share: finding the program and resolving a policy against the host.

pub mod direct;
#[cfg(test)]
mod fixture;
pub mod layout;
pub mod locate;
pub mod resolve;
pub mod shim;
pub mod walk;
