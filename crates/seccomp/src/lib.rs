//! Which system calls a sandbox refuses, as a filter the kernel runs before each call.
//!
//! Stops whole parts of the kernel that no server needs and that holes were found in, and the
//! few calls that act on the host through what was granted: set-uid modes, keys to a terminal.
//! Needs Linux 3.17 (5.0 for `--no-subprocess`); from 5.11 on the kernel remembers calls that
//! are always allowed and does not run the filter for them. A filter sees numbers, never what
//! a pointer leads to: calls whose flags are behind one are answered with ENOSYS, which C
//! libraries take for an old kernel.
//!
//! Everything here is pure: `rules` says what is refused and why, `compile` makes the program,
//! and tests interpret it and compare each answer with what `decide` says plainly.

#![deny(missing_docs)]

mod bpf;
mod compile;
mod filter;
mod ioctls;
pub mod plain;
mod rules;
mod settings;
pub mod watch;

#[cfg(test)]
mod decide;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod interpret;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use bpf::Instruction;
pub use filter::Arch;
pub use rules::Number;
pub use settings::{Connects, Ground, NewProcesses, Sockets, SyscallProxy, Watching};

/// The program for the kernel.
#[must_use]
pub fn program(
    arch: Arch,
    processes: NewProcesses,
    connects: Connects,
    sockets: Sockets,
    ground: Ground,
    watching: Watching,
) -> Vec<Instruction> {
    compile::compile(&filter_of(arch, processes, connects, sockets, ground, watching))
}

/// The calls that such a filter announces to be noted, and for nothing else; sorted.
#[must_use]
pub fn watched_numbers(
    arch: Arch,
    processes: NewProcesses,
    connects: Connects,
    sockets: Sockets,
    ground: Ground,
) -> Vec<u32> {
    watch::add(&mut filter_of(arch, processes, connects, sockets, ground, Watching::Off))
}

fn filter_of(
    arch: Arch,
    processes: NewProcesses,
    connects: Connects,
    sockets: Sockets,
    ground: Ground,
    watching: Watching,
) -> filter::Filter {
    let mut tables = plain::tables(sockets, ground);
    if watching == Watching::Paths {
        tables.push(&[rules::NO_OTHER_LISTENER]);
    }
    let mut filter = rules::with(arch, processes, connects, &tables);
    if let Ground::Plain { syscall_proxy: SyscallProxy::None, .. } = ground {
        return filter.without_asking();
    }
    if watching == Watching::Paths {
        watch::add(&mut filter);
    }
    filter
}
