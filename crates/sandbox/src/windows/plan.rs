//! Request and facts → the steps of a Windows run and what each control rests on.
//!
//! Pure: no system call in here. An AppContainer is the boundary around files, network and processes
//! (Windows 8 and later). Where there is none, the boundaries are unavailable, and a run that is started all the
//! same (`--fallback warn`) has its job, its limits and nothing more: a restricted token does not limit reading.

use std::path::{Path, PathBuf};

use mcp_policy::{NetworkMode, Subprocess};

use crate::core::control::Control;
use crate::core::host::Fact;
use crate::core::plan::{Intent, Plan, Planned};
use crate::core::request::{HOME, Home, Request};
use crate::identity;
use crate::windows::access::{Access, Grant, needed, parsed};
use crate::windows::environment;
use crate::windows::exclusion::Exclusion;
use crate::windows::exclusion_plan;
use crate::windows::facts::WindowsFacts;
use crate::windows::job::{CpuRate, JobLimits};
use crate::windows::lasting;
use crate::windows::network;
use crate::windows::step::{Act, ContainerNetwork, Integrity, Step};

pub fn plan(request: &Request, facts: &WindowsFacts) -> Plan<Step> {
    let mut steps = Steps::default();
    let limits = &request.policy.limits;
    steps.push(Step::RunDirectory { at: facts.scratch.clone() }, &[Control::Filesystem]);
    for (path, text) in identity::home_texts(request) {
        if let Ok(at) = facts.home().join(&path.to_string_lossy()) {
            steps.push(Step::Text { at, text: text.to_owned() }, &[]);
        }
    }
    job(request, facts, &mut steps);
    if facts.ui.usable() {
        steps.push(Step::Ui, &[Control::ProcessIsolation]);
    }
    if let Some(after) = limits.timeout.value {
        steps.push(Step::Timeout { after, grace: limits.grace.value }, &[Control::Timeout]);
    }
    if facts.token.usable() {
        let integrity =
            if facts.container.usable() { Integrity::Low } else { Integrity::Unchanged };
        steps.push(Step::Token { integrity }, &[Control::Privileges]);
    }
    if facts.container.usable() {
        container(request, facts, &mut steps);
    }
    let has_relay = network::has_relay(request, facts);
    let listen_relays = network::listen_relays(request, facts);
    if has_relay {
        steps.push(Step::Relay, &[Control::Network]);
    }
    for port in &listen_relays {
        steps.push(Step::ListenRelay { port: *port }, &[Control::Network]);
    }
    steps.push(Step::Mitigations, &[]);
    let stdio = request.stdio.clone();
    steps.push(Step::Handles { stdio }, &[Control::Descriptors]);
    checks(request, facts, &mut steps);
    if has_relay {
        steps.push(Step::Reached, &[Control::Network]);
    }
    for port in listen_relays {
        steps.push(Step::Served { port }, &[Control::Network]);
    }
    let set = environment::variables(request, facts);
    steps.push(Step::Environment { set }, &[Control::Environment]);
    let (program, cwd) = (request.program.clone(), start_directory(request, facts));
    steps.push(Step::Execute { program, cwd }, &[Control::Environment, Control::TreeKill]);
    let each = |control| (control, intent(control, request, facts));
    Plan { controls: Control::ALL.into_iter().map(each).collect(), steps: steps.0 }
}

#[derive(Default)]
struct Steps(Vec<Planned<Step>>);

impl Steps {
    fn push(&mut self, step: Step, for_controls: &[Control]) {
        self.0.push(Planned { step, for_controls: for_controls.to_vec() });
    }
}

fn job(request: &Request, facts: &WindowsFacts, steps: &mut Steps) {
    let limits = match facts.limits.usable() {
        true => JobLimits::of(&request.policy),
        false => JobLimits::default(),
    };
    let held = [
        (true, Control::TreeKill),
        (limits.memory.is_some(), Control::Memory),
        (limits.processes.is_some(), Control::Processes),
        (limits.user_time.is_some(), Control::CpuTime),
    ];
    let held: Vec<_> = held.into_iter().filter(|(is, _)| *is).map(|(_, control)| control).collect();
    steps.push(Step::Job { limits }, &held);
    let cores = request.policy.limits.cpu.value.filter(|_| facts.cpu_rate.usable());
    if let Some(rate) = cores.and_then(|cores| CpuRate::of(cores, facts.processors)) {
        steps.push(Step::CpuRate { rate }, &[Control::Cpu]);
    }
}

/// Every control that the container is for, and that was asked for.
fn held_by_container(request: &Request) -> Vec<Control> {
    let mut held = vec![Control::Filesystem, Control::ProcessIsolation, Control::Privileges];
    if request.policy.network.mode.value == NetworkMode::Isolated {
        held.push(Control::Network);
    }
    if request.policy.process.subprocess.value == Subprocess::Refused {
        held.push(Control::Subprocess);
    }
    if !request.policy.filesystem.deny.is_empty() {
        held.push(Control::Deny);
    }
    if request.protects() {
        held.push(Control::Protect);
    }
    held
}

