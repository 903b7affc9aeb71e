//! Request and facts → the steps of a macOS run and what each control rests on.
//!
//! Pure: no system call in here. Where Seatbelt is not available (`sandbox-exec` is gone, or another
//! sandbox is around us already) the boundaries are unavailable, and a run that is started all the
//! same (`--fallback warn`) has its limits and its watch and nothing more.

use std::path::{Path, PathBuf};

use mcp_policy::{Bytes, Duration, NetworkMode, Subprocess};

use crate::core::control::Control;
use crate::core::host::Fact;
use crate::core::plan::{Intent, Intents, Plan, Planned};
use crate::core::request::{HOME, Request};
use crate::core::rlimit::Resource;
use crate::identity;
use crate::macos::facts::MacFacts;
use crate::macos::network::{self, Proxy};
use crate::macos::profile::{home, profile, service};
use crate::macos::step::{Act, Step};
use crate::macos::{deny, profile as seatbelt, protect};

pub fn plan(request: &Request, facts: &MacFacts) -> Plan<Step> {
    let proxy = Proxy::of(request, facts);
    let mut steps = Steps::default();
    steps.push(Step::RunDirectory { at: facts.scratch.clone() }, &[Control::Filesystem]);
    for (path, text) in identity::home_texts(request) {
        let (at, text) = (facts.home().join(path), text.to_owned());
        steps.push(Step::Text { at, text }, &[]);
    }
    watches(request, &mut steps);
    steps.push(Step::Guardian, &[Control::TreeKill]);
    for port in &proxy.ports {
        let rules = request.policy.network.allow.len();
        steps.push(Step::Proxy { port: *port, rules }, &[Control::Network]);
    }
    if facts.seatbelt.usable() {
        let profile = profile(request, facts, &proxy);
        steps.push(Step::Seatbelt { profile }, &held_by_seatbelt(request));
        if request.policy.process.subprocess.value == Subprocess::Allowed {
            let nonce = service(&facts.nonce);
            steps.push(Step::Membership { nonce }, &[Control::TreeKill]);
        }
    }
    steps.push(Step::NewSession, &[Control::ProcessIsolation, Control::TreeKill]);
    if facts.seatbelt.usable() {
        checks(request, facts, &mut steps);
    }
    limits(request, facts, &mut steps);
    let stdio = request.stdio.clone();
    steps.push(Step::Descriptors { stdio }, &[Control::Descriptors]);
    steps.push(Step::Environment { set: environment(request, facts) }, &[Control::Environment]);
    let program = request.program.clone();
    let cwd = start_directory(request, facts);
    steps.push(Step::Execute { program, cwd }, &[Control::Environment]);
    Plan { controls: controls(request, facts, &proxy), steps: steps.0 }
}

#[derive(Default)]
struct Steps(Vec<Planned<Step>>);

impl Steps {
    fn push(&mut self, step: Step, for_controls: &[Control]) {
        self.0.push(Planned { step, for_controls: for_controls.to_vec() });
    }

    fn limit(&mut self, resource: Resource, value: u64, for_controls: &[Control]) {
        self.push(Step::Limit { resource, value }, for_controls);
    }
}

/// Every control that the profile is for, and that was asked for.
fn held_by_seatbelt(request: &Request) -> Vec<Control> {
    let mut held = vec![Control::Filesystem, Control::ProcessIsolation, Control::Privileges];
    if !request.policy.filesystem.deny.is_empty() {
        held.push(Control::Deny);
    }
    if request.protects() {
        held.push(Control::Protect);
    }
    if request.policy.network.mode.value == NetworkMode::Isolated {
        held.push(Control::Network);
    }
    if request.policy.process.subprocess.value == Subprocess::Refused {
        held.extend([Control::Subprocess, Control::TreeKill]);
    }
    held
}

/// The limits that the launcher keeps itself.
fn watches(request: &Request, steps: &mut Steps) {
    let limits = &request.policy.limits;
    if let Some(after) = limits.timeout.value {
        steps.push(Step::Timeout { after, grace: limits.grace.value }, &[Control::Timeout]);
    }
    if let Some(limit) = limits.memory.value {
        steps.push(Step::WatchMemory { limit }, &[Control::Memory]);
    }
    if let Some(limit) = limits.processes.value {
        steps.push(Step::WatchProcesses { limit }, &[Control::Processes]);
    }
}

/// What the helper tries before it becomes the command. A profile that was accepted and does
/// nothing is found out here.
fn checks(request: &Request, facts: &MacFacts, steps: &mut Steps) {
    let mut check = |act: Act, control: Control| steps.push(Step::Refused { act }, &[control]);
    check(Act::Read { path: facts.canary() }, Control::Filesystem);
    check(Act::Create { path: facts.created() }, Control::Filesystem);
    if request.policy.network.mode.value == NetworkMode::Isolated {
        check(Act::Connect, Control::Network);
    }
    check(Act::Signal, Control::ProcessIsolation);
    check(Act::Inspect, Control::ProcessIsolation);
    if request.policy.process.subprocess.value == Subprocess::Refused {
        check(Act::Fork, Control::Subprocess);
        check(Act::Exec, Control::Subprocess);
    }
    check(Act::SetUserId { path: facts.temporary().join(".set-uid") }, Control::Privileges);
}

