//! From a plan to a running command: private directories, a guardian, `sandbox-exec` with the
//! profile and our helper, and nothing of it left in the end.

mod refusals;
mod streams;

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio as ChildStdio};

use self::refusals::Refusals;
use self::streams::Streams;
use crate::core::error::{Error, SetupFailure};
use crate::core::exit_code;
use crate::core::notices::Notices;
use crate::core::plan::Plan;
use crate::core::report::{Answer, Evidence, Report};
use crate::core::request::{Request, Stdio};
use crate::core::rlimit::Resource;
use crate::macos::channel::{Channel, Failed, Go, HelperOrder, Reply, Task};
use crate::macos::guardian::Guardian;
use crate::macos::helper_main::MARK;
use crate::macos::profile::{Profile, TERMINAL};
use crate::macos::proxy_host::{ProxyHost, ProxyPort};
use crate::macos::run_directory::RunDirectory;
use crate::macos::runs;
use crate::macos::step::Step;
use crate::macos::supervise::{Ended, Limits, Supervisor};
use crate::macos::sys::{self, Membership, Signals};
use crate::macos::terminal::Pair;
use crate::macos::tree::Tree;
use crate::macos::watch::Watch;
use crate::protected::Undoings;
use crate::unix::protect::undo::{ReplacedPlaces, undo};
use crate::unix::run_records::HeldRecord;
use crate::unix::supervision::SIGNALS;
use mcp_net::broker::{Handle, NetworkUse};

/// Never looked for on PATH.
pub const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Why a run came to no end of its own.
enum RunError {
    Step(Failed),
    Io(io::Error),
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> RunError {
        RunError::Io(error)
    }
}

/// Runs the command to its end. The calling process must have a single thread.
pub fn run(
    plan: &Plan<Step>,
    request: &Request,
    reservation: ProxyPort,
    notices: Notices,
) -> Result<Report, Error> {
    let proxy_host = ProxyHost::prepare(request, reservation, notices)?;
    let refusals = Refusals::watch(plan, request);
    let outcome = try_run(plan, request, proxy_host).map(|report| refusals.tell(report));
    // However it ended, unless the command was never started.
    let undone = match &outcome {
        Err(RunError::Step(_)) => Undoings::default(),
        _ => undo(request, &ReplacedPlaces::default()),
    };
    match outcome {
        Ok(report) => Ok(report.with_undone(undone)),
        Err(RunError::Step(failed)) => Err(explain(plan, failed)),
        Err(RunError::Io(source)) => Err(Error::Io { doing: "run the sandbox".to_owned(), source }),
    }
}

fn try_run(
    plan: &Plan<Step>,
    request: &Request,
    proxy_host: Option<ProxyHost>,
) -> Result<Report, RunError> {
    let carried = proxy_host.as_ref().map(ProxyHost::evidence);
    let signals = Signals::take(&SIGNALS)?;
    let parts = Parts::of(plan);
    let (index, place) = parts.place;
    let scratch = RunDirectory::make(place).map_err(|e| at_step(index, &e))?;
    for (index, planned) in plan.steps.iter().enumerate() {
        if let Step::Text { at, text } = &planned.step {
            std::fs::write(at, text).map_err(|e| at_step(index, &e))?;
        }
    }
    let membership = parts.service.and_then(|(_, service)| Membership::new(service));
    let guardian =
        Guardian::start(place, membership.clone()).map_err(|e| at_step(parts.guardian, &e))?;
    let outcome =
        start_and_watch(plan, request, &parts, membership, &guardian, signals, proxy_host);
    guardian.dismiss();
    drop(scratch);
    let (mut evidence, ended, network) = outcome?;
    evidence.extend(own_evidence(plan, &ended, carried.as_ref()));
    let command = words(request);
    let code = exit_code::of(&ended.ending);
    let mut report = Report::new(plan, &evidence, command, ended.ending, code, ended.usage);
    report.network = Some(network).filter(|network| !network.is_empty());
    Ok(report)
}

