//! Linux: user namespaces, a root of its own, Landlock, limits, a system call filter. `deny`,
//! `landlock`, `plan`, `protect`, `step` and `view` are pure and compile everywhere; the rest talks
//! to the kernel.

pub mod cgroup;
pub mod deny;
pub mod facts;
pub mod landlock;
pub mod phases;
pub mod plan;
pub mod protect;
pub mod sandbox_socket;
pub mod step;
pub mod view;
pub mod well_known;

#[cfg(target_os = "linux")]
use crate::unix::relay;

#[cfg(target_os = "linux")]
mod apply;
#[cfg(target_os = "linux")]
mod channel;
#[cfg(target_os = "linux")]
mod closer;
#[cfg(target_os = "linux")]
mod connect_proxy;
#[cfg(target_os = "linux")]
mod failure;
#[cfg(target_os = "linux")]
pub mod helper_link;
#[cfg(target_os = "linux")]
pub mod launch;
#[cfg(target_os = "linux")]
mod leftovers;
#[cfg(target_os = "linux")]
mod memory_watch;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod open_files;
#[cfg(target_os = "linux")]
pub(crate) mod own_networks;
#[cfg(target_os = "linux")]
mod owner_map;
#[cfg(target_os = "linux")]
mod path_watch;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
pub mod probe;
#[cfg(target_os = "linux")]
mod process_tree;
#[cfg(target_os = "linux")]
mod protected_inotify;
#[cfg(target_os = "linux")]
mod refusals;
#[cfg(target_os = "linux")]
mod replaced;
#[cfg(target_os = "linux")]
pub mod reservation;
#[cfg(target_os = "linux")]
mod run_directory;
#[cfg(target_os = "linux")]
pub mod runs;
#[cfg(target_os = "linux")]
mod sandbox_sockets;
#[cfg(target_os = "linux")]
mod seccomp_notify;
#[cfg(target_os = "linux")]
pub mod stdio;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod sweeper;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
pub use sys::give_back_memory;
#[cfg(target_os = "linux")]
mod syscall_proxy;
#[cfg(target_os = "linux")]
pub mod terminal;
