//! A Pod, on Kubernetes or by `podman kube play`: RuntimeDefault seccomp without capabilities leaves no user namespaces, so `mcp`
//! works without them there (docs/security/linux-without-namespaces.md); the container is the wall around it.

use mcp_policy::{NetworkMode, Policy};

use super::{by_mcp, intents as all};
use crate::{Control, Intent, Intents};

/// What holds of a policy in a Pod.
pub fn intents(policy: &Policy) -> Intents {
    all(policy, |control| by_mcp(control).unwrap_or_else(|| intent(control, policy)))
}

fn intent(control: Control, policy: &Policy) -> Intent {
    match control {
        Control::Filesystem => Intent::partial(
            "mcp: Landlock and a system call filter; the image is read-only, nothing of the node is mounted",
            "whether a file of the image exists, its size and times can be asked for, because a Pod has no user namespaces",
        ),
        Control::Deny => Intent::unavailable(
            "a Pod has no words for it, and without user namespaces mcp cannot close a part of a granted directory: it does \
             not start the server while a file matches",
            "grant the other parts one by one, or leave those files out of the volume",
        ),
        Control::Protect => Intent::unavailable(
            "without user namespaces mcp cannot close a part of a writable directory, and does not start the server",
            "use --no-protect for a volume that holds no settings of other programs",
        ),
        Control::Network if policy.network.mode.value == NetworkMode::Host => Intent::NotRequested,
        Control::Network => Intent::enforce(
            "mcp: every socket is connected by its broker, names included; a NetworkPolicy around it, where the network \
             plugin enforces it",
        ),
        Control::ProcessIsolation => Intent::partial(
            "mcp: Landlock for signals, memory and files of other processes; the Pod sees no process of the node",
            "names and command lines of other sandboxes in the same Pod can be read",
        ),
        Control::Privileges => Intent::enforce(
            "no capabilities, no_new_privs, two system call filters, an ordinary user; hostUsers: false where the cluster has it",
        ),
        Control::TreeKill => Intent::partial(
            "mcp: a supervisor that all orphans come to",
            "if gateway and supervisor are killed in the same instant, the tree lives until the container ends",
        ),
        Control::Memory => Intent::partial(
            "resources.limits.memory for all sandboxes together, and for each one RLIMIT_DATA and a watch",
            "one sandbox is sampled and not reserved, so a burst can take the share of others",
        ),
        Control::Cpu => Intent::partial(
            "resources.limits.cpu for all sandboxes together",
            "a share for each sandbox: a Pod has no cgroup of its own to divide",
        ),
        Control::Io => Intent::unavailable(
            "a Pod has no words for a disk rate",
            "leave it out, or choose a StorageClass with a rate",
        ),
        Control::Processes => Intent::partial(
            "mcp: RLIMIT_NPROC",
            "a Pod has no words for a pid limit: what the user has in the Pod is counted together; podPidsLimit of the kubelet \
             bounds every Pod of a node",
        ),
        Control::TmpSize => Intent::partial(
            "a memory-backed /tmp with sizeLimit for all sandboxes together",
            "a share for each sandbox",
        ),
        // `by_mcp` has the rest.
        other => Intent::unavailable(format!("{other} is not known there"), "leave it out"),
    }
}