fn start_and_watch(
    plan: &Plan<Step>,
    request: &Request,
    parts: &Parts<'_>,
    membership: Option<Membership>,
    guardian: &Guardian,
    signals: Signals,
    proxy_host: Option<ProxyHost>,
) -> Result<(Vec<Evidence>, Ended, NetworkUse), RunError> {
    // Outside it can be connected to; inside that has to fail.
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let (mut ours, theirs) = Channel::pair()?;
    let terminal = match request.stdio.contains(&Stdio::Terminal) {
        true => Some(Pair::open()?),
        false => None,
    };
    let streams = Streams::prepare(request, terminal.as_ref())?;
    let mut child = spawn(parts, streams.inside, terminal.as_ref(), &theirs)
        .map_err(|e| at_step(parts.seatbelt.map_or(parts.guardian, |(index, _)| index), &e))?;
    drop(theirs);
    let root = child.id().cast_signed();
    let variables = proxy_host.as_ref().map(ProxyHost::variables).unwrap_or_default();
    let order = order(plan, request, listener.local_addr()?.port(), &variables);
    let prepared = prepare(parts, &mut ours, &order, &membership, root);
    let (evidence, tree) = match prepared.and_then(|prepared| {
        guardian.watch(root)?;
        Ok(prepared)
    }) {
        Ok(prepared) => prepared,
        Err(trouble) => {
            give_up(&mut child);
            return Err(trouble);
        }
    };
    let listed = runs::list_run(root, words(request));
    let meter = listed.as_ref().and_then(HeldRecord::meter);
    let broker = proxy_host.map(|host| host.start(meter)).transpose()?;
    if let Some(failed) = begin(&mut ours)? {
        give_up(&mut child);
        return Err(RunError::Step(failed));
    }
    let master = terminal.map(|pair| pair.master);
    let relays = (streams.inputs, streams.outputs);
    let supervisor = Supervisor::new(
        root,
        tree,
        signals,
        limits(plan, request),
        &request.stdio,
        master,
        relays,
    )?;
    let ended = supervisor.run()?;
    drop(listed);
    Ok((evidence, ended, broker.map(Handle::finish).unwrap_or_default()))
}

