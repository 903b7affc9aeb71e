//! Request and host facts → the steps of a Linux run and what each control rests on.
//!
//! Pure: no system call in here. This is the plan with user namespaces and a root of its own; a
//! host that refuses them gets the one of `plain`.

mod landlock;
mod limits;

use std::collections::BTreeMap;
use std::path::Path;

use mcp_policy::{Bytes, Duration, NetworkMode, Subprocess};

use crate::core::control::Control;
use crate::core::host::{Caller, Fact};
use crate::core::plan::Intent;
use crate::core::request::{HOME, Home, Request, Stdio};
use crate::core::rlimit::Resource;
use crate::linux::facts::LinuxFacts;
use crate::linux::inside::{ROOT_BECOMES, ROOT_BECOMES_OUTSIDE};
use crate::linux::step::{NetworkNamespace, Plan, Planned, ProcView, Step};
use crate::linux::{deny, protect, view};
use mcp_seccomp::{Arch, Connects, Ground, NewProcesses, Sockets};

/// Whether two plans differ in nothing that matters, so that the second would fail as well: in the cgroup, whose
/// name is new each time.
#[cfg(target_os = "linux")]
pub fn same_walls(plan: &Plan, other: &Plan) -> bool {
    let walls = |plan: &Plan| {
        let of_cgroup = |step: &Step| {
            matches!(step, Step::SetCgroup { .. } | Step::EnterCgroup { .. } | Step::CgroupRoot)
        };
        let steps = plan.steps.iter().map(|planned| &planned.step);
        steps.filter(|step| !of_cgroup(step)).cloned().collect::<Vec<_>>()
    };
    walls(plan) == walls(other)
}

pub fn plan(request: &Request, facts: &LinuxFacts) -> Plan {
    let mut steps = Steps::default();
    let controls = controls(request, facts);
    if plain::reason(facts).is_some() {
        plain::steps(request, facts, &mut steps);
        return Plan { controls, steps: steps.0 };
    }
    let network = match request.policy.network.mode.value {
        NetworkMode::Isolated if facts.network_namespace.usable() => NetworkNamespace::Own,
        NetworkMode::Isolated | NetworkMode::Host => NetworkNamespace::Host,
    };
    let isolated = network == NetworkNamespace::Own;

    let mut rests = vec![Control::Filesystem, Control::ProcessIsolation, Control::TreeKill];
    if isolated {
        rests.push(Control::Network);
    }
    limits::steps(request, facts, &mut steps);
    steps.push(Step::Namespaces { network }, &rests);
    watches(request, &mut steps);
    limits::watch(request, facts, &mut steps);
    if isolated && network::is_open(request) {
        let allowed = &request.policy.network;
        let listen = allowed.listen.iter().map(|port| port.value).collect();
        steps.push(Step::Broker { rules: allowed.allow.len(), listen }, &[Control::Network]);
    }
    if !isolated && proxied::sockets(request, facts) == Sockets::Proxied {
        steps.push(proxied::step(request), &[Control::Network]);
    }

    limits::init_steps(&mut steps);
    let Caller { uid, gid, .. } = facts.caller;
    let (uid, gid, outside_uid, outside_gid) = if facts.caller.is_root() {
        (ROOT_BECOMES, ROOT_BECOMES, ROOT_BECOMES_OUTSIDE, ROOT_BECOMES_OUTSIDE)
    } else if facts.caller.is_rootless() {
        // It may have no other id to give away. Outside it is an ordinary user; inside it is one as well.
        (ROOT_BECOMES, ROOT_BECOMES, uid, gid)
    } else {
        (uid, gid, uid, gid)
    };
    let invoker = facts.caller.invoker;
    steps
        .push(Step::MapIds { uid, gid, outside_uid, outside_gid, invoker }, &[Control::Privileges]);
    steps.push(Step::DieWithLauncher, &[Control::TreeKill]);
    steps.push(Step::HideMemory, &[Control::ProcessIsolation, Control::Environment]);
    steps.push(Step::NewSession, &[Control::ProcessIsolation]);
    steps.push(Step::NewKeyring, &[Control::ProcessIsolation]);
    steps.push(Step::ForbidNamespaces, &[Control::Privileges]);
    steps.push(Step::Hostname { name: view::HOSTNAME }, &[Control::ProcessIsolation]);
    if isolated {
        steps.push(Step::Loopback, &[Control::Network]);
        for step in network::steps(request) {
            steps.push(step, &[Control::Network]);
        }
    }

    for (fd, stdio) in (0..).zip(&request.stdio) {
        if let Stdio::ReadOnlyFile(path) = stdio {
            steps.push(Step::Reopen { fd, path: path.clone() }, &[Control::Descriptors]);
        }
    }

    let scratch = request.policy.limits.tmp_size.value;
    steps.push(Step::NewRoot { scratch }, &[Control::Filesystem, Control::TmpSize]);
    let placed = view::steps(request, facts, uid, gid);
    let closed = deny::steps(request, &placed);
    let strays = deny::strays(request, &placed);
    let protected = protect::steps(request, &placed);
    for step in placed {
        let rests: &[Control] = match step {
            Step::Scratch { .. } => &[Control::Filesystem, Control::TmpSize],
            // A convenience: without it more is refused, not less.
            Step::Layer { .. } => &[],
            Step::Proc { .. } => &[Control::Filesystem, Control::ProcessIsolation],
            _ => &[Control::Filesystem],
        };
        steps.push(step, rests);
    }
    // Before the masks: what is denied inside something protected stays denied.
    for step in protected {
        steps.push(step, &[Control::Protect]);
    }
    for step in closed {
        steps.push(step, &[Control::Deny]);
    }
    for step in strays {
        steps.push(step, &[Control::Network]);
    }
    steps.push(Step::EnterRoot, &[Control::Filesystem]);
    if request.stdio.contains(&Stdio::Terminal) {
        steps.push(Step::Terminal, &[Control::Descriptors]);
    }
    steps.push(Step::DropPrivileges, &[Control::Privileges]);

    // Before the limits: it opens descriptors, of which the command may have few.
    if let Some(step) = landlock::step(facts.landlock_abi, steps.0.iter().map(|p| &p.step)) {
        steps.push(step, &[Control::Filesystem, Control::Descriptors]);
    }
    limits::rlimits(request, facts, Counted::Inside, &mut steps);
    rlimits(request, &mut steps);

    steps.push(Step::Descriptors { stdio: request.stdio.clone() }, &[Control::Descriptors]);
    let sockets = match request.policy.network.mode.value {
        NetworkMode::Isolated if !isolated => proxied::sockets(request, facts),
        _ => Sockets::All,
    };
    filter(request, facts, sockets, Ground::Namespaces, &mut steps);
    steps.push(
        Step::Execute { program: request.program.clone(), cwd: request.cwd.clone() },
        &[Control::Environment],
    );
    Plan { controls, steps: steps.0 }
}

