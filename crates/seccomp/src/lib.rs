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

mod bpf;
mod compile;
mod filter;
mod ioctls;
pub mod plain;
mod rules;

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

use serde::Serialize;

pub use bpf::Instruction;
pub use filter::Arch;
pub use rules::Number;

/// Whether the command may start other programs and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NewProcesses {
    Allowed,
    /// Asks the launcher, who says yes once: to the command's own start.
    Refused,
}

/// Whether the launcher hears of a connection before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Connects {
    Free,
    /// It opens a listener inside, where one is allowed, and lets the call go on.
    Announced,
}

/// Which sockets the command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sockets {
    /// What they reach is decided elsewhere.
    All,
    /// Those of the internet; a unix socket would lead to the host's own programs.
    Internet,
    /// TCP ones, which the launcher connects; and connected pairs.
    Proxied,
    /// None but connected pairs.
    None,
}

/// What stands around the command besides the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ground {
    Namespaces,
    /// No namespaces: Landlock of this version, or none at all (0).
    Plain {
        landlock: u32,
        deputy: Deputy,
    },
}

/// Whether the launcher carries out what depends on which file or process is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deputy {
    Asked,
    /// A task has one listener, and another sandbox around this one has it: all of these are refused.
    None,
}

impl Ground {
    /// Whether the launcher is asked about calls besides those of `--no-subprocess`.
    pub fn asks(self) -> bool {
        matches!(self, Ground::Plain { deputy: Deputy::Asked, .. })
    }
}

/// The program for the kernel.
pub fn program(
    arch: Arch,
    processes: NewProcesses,
    connects: Connects,
    sockets: Sockets,
    ground: Ground,
) -> Vec<Instruction> {
    let tables = plain::tables(sockets, ground);
    let filter = rules::with(arch, processes, connects, &tables);
    compile::compile(&match ground {
        Ground::Plain { deputy: Deputy::None, .. } => filter.without_asking(),
        _ => filter,
    })
}
