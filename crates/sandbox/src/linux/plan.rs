//! Request and host facts → the steps of a Linux run and what each control rests on.
//!
//! Pure: no system call in here. This is the plan with user namespaces and a root of its own; a
//! host that refuses them gets the one of `plain`.

mod landlock;
mod limits;

use std::path::Path;

use mcp_policy::{NetworkMode, Subprocess};

use self::limits::NprocScope;
use crate::core::control::Control;
use crate::core::host::{Caller, Fact};
use crate::core::plan::{Intent, Intents};
use crate::core::request::{HOME, Home, Request, Stdio};
use crate::core::rlimit::Resource;
use crate::core::watched;
use crate::linux::deny::Closing;
use crate::linux::facts::LinuxFacts;
use crate::linux::phases::{
    Bare, ClosedStep, InitPhase, Isolation, LinuxPlan, NetworkPhase, Numbers, RootPhase,
    TargetPhase,
};
#[cfg(target_os = "linux")]
use crate::linux::step::Step;
use crate::linux::step::{
    ConnectionRelay, Descriptors, Execute, Filter, Hostname, Limit, MapIds, Namespaces,
    NetworkNamespace, NewRoot, Numbered, Placed, ProcView, Reopen,
};
use crate::linux::well_known::{ROOT_BECOMES, ROOT_BECOMES_OUTSIDE};
use crate::linux::{deny, protect, view};
use mcp_seccomp::{Arch, Connects, Ground, NewProcesses, Sockets, Watching};

/// Whether two plans differ in nothing that matters, so that the second would fail as well: in the cgroup, whose
/// name is new each time.
#[cfg(target_os = "linux")]
pub fn same_walls(plan: &LinuxPlan, other: &LinuxPlan) -> bool {
    fn walls(plan: &LinuxPlan) -> Vec<Step<'_>> {
        let steps = plan.steps().into_iter().map(|listed| listed.step);
        let of_cgroup = |step: &Step<'_>| {
            matches!(step, Step::SetCgroup(_) | Step::EnterCgroup(_) | Step::CgroupRoot)
        };
        steps.filter(|step| !of_cgroup(step)).collect()
    }
    walls(plan) == walls(other)
}

pub fn plan(request: &Request, facts: &LinuxFacts) -> LinuxPlan {
    let controls = controls(request, facts);
    match plain::reason(facts) {
        Some(_) => plain::plan(request, facts, controls),
        None => namespaced(request, facts, controls),
    }
}

fn namespaced(request: &Request, facts: &LinuxFacts, controls: Intents) -> LinuxPlan {
    let numbers = &mut Numbers::default();
    let network = match request.policy.network.mode.value {
        NetworkMode::Isolated if facts.network_namespace.usable() => NetworkNamespace::Own,
        NetworkMode::Isolated | NetworkMode::Host => NetworkNamespace::Host,
    };
    let mut rests = vec![Control::Filesystem, Control::ProcessIsolation, Control::TreeKill];
    if network == NetworkNamespace::Own {
        rests.push(Control::Network);
    }
    let cgroup = limits::cgroup(request, facts, numbers);
    let namespaces = numbers.step(Namespaces { network }, &rests);
    let watches = limits::watches(request, facts, numbers);
    let connection_relay = connection_relay(request, facts, network);
    let connection_relay = connection_relay
        .map(|connection_relay| numbers.step(connection_relay, &[Control::Network]));
    let cgroup_root = cgroup.as_ref().map(|_| numbers.step((), &[Control::Memory]));
    let init = init(request, facts, network, cgroup_root, numbers);
    let placed = init.root.as_ref().map_or(&[][..], |root| &root.placed);
    let target = target(request, facts, network, placed, numbers);
    let namespaces = Some(namespaces);
    LinuxPlan {
        controls,
        cgroup,
        namespaces,
        watches,
        connection_relay,
        syscall_proxy: None,
        init,
        target,
    }
}