/// Which processes RLIMIT_NPROC counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Inside,
    OfTheUser,
}

#[derive(Default)]
pub struct Steps(Vec<Planned>);

impl Steps {
    fn push(&mut self, step: Step, for_controls: &[Control]) {
        self.0.push(Planned { step, for_controls: for_controls.to_vec() });
    }

    fn limit(&mut self, resource: Resource, value: u64, for_controls: &[Control]) {
        self.push(Step::Limit { resource, value }, for_controls);
    }
}

/// The limits that the launcher keeps itself.
fn watches(request: &Request, steps: &mut Steps) {
    let limits = &request.policy.limits;
    if let Some(after) = limits.timeout.value {
        steps.push(Step::Timeout { after, grace: limits.grace.value }, &[Control::Timeout]);
    }
}

fn filter(
    request: &Request,
    facts: &LinuxFacts,
    sockets: Sockets,
    ground: Ground,
    steps: &mut Steps,
) {
    let Ok(arch) = filter_arch(facts) else {
        return;
    };
    let connects = match sockets {
        Sockets::All if ground == Ground::Namespaces => network::connects(request),
        _ => Connects::Free,
    };
    let mut rests = vec![Control::Privileges];
    let processes = match request.policy.process.subprocess.value {
        Subprocess::Allowed => NewProcesses::Allowed,
        // Nobody could let the command's own start pass.
        Subprocess::Refused if !facts.listener.usable() => NewProcesses::Allowed,
        Subprocess::Refused => {
            rests.push(Control::Subprocess);
            NewProcesses::Refused
        }
    };
    if matches!(sockets, Sockets::None | Sockets::Proxied) {
        rests.push(Control::Network);
    }
    if ground != Ground::Namespaces {
        rests.extend([Control::Filesystem, Control::ProcessIsolation, Control::TreeKill]);
    }
    steps.push(Step::Filter { arch, processes, connects, sockets, ground }, &rests);
}

/// The machine a filter is made for, or why there can be none.
fn filter_arch(facts: &LinuxFacts) -> Result<Arch, String> {
    if let Fact::Fails { why } = &facts.seccomp {
        return Err(format!("this host refuses system call filters ({why})"));
    }
    Arch::named(&facts.architecture)
        .ok_or_else(|| format!("there is no system call filter for {}", facts.architecture))
}

fn rlimits(request: &Request, steps: &mut Steps) {
    let limits = &request.policy.limits;
    if let Some(time) = limits.cpu_time.value {
        steps.limit(Resource::Cpu, whole_seconds(time), &[Control::CpuTime]);
    }
    if let Some(count) = limits.open_files.value {
        steps.limit(Resource::OpenFiles, u64::from(count), &[Control::OpenFiles]);
    }
    if let Some(Bytes(size)) = limits.file_size.value {
        steps.limit(Resource::FileSize, size, &[Control::FileSize]);
    }
    if let Some(Bytes(size)) = limits.address_space.value {
        steps.limit(Resource::AddressSpace, size, &[Control::AddressSpace]);
    }
    // A core dump is a file outside, written with the program's memory in it.
    steps.limit(Resource::Core, 0, &[Control::Filesystem]);
}