fn container(request: &Request, facts: &WindowsFacts, steps: &mut Steps) {
    let network = match request.policy.network.mode.value {
        NetworkMode::Isolated => ContainerNetwork::Nothing,
        NetworkMode::Host => ContainerNetwork::Host,
    };
    let profile = facts.profile();
    steps.push(Step::Container { profile, network }, &held_by_container(request));
    steps.push(Step::Desktop, &[Control::ProcessIsolation]);
    for (exclusion, control) in exclusion_plan::exclusions(request).0 {
        steps.push(Step::Exclusion { exclusion }, &[control]);
    }
    let exclusions: Vec<Exclusion> =
        exclusion_plan::exclusions(request).0.into_iter().map(|(exclusion, _)| exclusion).collect();
    for grant in needed(grants(request, facts).0, |path| facts.is_readable(path)) {
        let step = match lasting::is_lasting(&grant, request, facts, &exclusions) {
            true => Step::LastingGrant { path: grant.path },
            false => Step::Grant { grant },
        };
        steps.push(step, &[Control::Filesystem]);
    }
    if request.policy.process.subprocess.value == Subprocess::Refused {
        steps.push(Step::NoChildren, &[Control::Subprocess]);
    }
}

/// What the container is to get at, and the paths that cannot be granted, each with why.
fn grants(request: &Request, facts: &WindowsFacts) -> (Vec<Grant>, Vec<String>) {
    let mut grants = vec![
        Grant { path: facts.helper.clone(), access: Access::Read },
        Grant { path: facts.temporary(), access: Access::Write },
    ];
    let mut refused = Vec::new();
    let read = request.shown.iter().chain(&request.read).map(|place| (&place.path, Access::Read));
    let write = request.write.iter().map(|place| (&place.path, Access::Write));
    let kept = match &request.home {
        Home::Ephemeral => {
            grants.push(Grant { path: facts.home(), access: Access::Write });
            None
        }
        Home::Kept(path) => Some((path, Access::Write)),
    };
    for (path, access) in read.chain(write).chain(kept) {
        match parsed(path) {
            Ok(path) => grants.push(Grant { path, access }),
            Err(why) => refused.push(format!("{} {why}", path.display())),
        }
    }
    (grants, refused)
}

/// What the helper tries before the command is started. Confinement that were accepted and do nothing are found
/// out here.
fn checks(request: &Request, facts: &WindowsFacts, steps: &mut Steps) {
    let mut check = |act: Act, control: Control| steps.push(Step::Refused { act }, &[control]);
    check(Act::Inherit, Control::Descriptors);
    let may_spawn = request.policy.process.subprocess.value == Subprocess::Allowed;
    if may_spawn && request.policy.limits.processes.value != Some(1) {
        check(Act::BreakAway, Control::TreeKill);
    }
    if !facts.container.usable() {
        return;
    }
    check(Act::Read { path: facts.canary() }, Control::Filesystem);
    check(Act::Create { path: facts.own("created") }, Control::Filesystem);
    if request.policy.network.mode.value == NetworkMode::Isolated {
        check(Act::Connect, Control::Network);
    }
    check(Act::OpenLauncher, Control::ProcessIsolation);
    for (exclusion, control) in exclusion_plan::exclusions(request).0 {
        check(exclusion_plan::act(&exclusion), control);
    }
    if !may_spawn {
        check(Act::Spawn, Control::Subprocess);
    }
    steps.push(Step::Allowed { directory: facts.temporary() }, &[Control::Filesystem]);
    steps.push(Step::Identity, &[Control::Privileges]);
}

