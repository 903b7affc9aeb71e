//! The plan for hosts that refuse user namespaces or a root of its own: Landlock, a stricter system
//! call filter, rlimits and a supervisor that collects the tree.
//!
//! Stops: opening, listing, executing, making, moving and removing anything that is not part of the
//! system, shown or granted; every socket, or every one but those to the launcher's proxy; signals and traces to processes outside; changes of mode,
//! owner, times and extended attributes outside writable places. Needs Landlock (Linux 5.13).
//!
//! Leaves open, and says so: the host's names are seen (stat, the list of processes with their command
//! lines, /proc/net), the private directories are on the host's disk and not bounded in size,
//! and a tree whose launcher and supervisor are killed in the same instant lives on.

use std::path::{Path, PathBuf};

use mcp_policy::{NetworkMode, Subprocess};

use super::limits::{self, NprocScope};
use super::{filter, filter_arch, numbered, proxied, terminal};
use crate::core::control::Control;
use crate::core::host::{Fact, Ids};
use crate::core::plan::{Intent, Intents};
use crate::core::request::{HOME, Home, Place, PlaceKind, Request, Stdio};
use crate::core::rlimit::Resource;
use crate::linux::cgroup;
use crate::linux::facts::{EntryKind, LinuxFacts};
use crate::linux::landlock::{Allowed, Ports, Rule};
use crate::linux::phases::{InitPhase, Isolation, LinuxPlan, Numbers, TargetPhase};
use crate::linux::step::{self, Descriptors, Execute, Landlock, Limit, PrivateDirectories};
use mcp_seccomp::{Ground, Sockets, SyscallProxy};

/// Pieces of the system that a private root has texts of its own for.
#[cfg(target_os = "linux")]
const TEXTS: [&str; 6] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
    "/etc/protocols",
    "/etc/services",
    "/etc/nsswitch.conf",
];

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Unix sockets by path are refused by Landlock from this version on.
const UNIX_SOCKETS_FROM: u32 = 9;

/// Why there is no plan with namespaces on this host; `None` where there is.
pub fn reason(facts: &LinuxFacts) -> Option<String> {
    match (&facts.namespaces, &facts.private_root) {
        (Fact::Fails { why }, _) => Some(format!("this host refuses user namespaces ({why})")),
        (_, Fact::Fails { why }) => Some(format!("this host refuses a private root ({why})")),
        _ => None,
    }
}

pub fn plan(request: &Request, facts: &LinuxFacts, controls: Intents) -> LinuxPlan {
    let numbers = &mut Numbers::default();
    let places = PlainPaths::of(request, facts);
    let owner = facts.caller.is_root().then_some(facts.stand_in).flatten();
    let asked = if facts.listener.usable() { SyscallProxy::Asked } else { SyscallProxy::None };
    let is_proxied = proxied::sockets(request, facts) == Sockets::Proxied;
    let is_answered = asked == SyscallProxy::Asked && filter_arch(facts).is_ok();
    LinuxPlan {
        controls,
        cgroup: limits::cgroup(request, facts, numbers),
        namespaces: None,
        watches: limits::watches(request, facts, numbers),
        connection_relay: is_proxied
            .then(|| numbers.step(proxied::connection_relay(request), &[Control::Network])),
        syscall_proxy: is_answered.then(|| {
            let step = step::SyscallProxy { user: owner };
            numbers.step(step, &[Control::Filesystem, Control::Privileges])
        }),
        init: init(request, facts, &places, owner, numbers),
        target: target(request, facts, &places, asked, numbers),
    }
}

fn init(
    request: &Request,
    facts: &LinuxFacts,
    places: &PlainPaths,
    owner: Option<Ids>,
    numbers: &mut Numbers,
) -> InitPhase {
    let directories = PrivateDirectories {
        at: facts.run_directory.clone(),
        home: places.home.clone(),
        tmp: places.tmp.clone(),
        owner,
    };
    let isolation = Isolation::Plain {
        subreaper: numbers.step((), &[Control::TreeKill]),
        directories: numbers.step(directories, &[Control::Filesystem]),
        user: owner.map(|ids| numbers.step(ids, &[Control::Privileges])),
    };
    InitPhase {
        cgroup_root: None,
        isolation,
        hide_memory: numbers.step((), &[Control::ProcessIsolation, Control::Environment]),
        new_session: numbers.step((), &[Control::ProcessIsolation]),
        new_keyring: numbers.step((), &[Control::ProcessIsolation]),
        forbid_namespaces: None,
        hostname: None,
        network: None,
        reopened: Vec::new(),
        root: None,
        terminal: terminal(request, numbers),
        drop_privileges: numbers.step((), &[Control::Privileges]),
    }
}