/// RLIMIT_CPU counts whole seconds; less than asked for would kill too early.
fn whole_seconds(time: Duration) -> u64 {
    let time = time.as_std();
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn controls(request: &Request, facts: &LinuxFacts) -> BTreeMap<Control, Intent> {
    Control::ALL.into_iter().map(|control| (control, intent(control, request, facts))).collect()
}

fn intent(control: Control, request: &Request, facts: &LinuxFacts) -> Intent {
    if let Some(why) = plain::reason(facts)
        && let Some(intent) = plain::intent(control, request, facts, &why)
    {
        return intent;
    }
    let asked_for = &request.policy.limits;
    match control {
        Control::Filesystem => Intent::enforce("mount namespace with a root of its own"),
        Control::Deny => deny::intent(request),
        Control::Protect => protect::intent(request),
        Control::Network => network::intent(request, facts),
        Control::Subprocess => match request.policy.process.subprocess.value {
            Subprocess::Allowed => Intent::NotRequested,
            Subprocess::Refused => match filter_arch(facts) {
                Ok(_) if !facts.listener.usable() => Intent::unavailable(
                    "no filter that asks the launcher can be set here",
                    "limit their number with --max-pids instead",
                ),
                Ok(_) => Intent::enforce("system call filter; the launcher lets one exec pass"),
                Err(why) => Intent::unavailable(why, "limit their number with --max-pids instead"),
            },
        },
        Control::ProcessIsolation => process_isolation(facts),
        Control::Privileges => match filter_arch(facts) {
            Ok(_) => Intent::enforce("no capabilities, no_new_privs, a system call filter"),
            Err(why) => Intent::partial(
                "no capabilities, no_new_privs",
                format!("{why}: the whole kernel can be called, and set-uid files can be made"),
            ),
        },
        Control::Environment => Intent::enforce("an environment made from the policy alone"),
        Control::Descriptors => Intent::enforce("close_range, and 0-2 checked by kind"),
        Control::TreeKill => Intent::enforce("pid namespace that dies with its init"),
        Control::Memory => limits::memory(request, facts),
        Control::Cpu => limits::cpu(request, facts),
        Control::Io => limits::io(request, facts),
        Control::CpuTime => match asked_for.cpu_time.value {
            None => Intent::NotRequested,
            Some(_) => Intent::partial(
                "RLIMIT_CPU",
                "each process has the whole time: the sum over processes is not bounded",
            ),
        },
        Control::Processes => limits::processes(request, facts),
        Control::OpenFiles => asked(asked_for.open_files.value, "RLIMIT_NOFILE for each process"),
        Control::FileSize => asked(asked_for.file_size.value, "RLIMIT_FSIZE for each file"),
        Control::TmpSize => temporary_space(request),
        Control::AddressSpace => asked(asked_for.address_space.value, "RLIMIT_AS for each process"),
        Control::Timeout => asked(asked_for.timeout.value, "the launcher ends the pid namespace"),
    }
}

fn temporary_space(request: &Request) -> Intent {
    if matches!(request.home, Home::Kept(_)) {
        return Intent::partial(
            "tmpfs size for /tmp and /dev/shm together",
            "HOME is kept on the host's disk and not bounded",
        );
    }
    let own = ["/tmp", "/var/tmp", HOME];
    if request.write.iter().any(|place| own.iter().any(|own| Path::new(own) == place.path)) {
        return Intent::partial(
            "tmpfs size",
            "a granted directory takes the place of a bounded one",
        );
    }
    Intent::enforce("tmpfs size for /tmp, /dev/shm and HOME together")
}

fn asked<T>(limit: Option<T>, by: &str) -> Intent {
    match limit {
        None => Intent::NotRequested,
        Some(_) => Intent::enforce(by),
    }
}

/// Where a /proc of the sandbox's own cannot be mounted (a container masks parts of it), the host's
/// is shown if Landlock closes what is inside other processes, and none at all otherwise.
fn process_isolation(facts: &LinuxFacts) -> Intent {
    let by = "pid and ipc namespaces";
    match (&facts.own_proc, view::proc_view(facts)) {
        (Fact::Fails { why }, ProcView::Host) => Intent::partial(
            format!("{by}; memory, environment and files of others closed by Landlock"),
            format!(
                "a /proc of its own cannot be mounted here ({why}), and in the host's the names, \
                 command lines and states of its processes and its network connections can be read"
            ),
        ),
        (Fact::Fails { why }, ProcView::Empty) => Intent::enforce(format!(
            "{by}; /proc is empty, because none of its own can be mounted here ({why})"
        )),
        _ => Intent::enforce(by),
    }
}

fn kernel_at_least(release: &str, major: u32, minor: u32) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(have_major)), Some(Ok(have_minor))) => (have_major, have_minor) >= (major, minor),
        _ => false,
    }
}

mod plain;

#[cfg(target_os = "linux")]
pub use plain::texts as plain_texts;

pub mod network;
pub mod proxied;

#[cfg(test)]
pub mod arbitrary;
#[cfg(test)]
mod properties;
#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod tests;