fn limits(request: &Request, facts: &MacFacts, steps: &mut Steps) {
    let limits = &request.policy.limits;
    if let Some(Bytes(limit)) = limits.memory.value {
        steps.limit(Resource::Data, limit, &[Control::Memory]);
    }
    if let Some(time) = limits.cpu_time.value {
        steps.limit(Resource::Cpu, whole_seconds(time), &[Control::CpuTime]);
    }
    if let Some(count) = limits.processes.value {
        // Counted are all processes of the user, so those that are there already come on top.
        let value = u64::from(facts.user_processes) + u64::from(count);
        steps.limit(Resource::Processes, value, &[Control::Processes]);
    }
    if let Some(count) = limits.open_files.value {
        steps.limit(Resource::OpenFiles, u64::from(count), &[Control::OpenFiles]);
    }
    if let Some(Bytes(size)) = limits.file_size.value {
        steps.limit(Resource::FileSize, size, &[Control::FileSize]);
    }
    if let (Some(Bytes(size)), true) = (limits.address_space.value, facts.address_space.usable()) {
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

/// Variables that depend on this machine and this run. What the policy sets stays, but for HOME as
/// every request has it, which stands for the run's own.
fn environment(request: &Request, facts: &MacFacts) -> Vec<(String, String)> {
    let given = |name: &str| {
        let names = request.env.iter().map(|(name, _)| name);
        names.chain(request.secrets.iter().map(|(name, _)| name)).any(|have| have == name)
    };
    let value = |name: &str| {
        let found = request.env.iter().find(|(have, _)| have == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut set = Vec::new();
    if value("HOME").is_none_or(|home| home == HOME) {
        set.push(("HOME".to_owned(), text(&home(request, facts))));
    }
    set.push(("PWD".to_owned(), text(&start_directory(request, facts))));
    if !given("TMPDIR") || value("TMPDIR").is_some() {
        set.push(("TMPDIR".to_owned(), short(&text(&facts.temporary()))));
    }
    let own = facts.rustup.iter().map(|(_, stand_ins)| stand_ins.clone());
    let added = own.chain(facts.toolchains.iter().map(|prefix| prefix.join("bin")));
    let path = value("PATH").unwrap_or_else(|| "/usr/bin:/bin:/usr/sbin:/sbin".to_owned());
    let mut directories: Vec<String> = path.split(':').map(str::to_owned).collect();
    for directory in added.map(|directory| text(&directory)) {
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    set.push(("PATH".to_owned(), directories.join(":")));
    if let (Some((rustup, _)), false) = (&facts.rustup, given("RUSTUP_HOME")) {
        set.push(("RUSTUP_HOME".to_owned(), text(rustup)));
    }
    if let (Some(developer), false) = (&facts.developer, given("DEVELOPER_DIR")) {
        set.push(("DEVELOPER_DIR".to_owned(), text(developer)));
    }
    // xcrun's cache of paths lies in a directory of the user's that is closed here.
    if !given("xcrun_nocache") {
        set.push(("xcrun_nocache".to_owned(), "1".to_owned()));
    }
    set
}

/// The same directory by its shorter name: the path of a unix socket has 103 bytes at most, and Python puts
/// `pymp-xxxxxxxx/listener-xxxxxxxx` into TMPDIR.
fn short(path: &str) -> String {
    let behind = path
        .strip_prefix("/private")
        .filter(|rest| rest.starts_with("/var/") || rest.starts_with("/tmp/"));
    behind.unwrap_or(path).to_owned()
}

/// A request means by HOME and by the temporary directories those of the command.
fn start_directory(request: &Request, facts: &MacFacts) -> PathBuf {
    if let Ok(rest) = request.cwd.strip_prefix(HOME) {
        let home = home(request, facts);
        return if rest.as_os_str().is_empty() { home } else { home.join(rest) };
    }
    let temporary = ["/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp"];
    let is_granted = |place: &crate::core::request::Place| request.cwd.starts_with(&place.path);
    let granted = request.read.iter().chain(&request.write).any(is_granted);
    match temporary.iter().any(|own| request.cwd == Path::new(own)) && !granted {
        true => facts.temporary(),
        false => request.cwd.clone(),
    }
}

fn controls(request: &Request, facts: &MacFacts, proxy: &Proxy) -> Intents {
    let each = |control| (control, intent(control, request, facts, proxy));
    Control::ALL.into_iter().map(each).collect()
}

fn intent(control: Control, request: &Request, facts: &MacFacts, proxy: &Proxy) -> Intent {
    let intent = wanted(control, request, facts, proxy);
    match (&facts.seatbelt, &intent) {
        (_, Intent::NotRequested) => intent,
        (Fact::Fails { why }, _) if control.rests_on_confinement() => Intent::unavailable(
            format!("there is no Seatbelt for this run ({why})"),
            "start mcp outside of other sandboxes; `mcp doctor` says more",
        ),
        _ => intent,
    }
}

fn wanted(control: Control, request: &Request, facts: &MacFacts, proxy: &Proxy) -> Intent {
    let limits = &request.policy.limits;
    match control {
        Control::Filesystem => Intent::enforce("Seatbelt: what no rule allows is refused"),
        Control::Deny => deny::intent(request),
        Control::Protect => protect::intent(request),
        Control::Network => network::intent(request, proxy),
        Control::Subprocess => match request.policy.process.subprocess.value {
            Subprocess::Allowed => Intent::NotRequested,
            Subprocess::Refused => Intent::enforce(
                "Seatbelt: no fork, no exec but of the program itself and of mcp, in its place",
            ),
        },
        Control::ProcessIsolation => {
            Intent::enforce("Seatbelt: no signals to others, nothing told about them")
        }
        Control::Privileges if facts.caller.is_root() => Intent::unavailable(
            "mcp was started as root, and macOS cannot run the command as another user with root's files",
            "start mcp as an ordinary user",
        ),
        Control::Privileges => Intent::enforce(
            "Seatbelt: no set-uid programs, no set-uid modes, no privileged operations",
        ),
        Control::Environment => Intent::enforce("an environment made from the policy alone"),
        Control::Descriptors => Intent::enforce("every descriptor closed, and 0-2 checked by kind"),
        Control::TreeKill => tree_kill(request, facts),
        Control::Memory => watched(
            limits.memory.value,
            facts,
            Intent::partial(
                "a watch over the tree, and RLIMIT_DATA for each process",
                "memory is sampled, not reserved: a burst can pass the limit for some milliseconds; \
             macOS hardly counts anything as RLIMIT_DATA",
            ),
        ),
        Control::Cpu => match limits.cpu.value {
            None => Intent::NotRequested,
            Some(_) => Intent::unavailable(
                "macOS has no way to give a process a share of the processor",
                "bound the total with --max-cpu-time",
            ),
        },
        Control::Io => match limits.io.value {
            None => Intent::NotRequested,
            Some(_) => Intent::unavailable(
                "macOS has no way to bound what a process reads and writes in a second",
                "leave it out",
            ),
        },
        Control::CpuTime => match limits.cpu_time.value {
            None => Intent::NotRequested,
            Some(_) => Intent::partial(
                "RLIMIT_CPU",
                "each process has the whole time: the sum over processes is not bounded",
            ),
        },
        Control::Processes => watched(
            limits.processes.value,
            facts,
            Intent::partial(
                "RLIMIT_NPROC, and a watch that ends what is too many",
                "RLIMIT_NPROC counts all processes of the user: when others end, more can start here, \
             until the watch sees them; threads are not counted",
            ),
        ),
        Control::OpenFiles => asked(limits.open_files.value, "RLIMIT_NOFILE for each process"),
        Control::FileSize => asked(limits.file_size.value, "RLIMIT_FSIZE for each file"),
        Control::TmpSize => Intent::unavailable(
            "TMPDIR and HOME are on the disk: macOS has no temporary file system with a size",
            "bound each file with --max-file-size",
        ),
        Control::AddressSpace => match (&facts.address_space, limits.address_space.value) {
            (_, None) => Intent::NotRequested,
            (Fact::Fails { why }, _) => Intent::unavailable(
                format!("this macOS refuses RLIMIT_AS ({why})"),
                "bound memory with --max-memory",
            ),
            _ => Intent::enforce("RLIMIT_AS for each process"),
        },
        Control::Timeout => asked(limits.timeout.value, "the launcher ends the tree"),
    }
}

fn tree_kill(request: &Request, facts: &MacFacts) -> Intent {
    let by = "session, process group, parents and a guardian process";
    let single = request.policy.process.subprocess.value == Subprocess::Refused;
    match (&facts.membership, &facts.seatbelt) {
        (_, Fact::Assumed | Fact::Works) if single => {
            Intent::enforce("one process, and a guardian")
        }
        (Fact::Assumed | Fact::Works, Fact::Assumed | Fact::Works) => {
            Intent::enforce(format!("{by}; sandbox membership for what has left all of them"))
        }
        _ => Intent::partial(
            by,
            "a process that leaves its session, group and parent between two looks is missed: \
             this macOS does not say which processes are in a sandbox",
        ),
    }
}

fn watched<T>(limit: Option<T>, facts: &MacFacts, watched: Intent) -> Intent {
    match (limit, &facts.accounting) {
        (None, _) => Intent::NotRequested,
        (_, Fact::Fails { why }) => Intent::unavailable(
            format!("processes cannot be counted here ({why})"),
            "bound the time with --timeout",
        ),
        _ => watched,
    }
}

fn asked<T>(limit: Option<T>, by: &str) -> Intent {
    match limit {
        None => Intent::NotRequested,
        Some(_) => Intent::enforce(by),
    }
}

/// The profile of a request with a proxy on these ports, for readers and tests.
pub fn profile_with(request: &Request, facts: &MacFacts, ports: Vec<u16>) -> seatbelt::Profile {
    profile(request, facts, &Proxy { ports })
}