fn target(
    request: &Request,
    facts: &LinuxFacts,
    places: &PlainPaths,
    syscall_proxy: SyscallProxy,
    numbers: &mut Numbers,
) -> TargetPhase {
    let isolated = request.policy.network.mode.value == NetworkMode::Isolated;
    let sockets = match isolated {
        true => proxied::sockets(request, facts),
        false if facts.landlock_abi >= UNIX_SOCKETS_FROM => Sockets::All,
        false => Sockets::Internet,
    };
    let landlock = (facts.landlock_abi > 0).then(|| Landlock {
        abi: facts.landlock_abi,
        rules: places.rules(request, facts),
        ports: if isolated { Ports::Closed } else { Ports::Open },
    });
    // The filter opens a descriptor for its listener, of which the command may have few.
    let limits = limits::rlimits(request, facts, NprocScope::OfTheUser).into_iter();
    let (late, limits): (Vec<_>, Vec<_>) = limits
        .partition(|(limit, _)| matches!(limit, Limit::To { resource: Resource::OpenFiles, .. }));
    // Landlock lets a file on a standard descriptor be opened again only as it was given.
    let stdio = request.stdio.clone().map(|kind| match kind {
        Stdio::ReadOnlyFile(_) => Stdio::Direct,
        other => other,
    });
    let ground = Ground::Plain { landlock: facts.landlock_abi, syscall_proxy };
    let execute = Execute { program: request.program.clone(), cwd: places.inside(&request.cwd) };
    TargetPhase {
        landlock: landlock.map(|landlock| numbers.step(landlock, &LANDLOCK_HOLDS)),
        limits: numbered(limits, numbers),
        descriptors: numbers.step(Descriptors { stdio }, &[Control::Descriptors]),
        filter: filter(request, facts, sockets, ground, numbers),
        late_limits: numbered(late, numbers),
        execute: numbers.step(execute, &[Control::Environment]),
    }
}

/// The controls that rest on Landlock here.
const LANDLOCK_HOLDS: [Control; 5] = [
    Control::Filesystem,
    Control::Deny,
    Control::ProcessIsolation,
    Control::Environment,
    Control::Descriptors,
];

/// Where things are that a private root has at paths of its own.
struct PlainPaths {
    home: PathBuf,
    tmp: PathBuf,
}

impl PlainPaths {
    fn of(request: &Request, facts: &LinuxFacts) -> PlainPaths {
        let home = match &request.home {
            Home::Ephemeral => facts.run_directory.join("home"),
            Home::Kept(path) => path.clone(),
        };
        PlainPaths { home, tmp: facts.run_directory.join("tmp") }
    }

    /// The host path of what a request calls by its path in a private root.
    fn inside(&self, path: &Path) -> PathBuf {
        if let Ok(below) = path.strip_prefix(HOME) {
            return joined(&self.home, below);
        }
        let own_tmp = ["/tmp", "/var/tmp"].iter().any(|own| path == Path::new(own));
        if own_tmp { self.tmp.clone() } else { path.to_owned() }
    }

