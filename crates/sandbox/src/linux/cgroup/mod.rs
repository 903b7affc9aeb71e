//! Limits on the whole tree together, by the kernel: memory, processes, processor, disks.
//!
//! Needs version 2 of cgroups (never version 1) and a place in its hierarchy that we may write:
//! a delegated one, a scope of the systemd user manager, or as root one of our own. Where none is
//! to be had, rlimits and the memory watch remain, and the report says so.
//!
//! `dbus_wire`, `limits`, `mount` and `usage` are pure; the rest touches the system.

pub mod dbus_wire;
pub mod limits;
pub mod mount;
pub mod usage;

#[cfg(target_os = "linux")]
pub mod bounds;
#[cfg(target_os = "linux")]
mod dbus;
#[cfg(target_os = "linux")]
pub mod disks;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
pub mod held;
#[cfg(target_os = "linux")]
pub mod place;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(target_os = "linux")]
mod systemd;
