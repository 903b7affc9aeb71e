//! The names of what a sandbox controls, shared by plan, report, `doctor` and documentation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a sandbox controls. The first ten are boundaries, the rest are limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Control {
    /// Only the system view and the granted paths can be reached, and only written where granted.
    Filesystem,
    /// What `deny` names stays out of reach inside granted paths.
    Deny,
    /// What other programs act on stays as it is inside writable paths.
    Protect,
    /// Nothing outside is reachable over the network, but for what the policy allows.
    Network,
    /// No new processes and no exec.
    Subprocess,
    /// Processes outside can be neither seen, signalled nor inspected.
    ProcessIsolation,
    /// No capabilities, no way to gain any.
    Privileges,
    /// Only the named variables arrive.
    Environment,
    /// No descriptor of the caller but the standard three, and those checked by kind.
    Descriptors,
    /// The whole tree dies with the run and with the launcher.
    TreeKill,
    /// Memory of all processes together.
    Memory,
    /// Share of the processor.
    Cpu,
    /// Processor time of each process.
    CpuTime,
    /// Bytes for each second to and from the disks of writable grants.
    Io,
    /// Processes and threads.
    Processes,
    /// Open files of each process.
    OpenFiles,
    /// Size of each file that is written.
    FileSize,
    /// Temporary space.
    TmpSize,
    /// Address space of each process.
    AddressSpace,
    /// Time until the command is ended.
    Timeout,
}

impl Control {
    /// Every control, in the order of reports.
    pub const ALL: [Control; 20] = [
        Control::Filesystem,
        Control::Deny,
        Control::Protect,
        Control::Network,
        Control::Subprocess,
        Control::ProcessIsolation,
        Control::Privileges,
        Control::Environment,
        Control::Descriptors,
        Control::TreeKill,
        Control::Memory,
        Control::Cpu,
        Control::CpuTime,
        Control::Io,
        Control::Processes,
        Control::OpenFiles,
        Control::FileSize,
        Control::TmpSize,
        Control::AddressSpace,
        Control::Timeout,
    ];

    /// A boundary that cannot be enforced stops the run; a limit degrades in the open.
    pub fn is_boundary(self) -> bool {
        !matches!(
            self,
            Control::Memory
                | Control::Cpu
                | Control::CpuTime
                | Control::Io
                | Control::Processes
                | Control::OpenFiles
                | Control::FileSize
                | Control::TmpSize
                | Control::AddressSpace
                | Control::Timeout
        )
    }

    /// What Seatbelt or an AppContainer enforces, and nothing else does there.
    pub fn rests_on_confinement(self) -> bool {
        matches!(
            self,
            Control::Filesystem
                | Control::Deny
                | Control::Protect
                | Control::Network
                | Control::Subprocess
                | Control::ProcessIsolation
                | Control::Privileges
        )
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Control::Filesystem => "filesystem",
            Control::Deny => "deny",
            Control::Protect => "protect",
            Control::Network => "network",
            Control::Subprocess => "subprocess",
            Control::ProcessIsolation => "process_isolation",
            Control::Privileges => "privileges",
            Control::Environment => "environment",
            Control::Descriptors => "descriptors",
            Control::TreeKill => "tree_kill",
            Control::Memory => "memory",
            Control::Cpu => "cpu",
            Control::CpuTime => "cpu_time",
            Control::Io => "io",
            Control::Processes => "processes",
            Control::OpenFiles => "open_files",
            Control::FileSize => "file_size",
            Control::TmpSize => "tmp_size",
            Control::AddressSpace => "address_space",
            Control::Timeout => "timeout",
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