    /// One rule for each place; none for what lies above them.
    fn rules(&self, request: &Request, facts: &LinuxFacts) -> Vec<Rule> {
        let mut rules = Vec::new();
        for entry in &facts.entries {
            let kind = match entry.kind {
                EntryKind::Directory => PlaceKind::Directory,
                EntryKind::File => PlaceKind::File,
                // What it leads to counts, and has an entry of its own where it is shown.
                EntryKind::Symlink(_) => continue,
            };
            rules.push(Rule { path: entry.path.clone(), kind, allowed: Allowed::Read });
        }
        let file = |path: &str, allowed| Rule { path: path.into(), kind: PlaceKind::File, allowed };
        rules.extend(facts.texts.iter().map(|path| Rule {
            path: path.clone(),
            kind: PlaceKind::File,
            allowed: Allowed::Read,
        }));
        rules.extend(DEVICES.map(|path| file(path, Allowed::Devices)));
        if request.stdio.contains(&Stdio::Terminal) {
            rules.push(file("/dev/tty", Allowed::Devices));
        }
        rules.push(Rule::beneath("/proc", Allowed::Read));
        rules.push(Rule::beneath(&self.home, Allowed::Write));
        rules.push(Rule::beneath(&self.tmp, Allowed::Write));
        let mut granted: Vec<Rule> = Vec::new();
        let mut grant = |places: &[Place], allowed| {
            granted.extend(places.iter().map(|Place { path, kind }| Rule {
                path: path.clone(),
                kind: *kind,
                allowed,
            }));
        };
        grant(&request.shown, Allowed::Read);
        grant(&request.read, Allowed::Read);
        grant(&request.write, Allowed::Write);
        granted.sort_by(|a, b| (&a.path, a.allowed as u8).cmp(&(&b.path, b.allowed as u8)));
        rules.extend(granted);
        let mut once: Vec<Rule> = Vec::new();
        for rule in rules {
            if !once.contains(&rule) {
                once.push(rule);
            }
        }
        once
    }
}

fn joined(base: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { base.to_owned() } else { base.join(below) }
}

/// What differs from the plan with namespaces; `None` for what does not.
pub fn intent(
    control: Control,
    request: &Request,
    facts: &LinuxFacts,
    why: &str,
) -> Option<Intent> {
    let asked = &request.policy.limits;
    let walls = walls(facts, why);
    Some(match control {
        Control::Filesystem => match walls {
            Err(none) => none,
            Ok(abi) => Intent::partial(
                format!("Landlock version {abi} and a system call filter, because {why}"),
                filesystem_gaps(facts),
            ),
        },
        Control::Deny => deny(request, walls),
        Control::Protect if request.protects() => Intent::unavailable(
            format!("{why}, and Landlock cannot close a part of a writable directory"),
            "allow user namespaces (`mcp doctor` names the setting), or do without (--no-protect)",
        ),
        Control::Network => network(request, facts)?,
        Control::Subprocess => subprocess(request, facts)?,
        Control::ProcessIsolation => match walls {
            Err(none) => none,
            Ok(abi) if abi < 6 && !facts.listener.usable() => Intent::partial(
                "Landlock: memory, environment and files of processes outside",
                "signals reach whatever the sandbox around this one lets them; names, command \
                 lines and states of processes can be read in /proc",
            ),
            Ok(abi) => Intent::partial(
                match abi {
                    6.. => "Landlock: signals, memory, environment and files of processes outside",
                    _ => {
                        "Landlock: memory, environment and files of processes outside; the \
                         syscall_proxy: signals"
                    }
                },
                "names, command lines and states of the host's processes and its network \
                 connections can be read in /proc",
            ),
        },
        Control::Privileges => privileges(facts)?,
        Control::Environment => match walls {
            Err(none) => none,
            Ok(_) => return None,
        },
        Control::Descriptors => match walls {
            Err(_) => Intent::partial(
                "close_range, and 0-2 checked by kind",
                "a file on a standard descriptor can be opened again for more than it was given for",
            ),
            Ok(_) => return None,
        },
        Control::TreeKill => Intent::partial(
            "a supervisor that all orphans of the tree come to, and that ends them with the \
             command and with the launcher",
            "if launcher and supervisor are killed in the same instant, the tree lives on",
        ),
        Control::Processes if facts.cgroup.has(cgroup::limits::PIDS) => return None,
        Control::Processes if asked.processes.value.is_some() && limits::is_unbound(facts) => {
            Intent::partial("RLIMIT_NPROC", limits::UNBOUND)
        }
        Control::Processes if asked.processes.value.is_some() => Intent::partial(
            "RLIMIT_NPROC: this many more than the user has at the start",
            "it counts the user's processes outside as well",
        ),
        Control::TmpSize => Intent::unavailable(
            "HOME and TMPDIR are directories on the host's disk",
            "bound single files with --max-file-size",
        ),
        Control::Timeout if asked.timeout.value.is_some() => {
            Intent::enforce("the launcher has the supervisor end the tree")
        }
        _ => return None,
    })
}