/// A request means by HOME that of the command.
fn start_directory(request: &Request, facts: &WindowsFacts) -> String {
    let cwd = request.cwd.to_string_lossy();
    match cwd.strip_prefix(HOME) {
        Some(rest) => environment::home(request, facts) + &rest.replace('/', "\\"),
        None => cwd.trim_start_matches(r"\\?\").to_owned(),
    }
}

fn intent(control: Control, request: &Request, facts: &WindowsFacts) -> Intent {
    let intent = wanted(control, request, facts);
    match (&facts.container, &intent) {
        (_, Intent::NotRequested) => intent,
        (Fact::Fails { why }, _) if control.rests_on_confinement() => Intent::unavailable(
            format!("there is no AppContainer for this run ({why})"),
            "`mcp doctor` says more",
        ),
        _ => intent,
    }
}

fn wanted(control: Control, request: &Request, facts: &WindowsFacts) -> Intent {
    let limits = &request.policy.limits;
    match control {
        Control::Filesystem => filesystem(request, facts),
        Control::Deny => exclusion_plan::deny_intent(request),
        Control::Protect => exclusion_plan::protect_intent(request),
        Control::Network => network::intent(request, facts),
        Control::Subprocess => match request.policy.process.subprocess.value {
            Subprocess::Allowed => Intent::NotRequested,
            Subprocess::Refused => Intent::enforce(
                "child process policy in the AppContainer, and a job of one process",
            ),
        },
        Control::ProcessIsolation => process_isolation(facts),
        Control::Privileges => match &facts.token {
            Fact::Fails { why } => Intent::partial(
                "AppContainer",
                format!("privileges of the caller are not taken away ({why})"),
            ),
            _ => Intent::enforce(
                "restricted token in an AppContainer: no privileges, administrators' groups deny only, low \
                 integrity",
            ),
        },
        Control::Environment => Intent::enforce("an environment made from the policy alone"),
        Control::Descriptors => Intent::enforce("handle list: the standard three, checked by kind"),
        Control::TreeKill => match &facts.tree_kill {
            Fact::Fails { why } => Intent::unavailable(why.clone(), "use another machine"),
            _ => Intent::enforce("job object that dies with its last handle; no breakaway"),
        },
        Control::Memory => limited(limits.memory.value, &facts.limits, || {
            Intent::enforce("job object: committed memory of the whole tree")
        }),
        Control::Processes => limited(limits.processes.value, &facts.limits, || {
            Intent::enforce("job object: active processes of the whole tree")
        }),
        Control::CpuTime => limited(limits.cpu_time.value, &facts.limits, || {
            Intent::partial("job object", "only user time is counted, not time in the system")
        }),
        Control::Cpu => match limits.cpu.value.map(|cores| CpuRate::of(cores, facts.processors)) {
            None => Intent::NotRequested,
            Some(None) => Intent::NotRequested,
            Some(rate) => limited(rate, &facts.cpu_rate, || {
                Intent::enforce("job object: hard cap on the share of all processors")
            }),
        },
        Control::Io => missing(
            limits.io.value,
            "Windows has no rate for the disk any more (it was withdrawn with version 1607)",
            "leave it out",
        ),
        Control::OpenFiles => missing(
            limits.open_files.value,
            "Windows has no limit on the handles of a process",
            "bound memory with --max-memory",
        ),
        Control::FileSize => missing(
            limits.file_size.value,
            "Windows has no limit on the size of a file",
            "leave it out",
        ),
        Control::TmpSize => Intent::unavailable(
            "TEMP and HOME are on the disk: Windows has no temporary file system with a size",
            "leave it out",
        ),
        Control::AddressSpace => missing(
            limits.address_space.value,
            "Windows has no limit on address space",
            "bound memory with --max-memory",
        ),
        Control::Timeout => match limits.timeout.value {
            None => Intent::NotRequested,
            Some(_) => Intent::enforce("the launcher ends the job"),
        },
    }
}

fn filesystem(request: &Request, facts: &WindowsFacts) -> Intent {
    let (_, refused) = grants(request, facts);
    match refused.is_empty() {
        true => Intent::enforce(
            "AppContainer of this run alone: entries on what is granted, withdrawn afterwards; those on directories of \
             programs and packages stay, for a capability that only runs have which show them",
        ),
        false => Intent::unavailable(
            format!("cannot be granted: {}", refused.join("; ")),
            "name directories on a local drive",
        ),
    }
}

fn process_isolation(facts: &WindowsFacts) -> Intent {
    let by = "AppContainer: processes of others cannot be opened";
    let names = "names and numbers of processes can be listed";
    match &facts.ui {
        Fact::Fails { why } => Intent::partial(
            by,
            format!("{names}; windows and clipboard are not restricted ({why})"),
        ),
        _ => Intent::partial(
            format!(
                "{by}; clipboard, desktop and system parameters restricted, window handles and global atoms not; a desktop of \
                 its own, where programs start on it"
            ),
            names,
        ),
    }
}

fn limited<T>(limit: Option<T>, fact: &Fact, held: impl Fn() -> Intent) -> Intent {
    match (limit, fact) {
        (None, _) => Intent::NotRequested,
        (_, Fact::Fails { why }) => Intent::unavailable(
            format!("this system does not keep limits of job objects ({why})"),
            "bound the time with --timeout",
        ),
        _ => held(),
    }
}

fn missing<T>(limit: Option<T>, why: &str, remedy: &str) -> Intent {
    match limit {
        None => Intent::NotRequested,
        Some(_) => Intent::unavailable(why, remedy),
    }
}

/// Whether a host path can be reached inside, at the same place.
pub fn is_visible(path: &Path, request: &Request, facts: &WindowsFacts) -> bool {
    if !facts.container.usable() {
        return true;
    }
    let Ok(path) = parsed(path) else { return false };
    let is_granted = |grant: &Grant| path.is_within(&grant.path);
    facts.is_readable(&path) || grants(request, facts).0.iter().any(is_granted)
}

/// For a request made elsewhere.
pub fn local(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let at = text.char_indices().rev().map(|(at, _)| at).find(|at| {
        let rest = text.as_bytes().get(*at..).unwrap_or_default();
        let starts = *at == 0 || text.as_bytes().get(at - 1) == Some(&b'/');
        starts && rest.len() >= 3 && rest[0].is_ascii_alphabetic() && rest[1] == b':'
    });
    match at.and_then(|at| text.get(at..)) {
        Some(drive) => PathBuf::from(drive.replace('/', "\\")),
        None => PathBuf::from(format!("C:{}", text.replace('/', "\\"))),
    }
}

#[cfg(test)]
pub(super) mod tests;