fn connection_relay(
    request: &Request,
    facts: &LinuxFacts,
    network: NetworkNamespace,
) -> Option<ConnectionRelay> {
    match network {
        NetworkNamespace::Own if network::is_open(request) => {
            let allowed = &request.policy.network;
            let listen = allowed.listen.iter().map(|port| port.value).collect();
            Some(ConnectionRelay::Broker { rules: allowed.allow.len(), listen })
        }
        NetworkNamespace::Host if proxied::sockets(request, facts) == Sockets::Proxied => {
            Some(proxied::connection_relay(request))
        }
        NetworkNamespace::Own | NetworkNamespace::Host => None,
    }
}

fn init(
    request: &Request,
    facts: &LinuxFacts,
    network: NetworkNamespace,
    cgroup_root: Option<Bare>,
    numbers: &mut Numbers,
) -> InitPhase {
    let ids = mapped_ids(facts);
    let isolation = Isolation::Namespaces {
        ids: numbers.step(ids, &[Control::Privileges]),
        die_with_launcher: numbers.step((), &[Control::TreeKill]),
    };
    InitPhase {
        cgroup_root,
        isolation,
        hide_memory: numbers.step((), &[Control::ProcessIsolation, Control::Environment]),
        new_session: numbers.step((), &[Control::ProcessIsolation]),
        new_keyring: numbers.step((), &[Control::ProcessIsolation]),
        forbid_namespaces: Some(numbers.step((), &[Control::Privileges])),
        hostname: Some(
            numbers.step(Hostname { name: view::HOSTNAME }, &[Control::ProcessIsolation]),
        ),
        network: (network == NetworkNamespace::Own).then(|| own_network(request, numbers)),
        reopened: reopened(request, numbers),
        root: Some(root(request, facts, ids, numbers)),
        terminal: terminal(request, numbers),
        drop_privileges: numbers.step((), &[Control::Privileges]),
    }
}

fn mapped_ids(facts: &LinuxFacts) -> MapIds {
    let Caller { uid, gid, invoker, .. } = facts.caller;
    let (uid, gid, outside_uid, outside_gid) = if facts.caller.is_root() {
        (ROOT_BECOMES, ROOT_BECOMES, ROOT_BECOMES_OUTSIDE, ROOT_BECOMES_OUTSIDE)
    } else if facts.caller.is_rootless() {
        // It may have no other id to give away. Outside it is an ordinary user; inside it is one as well.
        (ROOT_BECOMES, ROOT_BECOMES, uid, gid)
    } else {
        (uid, gid, uid, gid)
    };
    MapIds { uid, gid, outside_uid, outside_gid, invoker }
}

fn own_network(request: &Request, numbers: &mut Numbers) -> NetworkPhase {
    let loopback = numbers.step((), &[Control::Network]);
    let (routes, sockets) = network::inside(request);
    let routes = routes.map(|routes| numbers.step(routes, &[Control::Network]));
    NetworkPhase { loopback, routes, sockets: numbers.step(sockets, &[Control::Network]) }
}

fn reopened(request: &Request, numbers: &mut Numbers) -> Vec<Numbered<Reopen>> {
    let files = (0..).zip(&request.stdio).filter_map(|(fd, stdio)| match stdio {
        Stdio::ReadOnlyFile(path) => Some(Reopen { fd, path: path.clone() }),
        _ => None,
    });
    files.map(|file| numbers.step(file, &[Control::Descriptors])).collect()
}

fn root(request: &Request, facts: &LinuxFacts, ids: MapIds, numbers: &mut Numbers) -> RootPhase {
    let scratch = request.policy.limits.tmp_size.value;
    let new = numbers.step(NewRoot { scratch }, &[Control::Filesystem, Control::TmpSize]);
    let placed = view::steps(request, facts, ids.uid, ids.gid);
    // Before the masks: what is denied inside something protected stays denied.
    let protected = protect::closing(request, &placed);
    let denied = deny::closing(request, &placed);
    let stray_sockets = deny::stray_sockets(request, &placed);
    let placed = placed.into_iter().map(|step| {
        let rests: &[Control] = match step {
            Placed::Scratch { .. } => &[Control::Filesystem, Control::TmpSize],
            // A convenience: without it more is refused, not less.
            Placed::Layer { .. } => &[],
            Placed::Proc { .. } => &[Control::Filesystem, Control::ProcessIsolation],
            _ => &[Control::Filesystem],
        };
        numbers.step(step, rests)
    });
    RootPhase {
        new,
        placed: placed.collect(),
        protected: protected.map(|closing| closed(closing, Control::Protect, numbers)),
        denied: denied.map(|closing| closed(closing, Control::Deny, numbers)),
        stray_sockets: stray_sockets.map(|closing| closed(closing, Control::Network, numbers)),
        enter: numbers.step((), &[Control::Filesystem]),
    }
}