/// The version of Landlock that stands around files and processes, together with the filter.
fn walls(facts: &LinuxFacts, why: &str) -> Result<u32, Intent> {
    let missing = match (facts.landlock_abi, filter_arch(facts)) {
        (0, _) => "Landlock is missing as well".to_owned(),
        (_, Err(no_filter)) => no_filter,
        (abi, Ok(_)) => return Ok(abi),
    };
    Err(Intent::unavailable(
        format!("{why}, and {missing}"),
        "allow user namespaces for this program (`mcp doctor` names the setting), or boot a kernel \
         with Landlock (lsm=…,landlock)",
    ))
}

fn filesystem_gaps(facts: &LinuxFacts) -> String {
    let mut gaps = "whether a path exists, its size, mode, owner and times, and where a symlink \
                    leads can be asked for everywhere on the host; HOME and TMPDIR are on the \
                    host's disk, and /tmp and /dev/shm are closed"
        .to_owned();
    if !facts.listener.usable() {
        gaps += "; modes, owners and times of files cannot be changed at all, because another \
                 sandbox around this one answers for them";
    }
    if facts.landlock_abi < 2 {
        gaps += "; Landlock version 1 refuses to move files between directories";
    }
    if facts.caller.is_root() {
        gaps += "; files that only root may use stay closed, granted or not";
    }
    gaps
}

/// Landlock can only allow: a hole in a granted directory cannot be made.
fn deny(request: &Request, walls: Result<u32, Intent>) -> Intent {
    if request.policy.filesystem.deny.is_empty() {
        return Intent::NotRequested;
    }
    if let Err(none) = walls {
        return none;
    }
    if request.denied.iter().all(|denied| is_outside(&denied.path, request)) {
        return Intent::enforce(
            "nothing that is granted or shown matched at the start; not covered: what comes to \
             match later",
        );
    }
    Intent::unavailable(
        "without user namespaces a part of a granted directory cannot be closed",
        "grant the other parts of it one by one instead, or allow user namespaces",
    )
}

fn is_outside(denied: &Path, request: &Request) -> bool {
    let kept = match &request.home {
        Home::Kept(path) => Some(path.as_path()),
        Home::Ephemeral => None,
    };
    let places = request.shown.iter().chain(&request.read).chain(&request.write);
    let mut places = places.map(|place| place.path.as_path()).chain(kept);
    let system = ["/usr", "/bin", "/sbin", "/lib", "/etc"].map(Path::new);
    !places.any(|place| denied.starts_with(place) || place.starts_with(denied))
        && !system.iter().any(|system| denied.starts_with(system))
}

fn network(request: &Request, facts: &LinuxFacts) -> Option<Intent> {
    let network = &request.policy.network;
    if network.mode.value == NetworkMode::Host {
        return None;
    }
    if let Err(why) = filter_arch(facts) {
        return Some(Intent::unavailable(
            format!("without a network namespace sockets must be refused, and {why}"),
            "allow user namespaces for this program; `mcp doctor` names the setting",
        ));
    }
    Some(proxied::intent(request, facts, "there are no namespaces here"))
}

/// Who is asked about new processes is who listens, and a task has one listener.
fn subprocess(request: &Request, facts: &LinuxFacts) -> Option<Intent> {
    let is_refused = request.policy.process.subprocess.value == Subprocess::Refused;
    match (&facts.listener, is_refused) {
        (Fact::Fails { why }, true) => Some(Intent::unavailable(
            format!(
                "no filter that asks the launcher can be set here ({why}); another sandbox around this one may have one already"
            ),
            "give --no-subprocess to the outer sandbox",
        )),
        _ => None,
    }
}

fn privileges(facts: &LinuxFacts) -> Option<Intent> {
    if facts.caller.is_root() && facts.stand_in.is_none() {
        return Some(Intent::unavailable(
            "root cannot become an ordinary user here (CAP_SETUID and CAP_SETGID are missing)",
            "start it as an ordinary user",
        ));
    }
    None
}

#[cfg(target_os = "linux")]
pub fn texts() -> impl Iterator<Item = &'static str> {
    TEXTS.into_iter()
}
