//! Memory, processes, processor and disks: by the run's cgroup where there is one, else by rlimits
//! and the watch, with what that leaves open.

use mcp_policy::{Bytes, Duration};

use super::kernel_at_least;
use crate::core::control::Control;
use crate::core::host::Rootless;
use crate::core::plan::Intent;
use crate::core::request::Request;
use crate::core::rlimit::Resource;
use crate::linux::cgroup::limits as files;
use crate::linux::facts::LinuxFacts;
use crate::linux::phases::{CgroupPhase, Numbers, Watches};
use crate::linux::step::{CgroupSetting, EnterCgroup, Limit, Timeout, WatchMemory};

/// The launcher's part, before anything runs.
pub fn cgroup(request: &Request, facts: &LinuxFacts, numbers: &mut Numbers) -> Option<CgroupPhase> {
    let held = facts.cgroup.held.as_ref()?;
    let settings = files::settings(&request.policy.limits, &held.controllers, &facts.cgroup.disks);
    if settings.is_empty() {
        return None;
    }
    let mut controls: Vec<_> = settings.iter().map(|setting| setting.control).collect();
    controls.dedup();
    let settings = settings.into_iter().map(|files::CgroupFile { control, file, value }| {
        numbers.step(CgroupSetting { file, value }, &[control])
    });
    let settings = settings.collect();
    let enter = EnterCgroup { at: held.at.clone(), means: held.means };
    Some(CgroupPhase { settings, enter: numbers.step(enter, &controls) })
}

/// The launcher's part while the command runs.
pub fn watches(request: &Request, facts: &LinuxFacts, numbers: &mut Numbers) -> Watches {
    let limits = &request.policy.limits;
    let timeout = limits.timeout.value.map(|after| {
        numbers.step(Timeout { after, grace: limits.grace.value }, &[Control::Timeout])
    });
    let watched = limits.memory.value.filter(|_| !facts.cgroup.has(files::MEMORY));
    let memory = watched.map(|limit| numbers.step(WatchMemory { limit }, &[Control::Memory]));
    Watches { timeout, memory }
}

/// What RLIMIT_NPROC counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NprocScope {
    Inside,
    OfTheUser,
}

/// The target's part: what a process is told with `ulimit`, and what holds where no cgroup does.
pub fn rlimits(
    request: &Request,
    facts: &LinuxFacts,
    counted: NprocScope,
) -> Vec<(Limit, Control)> {
    let limits = &request.policy.limits;
    let mut all = Vec::new();
    let mut limit = |resource, value, control| all.push((Limit::To { resource, value }, control));
    if let (Some(Bytes(size)), false) = (limits.memory.value, facts.cgroup.has(files::MEMORY)) {
        limit(Resource::Data, size, Control::Memory);
    }
    if let Some(processes) = processes_limit(request, facts, counted) {
        all.push((processes, Control::Processes));
    }
    let mut limit = |resource, value, control| all.push((Limit::To { resource, value }, control));
    if let Some(time) = limits.cpu_time.value {
        limit(Resource::Cpu, whole_seconds(time), Control::CpuTime);
    }
    if let Some(count) = limits.open_files.value {
        limit(Resource::OpenFiles, u64::from(count), Control::OpenFiles);
    }
    if let Some(Bytes(size)) = limits.file_size.value {
        limit(Resource::FileSize, size, Control::FileSize);
    }
    if let Some(Bytes(size)) = limits.address_space.value {
        limit(Resource::AddressSpace, size, Control::AddressSpace);
    }
    // A core dump is a file outside, written with the program's memory in it.
    limit(Resource::Core, 0, Control::Filesystem);
    all
}

fn processes_limit(request: &Request, facts: &LinuxFacts, counted: NprocScope) -> Option<Limit> {
    let count = u64::from(request.policy.limits.processes.value?);
    let held = facts.cgroup.has(files::PIDS);
    match counted {
        // The sandbox's init has the same user and is counted as well.
        NprocScope::Inside if counts_inside(facts) || !held => {
            Some(Limit::To { resource: Resource::Processes, value: count + 1 })
        }
        NprocScope::OfTheUser if !held => Some(Limit::UserProcesses { more: count }),
        NprocScope::Inside | NprocScope::OfTheUser => None,
    }
}

/// RLIMIT_CPU counts whole seconds; less than asked for would kill too early.
pub fn whole_seconds(time: Duration) -> u64 {
    let time = time.as_std();
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
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
