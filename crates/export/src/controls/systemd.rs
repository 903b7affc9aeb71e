//! A service of systemd. Tried with systemd 252 on Linux 6.12: within these directives `mcp` gets no user namespaces, so it works
//! without them (docs/security/linux-without-namespaces.md), and the unit is the wall around it.

use mcp_policy::Policy;

use super::{by_mcp, intents as all};
use crate::{Control, Intent, Intents};

/// What holds of a policy in a unit. `is_network_private`: the unit has no network at all.
pub fn intents(policy: &Policy, is_network_private: bool) -> Intents {
    all(policy, |control| {
        by_mcp(control).unwrap_or_else(|| intent(control, policy, is_network_private))
    })
}

fn intent(control: Control, policy: &Policy, is_network_private: bool) -> Intent {
    match control {
        Control::Filesystem => Intent::partial(
            "mcp: Landlock and a system call filter; around it ProtectSystem=strict, ProtectHome, PrivateTmp",
            "whether a file exists, its size and times can be asked for, because the unit has no user namespaces",
        ),
        Control::Deny => Intent::unavailable(
            "without user namespaces mcp cannot close a part of a granted directory: it does not start the server while a file matches",
            "grant the other parts one by one",
        ),
        Control::Protect => Intent::unavailable(
            "without user namespaces mcp cannot close a part of a writable directory, and does not start the server",
            "use --no-protect for a directory that holds no settings of other programs",
        ),
        Control::Network if is_network_private => Intent::enforce(
            "mcp: every socket is refused or connected by its broker; PrivateNetwork around it",
        ),
        Control::Network => Intent::enforce(
            "mcp: every socket is connected by its broker, names included; IPAddressAllow around it, which knows no names and no ports",
        ),
        Control::ProcessIsolation => Intent::partial(
            "mcp: Landlock for signals, memory and files of other processes; ProtectProc=invisible hides those of other users",
            "names and command lines of the service's own processes can be read",
        ),
        Control::Privileges => Intent::enforce(
            "mcp: no capabilities, no_new_privs, a system call filter; PrivateUsers, CapabilityBoundingSet= and SystemCallFilter around it",
        ),
        Control::TreeKill => Intent::partial(
            "mcp: a supervisor that all orphans come to",
            "if gateway and supervisor are killed in the same instant, the tree lives until the service ends",
        ),
        Control::Memory => Intent::partial(
            "MemoryMax for all sandboxes together, and for each one RLIMIT_DATA and a watch",
            "one sandbox is sampled and not reserved, so a burst can take the share of others",
        ),
        Control::Cpu => {
            Intent::partial("CPUQuota for all sandboxes together", "a share for each sandbox")
        }
        Control::Processes => Intent::partial(
            "TasksMax for all sandboxes together, and for each one RLIMIT_NPROC",
            "RLIMIT_NPROC counts all processes of the service's user",
        ),
        Control::Io if policy.filesystem.write.is_empty() => Intent::unavailable(
            "a rate is set for disks of written paths, and there are none",
            "leave it out",
        ),
        Control::Io => Intent::partial(
            "IOReadBandwidthMax and IOWriteBandwidthMax of the unit, for all sandboxes together",
            "a rate for each sandbox",
        ),
        Control::TmpSize => Intent::unavailable(
            "temporary files are on the disk of the host (PrivateTmp)",
            "bound single files with --max-file-size",
        ),
        // `by_mcp` has the rest.
        other => Intent::unavailable(format!("{other} is not known there"), "leave it out"),
    }
}
