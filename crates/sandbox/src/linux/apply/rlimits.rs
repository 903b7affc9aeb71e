//! Resource limits of the process that becomes the command; its children inherit them.

use std::fs;
use std::io;

use rustix::process::{self, Rlimit};

use crate::core::rlimit::Resource;
use crate::linux::channel::Seen;
use crate::linux::step::Limit;

pub(super) fn limit(limit: Limit) -> io::Result<Seen> {
    match limit {
        Limit::To { resource, value } => set(resource, value),
        Limit::UserProcesses { more } => limit_user_processes(more),
    }
}

/// RLIMIT_NPROC counts threads, of the whole user.
fn limit_user_processes(more: u64) -> io::Result<Seen> {
    let uid = process::getuid().as_raw();
    let mut now = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(status) = fs::read(entry.path().join("status")) else {
            continue;
        };
        let status = String::from_utf8_lossy(&status);
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        if field("Uid:") == Some(uid.into()) {
            now += field("Threads:").unwrap_or(1);
        }
    }
    set(Resource::Processes, now + more)
}

/// Sets both values, so that the program cannot raise it again. A hard limit that is already
/// lower stays: it cannot be raised, and it is stricter.
fn set(resource: Resource, value: u64) -> io::Result<Seen> {
    let which = match resource {
        Resource::Cpu => process::Resource::Cpu,
        Resource::Data => process::Resource::Data,
        Resource::AddressSpace => process::Resource::As,
        Resource::Processes => process::Resource::Nproc,
        Resource::OpenFiles => process::Resource::Nofile,
        Resource::FileSize => process::Resource::Fsize,
        Resource::Core => process::Resource::Core,
    };
    let value = process::getrlimit(which).maximum.map_or(value, |hard| hard.min(value));
    // The first second over the soft limit is a signal that a program may handle; the hard
    // limit then kills.
    let hard = if resource == Resource::Cpu { value.saturating_add(1) } else { value };
    process::setrlimit(which, Rlimit { current: Some(value), maximum: Some(hard) })?;
    match process::getrlimit(which).current {
        Some(now) if now <= value => Ok(Seen::Confirmed(format!("{resource} {now}"))),
        _ => Err(io::Error::from_raw_os_error(libc::ERANGE)),
    }
}
