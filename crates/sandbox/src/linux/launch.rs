//! From a plan to a running sandbox: what only the launcher can do, then one clone3.

mod evidence;
mod explain;
mod grants;

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use self::evidence::{own_evidence, unlayered};
use self::explain::{FEW_FILES, explain};
use self::grants::{prepare_stdio, prepare_trees};
use crate::core::check::Check;
use crate::core::error::{Error, SetupFailure};
use crate::core::exit_code;
use crate::core::notices::Notices;
use crate::core::report::{Answer, Ending, Evidence, Report, Usage};
use crate::core::request::{Home, Request};
use crate::core::rlimit::Resource;
use crate::core::run_record::RunId;
use crate::linux::apply::{self, InitInputs};
use crate::linux::cgroup::bounds;
use crate::linux::cgroup::held::RunCgroup;
use crate::linux::channel::{Channel, ToInit};
use crate::linux::failure::{LaunchFailure, at_step};
use crate::linux::memory_watch::ProcessTree;
use crate::linux::network::{Network, Outside};
use crate::linux::owner_map::OwnerMap;
use crate::linux::path_watch::PathWatch;
use crate::linux::phases::{LinuxPlan, TargetPhase, Watches};
use crate::linux::protected_inotify::ProtectedInotify;
use crate::linux::replaced::ReplacementWatch;
use crate::linux::reservation::Reservation;
use crate::linux::run_directory::RunDirectory;
use crate::linux::step::{Filter, Limit, Namespaces, NetworkNamespace, Numbered, Placed};
use crate::linux::supervise::{self, Dying, Ended, Init, Limits, Mounted, Supervisor};
use crate::linux::sweeper::Sweeper;
use crate::linux::syscall_proxy::{ProxySettings, SyscallProxy};
use crate::linux::terminal::UserTerminal;
use crate::linux::{open_files, runs, sandbox_sockets, sys};
use crate::protected::Undoings;
use crate::unix::protect::undo::{ReplacedPlaces, undo};
use crate::unix::run_records::HeldRecord;
use crate::unix::supervision::SIGNALS;

const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Runs the command to its end. The calling process must have a single thread.
pub fn run(
    plan: &LinuxPlan,
    request: &Request,
    reservation: Reservation,
    notices: Notices,
    check: Option<Check<'_>>,
) -> Result<Report, Error> {
    every_script_has_its_place(plan, request)?;
    let outside = Outside::prepare(request, notices)?;
    let inotify = ProtectedInotify::watch(&request.protected);
    let mut sweeper = None;
    let beside = Beside { sweeper: &mut sweeper, inotify: &inotify };
    let outcome = try_run(plan, request, reservation, outside, check, beside);
    // However it ended, unless the command was never started.
    let undone = match &outcome {
        Err(LaunchFailure::Step(_) | LaunchFailure::Changed) => Undoings::default(),
        Err(LaunchFailure::Io(_) | LaunchFailure::Lost(_)) => {
            undo(request, &ReplacedPlaces::default())
        }
        Ok(over) => undo(request, &over.seen),
    };
    sweeper.into_iter().for_each(Sweeper::dismiss);
    let outcome = match outcome {
        Err(LaunchFailure::Lost(error)) => Ok(lost(plan, request, &error)),
        Err(other) => Err(other),
        Ok(Over { report, dying, .. }) => {
            dying.into_iter().for_each(|dying| dying.collect(mounted(request)));
            Ok(report)
        }
    };
    match outcome {
        Ok(report) => {
            let mut report = report.with_undone(undone);
            report.kept = inotify.seen();
            Ok(report)
        }
        Err(LaunchFailure::Step(failed)) => Err(explain(plan, failed)),
        Err(LaunchFailure::Changed) => Err(Error::Changed),
        Err(LaunchFailure::Io(source)) if source.raw_os_error() == Some(libc::EMFILE) => {
            Err(Error::Setup(SetupFailure {
                step: "open files".to_owned(),
                target: String::new(),
                errno: libc::EMFILE,
                hint: FEW_FILES.to_owned(),
            }))
        }
        Err(LaunchFailure::Io(source) | LaunchFailure::Lost(source)) => {
            Err(Error::Io { doing: "run the sandbox".to_owned(), source })
        }
    }
}

/// A run whose last process is dead.
struct Over {
    report: Report,
    /// What happened to protected places.
    seen: ReplacedPlaces,
    /// Where init is not collected yet.
    dying: Option<Dying>,
}

/// Whether init holds more than pieces of the system until it is gone.
fn mounted(request: &Request) -> Mounted {
    let Request { shown, read, write, unix, layer, home, .. } = request;
    let nothing = [shown, read, write, unix].iter().all(|places| places.is_empty());
    match nothing && layer.is_none() && *home == Home::Ephemeral {
        true => Mounted::SystemAlone,
        false => Mounted::Something,
    }
}

/// What outlives the sandbox, for protected places.
struct Beside<'a> {
    sweeper: &'a mut Option<Sweeper>,
    inotify: &'a ProtectedInotify,
}

