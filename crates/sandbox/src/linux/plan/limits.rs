//! Memory, processes, processor and disks: by the run's cgroup where there is one, else by rlimits
//! and the watch, with what that leaves open.

use mcp_policy::Bytes;

use super::{Counted, Steps, kernel_at_least};
use crate::core::control::Control;
use crate::core::host::Rootless;
use crate::core::plan::Intent;
use crate::core::request::Request;
use crate::core::rlimit::Resource;
use crate::linux::cgroup::limits as files;
use crate::linux::facts::LinuxFacts;
use crate::linux::step::{Planned, Step};

/// The launcher's part, before anything runs.
pub fn steps(request: &Request, facts: &LinuxFacts, steps: &mut Steps) {
    let limits = &request.policy.limits;
    let cgroup = &facts.cgroup;
    if let Some(held) = &cgroup.held {
        let settings = files::settings(limits, &held.controllers, &cgroup.disks);
        let mut controls: Vec<_> = settings.iter().map(|setting| setting.control).collect();
        controls.dedup();
        for files::Setting { control, file, value } in settings {
            steps.push(Step::SetCgroup { file, value }, &[control]);
        }
        if !controls.is_empty() {
            let at = held.at.clone();
            steps.push(Step::EnterCgroup { at, means: held.means }, &controls);
        }
    }
}

/// The launcher's part while the command runs.
pub fn watch(request: &Request, facts: &LinuxFacts, steps: &mut Steps) {
    let limit = request.policy.limits.memory.value;
    if let (Some(limit), false) = (limit, facts.cgroup.has(files::MEMORY)) {
        steps.push(Step::WatchMemory { limit }, &[Control::Memory]);
    }
}

/// Init's part, once it is in there.
pub fn init_steps(steps: &mut Steps) {
    let is_entered = |planned: &Planned| matches!(planned.step, Step::EnterCgroup { .. });
    if steps.0.iter().any(is_entered) {
        steps.push(Step::CgroupRoot, &[Control::Memory]);
    }
}

/// The target's part: what a process is told with `ulimit`, and what holds where no cgroup does.
pub fn rlimits(request: &Request, facts: &LinuxFacts, counted: Counted, steps: &mut Steps) {
    let limits = &request.policy.limits;
    if let (Some(Bytes(limit)), false) = (limits.memory.value, facts.cgroup.has(files::MEMORY)) {
        steps.limit(Resource::Data, limit, &[Control::Memory]);
    }
    let Some(count) = limits.processes.value else {
        return;
    };
    let held = facts.cgroup.has(files::PIDS);
    match counted {
        // The sandbox's init has the same user and is counted as well.
        Counted::Inside if counts_inside(facts) || !held => {
            steps.limit(Resource::Processes, u64::from(count) + 1, &[Control::Processes]);
        }
        Counted::OfTheUser if !held => {
            let step = Step::LimitUserProcesses { more: u64::from(count) };
            steps.push(step, &[Control::Processes]);
        }
        Counted::Inside | Counted::OfTheUser => {}
    }
}

/// From Linux 5.14 on RLIMIT_NPROC counts per user namespace.
fn counts_inside(facts: &LinuxFacts) -> bool {
    kernel_at_least(&facts.kernel, 5, 14)
}

pub fn memory(request: &Request, facts: &LinuxFacts) -> Intent {
    if request.policy.limits.memory.value.is_none() {
        return Intent::NotRequested;
    }
    if facts.cgroup.has(files::MEMORY) {
        return Intent::enforce(
            "cgroup memory.max for all processes together, files in /tmp included; the whole tree \
             is killed",
        );
    }
    Intent::partial(
        "RLIMIT_DATA for each process and a watch over the tree",
        format!(
            "{}: memory is sampled, not reserved, a burst can pass the limit for some milliseconds, \
             and memory that no process maps (unmapped memfds, pipe and socket buffers, files in \
             /tmp) is not counted",
            facts.cgroup.missing(files::MEMORY)
        ),
    )
}

pub fn cpu(request: &Request, facts: &LinuxFacts) -> Intent {
    if request.policy.limits.cpu.value.is_none() {
        return Intent::NotRequested;
    }
    if facts.cgroup.has(files::CPU) {
        return Intent::enforce("cgroup cpu.max for all processes together");
    }
    Intent::unavailable(
        format!("a share of the processor needs cgroup v2: {}", facts.cgroup.missing(files::CPU)),
        "bound the total with --max-cpu-time; `mcp doctor` says how to get cgroups",
    )
}

pub fn io(request: &Request, facts: &LinuxFacts) -> Intent {
    if request.policy.limits.io.value.is_none() {
        return Intent::NotRequested;
    }
    let remedy = "leave out --max-io; `mcp doctor` says how to get cgroups";
    if !facts.cgroup.has(files::IO) {
        let missing = facts.cgroup.missing(files::IO);
        return Intent::unavailable(format!("a disk rate needs cgroup v2: {missing}"), remedy);
    }
    let unbounded: Vec<_> =
        facts.cgroup.unbounded.iter().map(|path| path.display().to_string()).collect();
    let by = "cgroup io.max on the disks of writable grants";
    match (facts.cgroup.disks.is_empty(), unbounded.is_empty()) {
        (true, true) => Intent::unavailable("nothing writable is granted on a disk", remedy),
        (true, false) => {
            Intent::unavailable(format!("not on a disk: {}", unbounded.join(" ")), remedy)
        }
        (false, true) => Intent::enforce(by),
        (false, false) => Intent::partial(by, format!("not on a disk: {}", unbounded.join(" "))),
    }
}

/// The kernel lets the machine's root have any number of processes, capabilities or not.
pub fn is_unbound(facts: &LinuxFacts) -> bool {
    facts.caller.rootless == Some(Rootless::Root)
}

pub const UNBOUND: &str = "the caller is the machine's root in a user namespace of its own, and the kernel does not bind that by it";

pub fn processes(request: &Request, facts: &LinuxFacts) -> Intent {
    if request.policy.limits.processes.value.is_none() {
        return Intent::NotRequested;
    }
    match (facts.cgroup.has(files::PIDS), counts_inside(facts)) {
        (true, _) => Intent::enforce("cgroup pids.max for all processes and threads together"),
        _ if is_unbound(facts) => Intent::partial("RLIMIT_NPROC", UNBOUND),
        (false, true) => {
            Intent::enforce("RLIMIT_NPROC counted inside the user namespace, threads included")
        }
        (false, false) => Intent::partial(
            "RLIMIT_NPROC",
            "before Linux 5.14 it counts the user's processes outside as well",
        ),
    }
}
