//! The settings that a filter is made for.

use serde::Serialize;

/// Whether the command may start other programs and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NewProcesses {
    /// It may.
    Allowed,
    /// Asks the launcher, who says yes once: to the command's own start.
    Refused,
}

/// Whether the launcher hears of a connection before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Connects {
    /// Connections are made without a question.
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

/// Whether the launcher hears of calls that name a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Watching {
    /// It does not.
    Off,
    /// It notes the path and lets the call go on: learning mode.
    Paths,
}

/// What stands around the command besides the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ground {
    /// Namespaces of its own, and Landlock where the kernel has it.
    Namespaces,
    /// No namespaces: Landlock of this version, or none at all (0).
    Plain {
        /// The version of Landlock's ABI.
        landlock: u32,
        /// Whether the launcher carries calls out for the command.
        syscall_proxy: SyscallProxy,
    },
}

/// Whether the launcher carries out what depends on which file or process is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyscallProxy {
    /// It does.
    Asked,
    /// A task has one listener, and another sandbox around this one has it: all of these are refused.
    None,
}

impl Ground {
    /// Whether the launcher is asked about calls besides those of `--no-subprocess`.
    #[must_use]
    pub fn asks(self) -> bool {
        matches!(self, Ground::Plain { syscall_proxy: SyscallProxy::Asked, .. })
    }
}