/// The command would look for it in vain.
fn every_script_has_its_place(plan: &LinuxPlan, request: &Request) -> Result<(), Error> {
    let placed = plan.placed();
    let has = |at: &Path| {
        placed
            .iter()
            .any(|one| matches!(&one.step, Placed::Script { at: placed, .. } if placed == at))
    };
    match request.scripts.iter().find(|script| !has(&script.at)) {
        Some(script) => Err(Error::Unsupported(format!(
            "{} cannot be put there: a grant shows something of the host at that place, or the sandbox has no root of \
             its own, for which it needs user namespaces (mcp doctor)",
            script.at.display()
        ))),
        None => Ok(()),
    }
}

fn try_run(
    plan: &LinuxPlan,
    request: &Request,
    reservation: Reservation,
    outside: Outside,
    check: Option<Check<'_>>,
    Beside { sweeper, inotify }: Beside<'_>,
) -> Result<Over, LaunchFailure> {
    let Reservation { id, cgroup } = reservation;
    let carried = outside.evidence();
    let signals = sys::Signals::take(&SIGNALS)?;
    let (ours, theirs) = Channel::pair()?;
    let (namespaces, index) = namespaces(plan);
    // Removed when this returns, whatever happens.
    let _directory = private_directories(plan);
    if namespaces == 0 {
        sys::adopt_orphans()?;
        drop_own_privileges(plan)?;
    }
    let map = OwnerMap::for_plan(plan);
    // As root there is a descriptor for each grant.
    let files = map.as_ref().map(|_| open_files::raise());
    let (stdio, relays) = prepare_stdio(request, map.as_ref(), index)?;
    let (trees, unmapped) = prepare_trees(plan, map.as_ref(), index)?;
    let (orders, socket_factory) = sandbox_sockets::pair()?;
    let (filter, is_checked) = (filter(plan), check.is_some());
    let prepared = InitInputs { trees, stdio, unmapped, filter, socket_factory, files, is_checked };

    // Before there is a command that it could have to answer for.
    let (syscall_proxy, became) = start_syscall_proxy(plan)?.unzip();
    let set = bounds::set(plan, cgroup.as_ref())?;
    let (pid, pidfd) = match sys::clone_into(namespaces, bounds::target(plan, cgroup.as_ref())) {
        Ok(sys::Cloned::Child) => {
            // A copy of the other end would keep a pipe open that the launcher has closed.
            drop((ours, relays, map, orders, outside, cgroup.map(RunCgroup::disown)));
            syscall_proxy.into_iter().for_each(SyscallProxy::disown);
            apply::init(plan, request, theirs, signals, prepared)
        }
        Ok(sys::Cloned::Parent { pid, pidfd }) => (pid, pidfd),
        Err(e) => return Err(at_step(index, &e)),
    };
    drop((theirs, prepared));
    let init = Init {
        pid,
        pidfd,
        channel: ours,
        tree: if namespaces == 0 { ProcessTree::Below(pid) } else { ProcessTree::OfNamespace },
        syscall_proxy,
    };
    match Sweeper::start(plan, request, init.pidfd.as_fd()) {
        Ok(started) => *sweeper = started,
        Err(error) => return Err(unheard(init, error)),
    }
    let watch =
        sweeper.as_ref().map(|sweeper| ReplacementWatch::new(plan, request, sweeper, inotify));
    if let Some(map) = &map {
        write_ids(plan, map, &init, index)?;
    }
    // While init is at work: none of this delays the command.
    let command: Vec<_> = request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let entered = bounds::entered(plan, cgroup.as_ref(), pid);
    let listed = list_run(&id, pid, &command, cgroup.as_ref());
    let init = checked(init, check)?;

    let limits = limits(plan, request);
    let meter = listed.as_ref().and_then(HeldRecord::meter);
    let network = Network::new(plan, request, outside, orders, meter);
    let held =
        supervise::HostResources { cgroup, network, watch, paths: PathWatch::of(plan, request) };
    let user = match UserTerminal::open(&request.stdio) {
        Err(error) => return Err(unheard(init, error)),
        Ok(user) => user,
    };
    let stdio = (request.stdio.clone(), user);
    let ended = Supervisor::new(init, signals, limits, stdio, relays, held).run()?;
    drop(listed);
    let own = own_evidence(plan, &ended.usage, &carried);
    let evidence = set.into_iter().chain(entered).chain(became).chain(own).collect();
    Ok(reported(plan, request, ended, evidence, command))
}

/// Makes this run's record for `mcp ps`, and removes what killed launchers left.
fn list_run(
    id: &RunId,
    pid: i32,
    command: &[String],
    cgroup: Option<&RunCgroup>,
) -> Option<HeldRecord> {
    let directory = cgroup.map(|held| held.run().path.to_string_lossy().into_owned());
    let listed = runs::list_run(id, pid, command.to_vec(), directory);
    listed.iter().for_each(HeldRecord::sweep);
    cgroup.iter().for_each(|held| held.sweep());
    listed
}