fn words(request: &Request) -> Vec<String> {
    request.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Its helper has said what went wrong, or will never say anything.
fn give_up(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The steps that the launcher itself needs to know.
struct Parts<'a> {
    place: (usize, &'a Path),
    guardian: usize,
    seatbelt: Option<(usize, &'a Profile)>,
    service: Option<(usize, &'a str)>,
}

impl<'a> Parts<'a> {
    fn of(plan: &'a Plan<Step>) -> Parts<'a> {
        let mut parts =
            Parts { place: (0, Path::new("")), guardian: 0, seatbelt: None, service: None };
        for (index, planned) in plan.steps.iter().enumerate() {
            match &planned.step {
                Step::RunDirectory { at } => parts.place = (index, at),
                Step::Guardian => parts.guardian = index,
                Step::Seatbelt { profile } => parts.seatbelt = Some((index, profile)),
                Step::Membership { nonce } => parts.service = Some((index, nonce)),
                _ => {}
            }
        }
        parts
    }
}

/// The helper, under the profile. Without one (`--fallback warn`) it is started by itself.
fn spawn(
    parts: &Parts<'_>,
    [stdin, stdout, stderr]: [ChildStdio; 3],
    terminal: Option<&Pair>,
    channel: &Channel,
) -> io::Result<Child> {
    let helper = std::env::current_exe()?.canonicalize()?;
    let mut command = match parts.seatbelt {
        None => Command::new(helper),
        Some((_, profile)) => {
            let mut command = Command::new(SANDBOX_EXEC);
            command.arg("-p").arg(&profile.text);
            for parameter in &profile.parameters {
                let mut pair = OsString::from(&parameter.name);
                pair.push("=");
                match terminal {
                    Some(pair_of) if parameter.name == TERMINAL => pair.push(&pair_of.name),
                    _ => pair.push(&parameter.value),
                }
                command.arg("-D").arg(pair);
            }
            command.arg(helper);
            command
        }
    };
    // Nothing of our environment: what is meant for the command comes over the channel.
    command.env_clear().current_dir("/").stdin(stdin).stdout(stdout).stderr(stderr);
    command.arg(MARK).arg(channel.as_fd().as_raw_fd().to_string());
    sys::keep_open(&mut command, &[channel.as_fd()]);
    command.spawn()
}

/// Sends the order and receives what the helper found.
fn prepare(
    parts: &Parts<'_>,
    channel: &mut Channel,
    order: &HelperOrder,
    membership: &Option<Membership>,
    root: i32,
) -> Result<(Vec<Evidence>, Tree), RunError> {
    channel.send(order)?;
    let mut evidence: Vec<Evidence> = match channel.receive::<Reply>()? {
        Some(Reply::Ready(seen)) => seen.into_iter().map(Evidence::from).collect(),
        Some(Reply::Failed(failed)) => return Err(RunError::Step(failed)),
        None => {
            let (step, why) = match parts.seatbelt {
                Some((step, _)) => (
                    step,
                    "sandbox-exec did not start our helper, or the helper ended before its report (libsandbox \
                     refused the profile, or the profile let it execute another program)",
                ),
                None => (parts.guardian, "the helper ended"),
            };
            let why = why.to_owned();
            return Err(RunError::Step(Failed { step, errno: libc::EPERM, why }));
        }
    };
    let mut own = membership.clone();
    if let Some((step, _)) = parts.service {
        // Believed only if it knows our helper, and does not take us for one of them.
        let own_pid = std::process::id().cast_signed();
        let answer = match own.as_ref().filter(|m| m.holds(root) && !m.holds(own_pid)) {
            Some(_) => Answer::Confirmed("the system knows the helper by it".to_owned()),
            None => {
                own = None;
                let missing = "this macOS does not say which processes are in a sandbox: a process that leaves its \
                               session, group and parent between two looks is missed";
                Answer::Less(missing.to_owned())
            }
        };
        evidence.push(Evidence { step, answer });
    }
    let tree = Tree::new(root, own).ok_or_else(|| io::Error::other("the helper is gone"))?;
    Ok((evidence, tree))
}

/// Lets the helper go on; what keeps it from becoming the command.
fn begin(channel: &mut Channel) -> io::Result<Option<Failed>> {
    channel.send(&Go)?;
    match channel.receive::<Reply>()? {
        Some(Reply::Failed(failed)) => Ok(Some(failed)),
        Some(Reply::Ready(_)) | None => Ok(None),
    }
}

/// `variables` are the proxy's, and take the place of others.
fn order(
    plan: &Plan<Step>,
    request: &Request,
    port: u16,
    variables: &[(&'static str, String)],
) -> HelperOrder {
    let mut order = HelperOrder {
        tasks: Vec::new(),
        launcher: std::process::id().cast_signed(),
        port,
        execute: plan.steps.len().saturating_sub(1),
        program: request.program.clone(),
        cwd: request.cwd.clone(),
        argv: request.argv.clone(),
        env: request.env.clone(),
    };
    for (name, secret) in &request.secrets {
        order.env.push((name.clone(), secret.reveal().clone()));
    }
    for (name, value) in variables {
        order.env.retain(|(have, _)| have != name);
        order.env.push((name.into(), value.into()));
    }
    for (index, planned) in plan.steps.iter().enumerate() {
        let task = match &planned.step {
            Step::NewSession => {
                Task::Session { has_terminal: request.stdio.contains(&Stdio::Terminal) }
            }
            Step::Refused { act } => Task::Refused(act.clone()),
            Step::Limit { resource, value } => {
                Task::Limit { number: number(*resource), value: *value }
            }
            Step::Descriptors { .. } => Task::Descriptors,
            Step::Environment { set } => {
                for (name, value) in set {
                    order.env.retain(|(have, _)| have != name.as_str());
                    order.env.push((name.into(), value.into()));
                }
                Task::Environment
            }
            Step::Execute { program, cwd } => {
                (order.program, order.cwd) = (program.clone(), cwd.clone());
                continue;
            }
            _ => continue,
        };
        order.tasks.push((index, task));
    }
    order
}

fn number(resource: Resource) -> i32 {
    match resource {
        Resource::Cpu => libc::RLIMIT_CPU,
        Resource::Data => libc::RLIMIT_DATA,
        Resource::AddressSpace => libc::RLIMIT_AS,
        Resource::Processes => libc::RLIMIT_NPROC,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::Core => libc::RLIMIT_CORE,
    }
}

fn limits(plan: &Plan<Step>, request: &Request) -> Limits {
    // Signals of the launcher have it, too, so it is not the timeout's alone.
    let grace = request.policy.limits.grace.value.as_std();
    let mut limits = Limits { grace, ..Limits::default() };
    for planned in &plan.steps {
        match &planned.step {
            Step::Timeout { after, .. } => limits.timeout = Some(after.as_std()),
            Step::WatchMemory { limit } => limits.memory = Some(limit.0),
            Step::WatchProcesses { limit } => limits.processes = Some(*limit),
            _ => {}
        }
    }
    limits
}

/// The steps that are the launcher's own. The profile is confirmed by the helper, whose self-checks
/// were refused by it, and the last step by the command's start.
fn own_evidence(plan: &Plan<Step>, ended: &Ended, carried: Option<&Answer>) -> Vec<Evidence> {
    let Watch { looks, peak_memory, peak_processes, ended: too_many, .. } = &ended.watch;
    let mut evidence = Vec::new();
    for (step, planned) in plan.steps.iter().enumerate() {
        let answer = match &planned.step {
            Step::WatchMemory { .. } | Step::WatchProcesses { .. } if *looks == 0 => {
                Answer::Confirmed("ended before the first look".to_owned())
            }
            Step::WatchMemory { .. } => Answer::Confirmed(format!("peak seen {peak_memory} bytes")),
            Step::WatchProcesses { .. } => Answer::Confirmed(format!(
                "at most {peak_processes} seen, {too_many} were too many"
            )),
            Step::Timeout { after, .. } => Answer::Confirmed(format!("armed for {after}")),
            Step::Proxy { .. } => match carried {
                Some(answer) => answer.clone(),
                None => continue,
            },
            Step::Guardian if !ended.is_tree_dead => {
                Answer::Less("some processes could not be ended".to_owned())
            }
            Step::RunDirectory { .. }
            | Step::Guardian
            | Step::Seatbelt { .. }
            | Step::Execute { .. } => Answer::Confirmed(String::new()),
            _ => continue,
        };
        evidence.push(Evidence { step, answer });
    }
    evidence
}

fn at_step(step: usize, error: &io::Error) -> RunError {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    RunError::Step(Failed { step, errno, why: String::new() })
}

/// The failed step in the user's words.
fn explain(plan: &Plan<Step>, failed: Failed) -> Error {
    let Some(planned) = plan.steps.get(failed.step) else {
        let (step, hint) = ("set up".to_owned(), String::new());
        return Error::Setup(SetupFailure { step, target: failed.why, errno: failed.errno, hint });
    };
    if let (Step::Execute { program, .. }, true) = (&planned.step, failed.why.is_empty()) {
        let why = match failed.errno {
            libc::EPERM => {
                "the sandbox refuses it (add --read for the directory of the program or \
                            of its interpreter)"
                    .to_owned()
            }
            libc::ENOEXEC => "not a program this machine can run, and no #! line".to_owned(),
            errno => io::Error::from_raw_os_error(errno).to_string(),
        };
        return Error::NotExecutable { path: program.clone(), why };
    }
    let hint = match &planned.step {
        Step::Seatbelt { .. } => {
            "/usr/bin/sandbox-exec refused the profile, or another sandbox is around us; `mcp doctor` \
             says more"
        }
        _ => "",
    };
    let parts = [failed.why.as_str(), hint];
    let hint: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Error::Setup(SetupFailure {
        step: planned.step.verb().to_owned(),
        target: planned.step.operand(),
        errno: failed.errno,
        hint: hint.join("; "),
    })
}