fn closed<T>(closing: Closing<T>, control: Control, numbers: &mut Numbers) -> ClosedStep<T> {
    let hold = closing.hold.map(|hold| numbers.step(hold, &[control]));
    ClosedStep { hold, closed: numbers.step(closing.closed, &[control]) }
}

fn terminal(request: &Request, numbers: &mut Numbers) -> Option<Bare> {
    let has = request.stdio.contains(&Stdio::Terminal);
    has.then(|| numbers.step((), &[Control::Descriptors]))
}

fn target(
    request: &Request,
    facts: &LinuxFacts,
    network: NetworkNamespace,
    placed: &[Numbered<Placed>],
    numbers: &mut Numbers,
) -> TargetPhase {
    let sockets = match (request.policy.network.mode.value, network) {
        (NetworkMode::Isolated, NetworkNamespace::Host) => proxied::sockets(request, facts),
        _ => Sockets::All,
    };
    // Before the limits: it opens descriptors, of which the command may have few.
    let landlock = landlock::behind(facts.landlock_abi, placed)
        .map(|step| numbers.step(step, &[Control::Filesystem, Control::Descriptors]));
    let execute = Execute { program: request.program.clone(), cwd: request.cwd.clone() };
    let descriptors = Descriptors { stdio: request.stdio.clone() };
    // In learning mode the listener takes a descriptor until the command is executed.
    let is_late = |limit: &Limit| {
        watching(request, facts, Ground::Namespaces) == Watching::Paths
            && matches!(limit, Limit::To { resource: Resource::OpenFiles, .. })
    };
    let (late, limits) = limits::rlimits(request, facts, NprocScope::Inside)
        .into_iter()
        .partition(|(limit, _)| is_late(limit));
    TargetPhase {
        landlock,
        limits: numbered(limits, numbers),
        descriptors: numbers.step(descriptors, &[Control::Descriptors]),
        filter: filter(request, facts, sockets, Ground::Namespaces, numbers),
        late_limits: numbered(late, numbers),
        execute: numbers.step(execute, &[Control::Environment]),
    }
}

fn numbered(limits: Vec<(Limit, Control)>, numbers: &mut Numbers) -> Vec<Numbered<Limit>> {
    limits.into_iter().map(|(limit, control)| numbers.step(limit, &[control])).collect()
}

fn filter(
    request: &Request,
    facts: &LinuxFacts,
    sockets: Sockets,
    ground: Ground,
    numbers: &mut Numbers,
) -> Option<Numbered<Filter>> {
    let arch = filter_arch(facts).ok()?;
    let connects = match sockets {
        Sockets::All if ground == Ground::Namespaces => network::connects(request),
        _ => Connects::Free,
    };
    let mut rests = vec![Control::Privileges];
    let processes = match request.policy.process.subprocess.value {
        Subprocess::Allowed => NewProcesses::Allowed,
        // No listener could let the command's own execve pass.
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
    let watching = watching(request, facts, ground);
    Some(numbers.step(Filter { arch, processes, connects, sockets, ground, watching }, &rests))
}

/// Paths are announced in learning mode, where the launcher can listen. Another sandbox around this one may have the listener.
fn watching(request: &Request, facts: &LinuxFacts, ground: Ground) -> Watching {
    let can = facts.listener.usable() && (ground == Ground::Namespaces || ground.asks());
    match request.watching {
        watched::Watching::Paths if can => Watching::Paths,
        _ => Watching::Off,
    }
}

/// The machine a filter is made for, or why there can be none.
fn filter_arch(facts: &LinuxFacts) -> Result<Arch, String> {
    if let Fact::Fails { why } = &facts.seccomp {
        return Err(format!("this host refuses system call filters ({why})"));
    }
    Arch::named(&facts.architecture)
        .ok_or_else(|| format!("there is no system call filter for {}", facts.architecture))
}

fn controls(request: &Request, facts: &LinuxFacts) -> Intents {
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