/// As root the launcher writes init's id map: a map to another id than one's own is refused to init.
fn write_ids(
    plan: &LinuxPlan,
    map: &OwnerMap,
    init: &Init,
    index: usize,
) -> Result<(), LaunchFailure> {
    let ids = plan.ids().map_or(index, |ids| ids.number);
    map.write_for(init.pid).map_err(|e| at_step(ids, &e))?;
    init.channel.send(&ToInit::Mapped)?;
    Ok(())
}

/// Lets init start the command, once what is to be run has been looked at.
fn checked(init: Init, check: Option<Check<'_>>) -> Result<Init, LaunchFailure> {
    if let Some(check) = check {
        if !check() {
            init.end();
            return Err(LaunchFailure::Changed);
        }
        // One that has failed meanwhile has said why.
        let _ = init.channel.send(&ToInit::Checked);
    }
    Ok(init)
}

/// The report of a run that ended, from what init, the target and the launcher saw.
fn reported(
    plan: &LinuxPlan,
    request: &Request,
    ended: Ended,
    of_launcher: Vec<Evidence>,
    command: Vec<String>,
) -> Over {
    let mut evidence = ended.evidence;
    evidence.extend(of_launcher);
    let code = exit_code::of(&ended.ending);
    let mut report =
        Report::new(&plan.outline(), &evidence, command, ended.ending, code, ended.usage);
    report.blocked_processes = ended.blocked_processes;
    report.network = Some(ended.network).filter(|network| !network.is_empty());
    report.watched = ended.watched;
    report.stopped = ended.stopped;
    report.lost = ended.lost;
    report.unlayered = unlayered(plan, request, &evidence);
    Over { report, seen: ended.seen, dying: ended.dying }
}

/// A failure of the launcher's while the launcher has not listened to init yet, which may have started the command.
fn unheard(init: Init, error: io::Error) -> LaunchFailure {
    match init.end_unheard() {
        true => LaunchFailure::Lost(error),
        false => LaunchFailure::Io(error),
    }
}

/// Of a run that was started and could not be supervised.
fn lost(plan: &LinuxPlan, request: &Request, error: &io::Error) -> Report {
    let command = request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let ending = Ending::SandboxFailed(error.to_string());
    let code = exit_code::of(&ending);
    Report::new(&plan.outline(), &[], command, ending, code, Usage::default())
}

fn namespaces(plan: &LinuxPlan) -> (u64, usize) {
    let Some(Numbered { number, step: Namespaces { network }, .. }) = &plan.namespaces else {
        return (0, 0);
    };
    let flags = match network {
        NetworkNamespace::Host => NAMESPACES,
        NetworkNamespace::Own => NAMESPACES | libc::CLONE_NEWNET,
    };
    (flags as u64, *number)
}

/// The launcher answers for files in the command's place. Where the command keeps the caller's id, as below root of
/// a rootless container, it must not do so with capabilities that the command has not.
fn drop_own_privileges(plan: &LinuxPlan) -> io::Result<()> {
    if plan.user().is_some() {
        return Ok(());
    }
    sys::drop_all_capabilities().map(drop)
}

fn private_directories(plan: &LinuxPlan) -> Option<RunDirectory> {
    plan.private_directories().map(|directories| RunDirectory(directories.at.clone()))
}

/// Answers the calls that a filter without namespaces leaves to the launcher. With it comes what it has become.
fn start_syscall_proxy(
    plan: &LinuxPlan,
) -> Result<Option<(SyscallProxy, Evidence)>, LaunchFailure> {
    let TargetPhase { landlock, limits, filter, .. } = &plan.target;
    let (Some(planned), Some(filter)) = (&plan.syscall_proxy, filter) else {
        return Ok(None);
    };
    let largest_file = limits.iter().find_map(|limit| match limit.step {
        Limit::To { resource: Resource::FileSize, value } => Some(value),
        _ => None,
    });
    let rules = landlock.as_ref().map(|landlock| landlock.step.rules.clone()).unwrap_or_default();
    let (arch, user) = (filter.step.arch, planned.step.user);
    let started = SyscallProxy::start(ProxySettings { arch, user, rules, largest_file });
    let (syscall_proxy, became) = started.map_err(|e| at_step(planned.number, &e))?;
    let evidence = Evidence { step: planned.number, answer: Answer::Confirmed(became) };
    Ok(Some((syscall_proxy, evidence)))
}

fn filter(plan: &LinuxPlan) -> Vec<mcp_seccomp::Instruction> {
    let Some(filter) = &plan.target.filter else {
        return Vec::new();
    };
    let Filter { arch, processes, connects, sockets, ground, watching } = filter.step;
    mcp_seccomp::program(arch, processes, connects, sockets, ground, watching)
}

fn limits(plan: &LinuxPlan, request: &Request) -> Limits {
    // Signals of the launcher have it, too, so it is not the timeout's alone.
    let grace = request.policy.limits.grace.value.as_std();
    let Watches { timeout, memory } = &plan.watches;
    Limits {
        timeout: timeout.as_ref().map(|timeout| timeout.step.after.as_std()),
        grace,
        memory: memory.as_ref().map(|memory| memory.step.limit.0),
    }
}
