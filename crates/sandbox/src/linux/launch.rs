//! From a plan to a running sandbox: what only the launcher can do, then one clone3.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use crate::core::check::Check;
use crate::core::error::{Error, SetupFailure};
use crate::core::exit_code;
use crate::core::notices::Notices;
use crate::core::report::{Answer, Ending, Evidence, Report, Usage};
use crate::core::request::{Request, Stdio};
use crate::core::rlimit::Resource;
use crate::linux::apply::{self, Prepared};
use crate::linux::attempts::Attempts;
use crate::linux::cgroup::bounds;
use crate::linux::cgroup::held::Held;
use crate::linux::channel::{Channel, Failed, ToInit};
use crate::linux::failure::{LaunchFailure, at_step};
use crate::linux::mounts::{STAGED_LAYER, Trees, host_tree};
use crate::linux::network::{Network, Outside};
use crate::linux::owner_map::OwnerMap;
use crate::linux::phases::{Plan, Target, Watches};
use crate::linux::relay::{Pipe, Relay, is_same_file, set_nonblocking};
use crate::linux::replaced::Watch;
use crate::linux::reservation::Reservation;
use crate::linux::run_directory::RunDirectory;
use crate::linux::step::{
    Access, Execute, Filter, Limit, Listed, Namespaces, NetworkNamespace, Numbered, Owner, Placed,
    Step,
};
use crate::linux::supervise::{self, Init, Limits, Supervisor};
use crate::linux::sweeper::Sweeper;
use crate::linux::syscall_proxy::{Mandate, SyscallProxy};
use crate::linux::terminal::UserTerminal;
use crate::linux::watch::Tree;
use crate::linux::{open_files, runs, sandbox_sockets, stdio, sys, terminal};
use crate::protected::Undoings;
use crate::unix::protect::undo::{Seen, undo};
use crate::unix::terminal::standard;

const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Runs the command to its end. The calling process must have a single thread.
pub fn run(
    plan: &Plan,
    request: &Request,
    reservation: Reservation,
    notices: Notices,
    check: Option<Check<'_>>,
) -> Result<Report, Error> {
    let outside = Outside::prepare(request, notices)?;
    let attempts = Attempts::watch(&request.protected);
    let mut sweeper = None;
    let beside = Beside { sweeper: &mut sweeper, attempts: &attempts };
    let outcome = try_run(plan, request, reservation, outside, check, beside);
    // However it ended, unless the command was never started.
    let undone = match &outcome {
        Err(LaunchFailure::Step(_) | LaunchFailure::Changed) => Undoings::default(),
        Err(LaunchFailure::Io(_) | LaunchFailure::Lost(_)) => undo(request, &Seen::default()),
        Ok((_, seen)) => undo(request, seen),
    };
    sweeper.into_iter().for_each(Sweeper::dismiss);
    let outcome = match outcome {
        Err(LaunchFailure::Lost(error)) => Ok((lost(plan, request, &error), Seen::default())),
        other => other,
    };
    match outcome {
        Ok((report, _)) => {
            let mut report = report.with_undone(undone);
            report.kept = attempts.seen();
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

/// What outlives the sandbox, for protected places.
struct Beside<'a> {
    sweeper: &'a mut Option<Sweeper>,
    attempts: &'a Attempts,
}

fn try_run(
    plan: &Plan,
    request: &Request,
    reservation: Reservation,
    outside: Outside,
    check: Option<Check<'_>>,
    Beside { sweeper, attempts }: Beside<'_>,
) -> Result<(Report, Seen), LaunchFailure> {
    let Reservation { id, cgroup } = reservation;
    let carried = outside.evidence();
    let signals = sys::Signals::take(&supervise::SIGNALS)?;
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
    let prepared = Prepared { trees, stdio, unmapped, filter, socket_factory, files, is_checked };

    // Before there is a command that it could have to answer for.
    let (syscall_proxy, became) = start_syscall_proxy(plan)?.unzip();
    let set = bounds::set(plan, cgroup.as_ref())?;
    let (pid, pidfd) = match sys::clone_into(namespaces, bounds::target(plan, cgroup.as_ref())) {
        Ok(sys::Cloned::Child) => {
            // A copy of the other end would keep a pipe open that the launcher has closed.
            drop((ours, relays, map, orders, outside, cgroup.map(Held::disown)));
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
        tree: if namespaces == 0 { Tree::Below(pid) } else { Tree::OfNamespace },
        syscall_proxy,
    };
    match Sweeper::start(plan, request, init.pidfd.as_fd()) {
        Ok(started) => *sweeper = started,
        Err(error) => return Err(unheard(init, error)),
    }
    let watch = sweeper.as_ref().map(|sweeper| Watch::new(plan, request, sweeper, attempts));
    if let Some(map) = &map {
        let ids = plan.ids().map_or(index, |ids| ids.number);
        map.write_for(pid).map_err(|e| at_step(ids, &e))?;
        init.channel.send(&ToInit::Mapped)?;
    }
    // While init is at work: none of this delays the command.
    let command: Vec<_> = request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let entered = bounds::entered(plan, cgroup.as_ref(), pid);
    let directory = cgroup.as_ref().map(|held| held.run().path.to_string_lossy().into_owned());
    let listed = runs::list_run(&id, pid, command.clone(), directory);
    listed.iter().for_each(runs::Listed::sweep);
    cgroup.iter().for_each(Held::sweep);
    if let Some(check) = check {
        if !check() {
            init.end();
            return Err(LaunchFailure::Changed);
        }
        // One that has failed meanwhile has said why.
        let _ = init.channel.send(&ToInit::Checked);
    }

    let limits = limits(plan, request);
    let meter = listed.as_ref().and_then(runs::Listed::meter);
    let network = Network::new(plan, request, outside, orders, meter);
    let held = supervise::Held { cgroup, network, watch };
    let user = match UserTerminal::open(&request.stdio) {
        Ok(user) => user,
        Err(error) => return Err(unheard(init, error)),
    };
    let stdio = (request.stdio.clone(), user);
    let ended = Supervisor::new(init, signals, limits, stdio, relays, held).run()?;
    let mut evidence = ended.evidence;
    drop(listed);
    evidence.extend(set.into_iter().chain(entered).chain(became));
    evidence.extend(own_evidence(plan, &ended.usage, &carried));
    let code = exit_code::of(&ended.ending);
    let mut report =
        Report::new(&plan.outline(), &evidence, command, ended.ending, code, ended.usage);
    report.blocked_processes = ended.blocked_processes;
    report.network = Some(ended.network).filter(|network| !network.is_empty());
    report.stopped = ended.stopped;
    report.lost = ended.lost;
    report.unlayered = unlayered(plan, request, &evidence);
    Ok((report, ended.seen))
}

/// A failure of the launcher's while nobody has listened to init yet, which may have started the command.
fn unheard(init: Init, error: io::Error) -> LaunchFailure {
    match init.end_unheard() {
        true => LaunchFailure::Lost(error),
        false => LaunchFailure::Io(error),
    }
}

/// Of a run that was started and could not be supervised.
fn lost(plan: &Plan, request: &Request, error: &io::Error) -> Report {
    let command = request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let ending = Ending::SandboxFailed(error.to_string());
    let code = exit_code::of(&ending);
    Report::new(&plan.outline(), &[], command, ending, code, Usage::default())
}

fn namespaces(plan: &Plan) -> (u64, usize) {
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
fn drop_own_privileges(plan: &Plan) -> io::Result<()> {
    if plan.user().is_some() {
        return Ok(());
    }
    sys::drop_all_capabilities().map(drop)
}

fn private_directories(plan: &Plan) -> Option<RunDirectory> {
    plan.private_directories().map(|directories| RunDirectory(directories.at.clone()))
}

/// Answers the calls that a filter without namespaces leaves to the launcher. With it comes what it has become.
fn start_syscall_proxy(plan: &Plan) -> Result<Option<(SyscallProxy, Evidence)>, LaunchFailure> {
    let Target { landlock, limits, filter, .. } = &plan.target;
    let (Some(planned), Some(filter)) = (&plan.syscall_proxy, filter) else {
        return Ok(None);
    };
    let largest_file = limits.iter().find_map(|limit| match limit.step {
        Limit::To { resource: Resource::FileSize, value } => Some(value),
        _ => None,
    });
    let rules = landlock.as_ref().map(|landlock| landlock.step.rules.clone()).unwrap_or_default();
    let (arch, user) = (filter.step.arch, planned.step.user);
    let started = SyscallProxy::start(Mandate { arch, user, rules, largest_file });
    let (syscall_proxy, became) = started.map_err(|e| at_step(planned.number, &e))?;
    let evidence = Evidence { step: planned.number, answer: Answer::Confirmed(became) };
    Ok(Some((syscall_proxy, evidence)))
}

fn filter(plan: &Plan) -> Vec<mcp_seccomp::Instruction> {
    let Some(filter) = &plan.target.filter else {
        return Vec::new();
    };
    let Filter { arch, processes, connects, sockets, ground } = filter.step;
    mcp_seccomp::program(arch, processes, connects, sockets, ground)
}

fn limits(plan: &Plan, request: &Request) -> Limits {
    // Signals of the launcher have it, too, so it is not the timeout's alone.
    let grace = request.policy.limits.grace.value.as_std();
    let Watches { timeout, memory } = &plan.watches;
    Limits {
        timeout: timeout.as_ref().map(|timeout| timeout.step.after.as_std()),
        grace,
        memory: memory.as_ref().map(|memory| memory.step.limit.0),
    }
}

/// Why what was to be changed in a layer stayed read-only.
fn unlayered(plan: &Plan, request: &Request, evidence: &[Evidence]) -> Option<String> {
    request.layer.as_ref()?;
    let is_layer = |placed: &&Numbered<Placed>| matches!(placed.step, Placed::Layer { .. });
    let Some(layer) = plan.placed().iter().find(is_layer) else {
        return Some("there is none without a root of its own, or over other grants".to_owned());
    };
    evidence.iter().find(|answer| answer.step == layer.number).and_then(|one| match &one.answer {
        Answer::Less(why) => Some(why.clone()),
        Answer::Confirmed(_) => None,
    })
}

/// The steps that are the launcher's own: the clone succeeded, the clock and the watch ran. The
/// last step is confirmed by the command's start, which no message of the target can follow.
fn own_evidence(plan: &Plan, usage: &Usage, carried: &Answer) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    let mut add = |step, answer| evidence.push(Evidence { step, answer });
    if let Some(namespaces) = &plan.namespaces {
        add(namespaces.number, Answer::Confirmed(String::new()));
    }
    if let Some(Numbered { number, step, .. }) = &plan.watches.timeout {
        add(*number, Answer::Confirmed(format!("armed for {}", step.after)));
    }
    if let Some(memory) = &plan.watches.memory {
        let seen = match usage.max_tree_memory_bytes {
            Some(peak) => format!("peak seen {peak} bytes"),
            None => "ended before the first look".to_owned(),
        };
        add(memory.number, Answer::Confirmed(seen));
    }
    if let Some(carrier) = &plan.carrier {
        add(carrier.number, carried.clone());
    }
    add(plan.target.execute.number, Answer::Confirmed(String::new()));
    evidence
}

/// Ends of relays for what must not get inside, and files opened again.
type PreparedStdio = ([Option<OwnedFd>; 3], (Vec<Relay>, Vec<Relay>));

/// `namespaces` is the step that is to blame where there cannot be one more.
fn prepare_stdio(
    request: &Request,
    map: Option<&OwnerMap>,
    namespaces: usize,
) -> Result<PreparedStdio, LaunchFailure> {
    let mut ends: [Option<OwnedFd>; 3] = [None, None, None];
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let most = request.policy.limits.file_size.value.map(|size| size.0);
    for (fd, kind) in (0..).zip(&request.stdio) {
        let user = standard(fd);
        match kind {
            Stdio::Direct | Stdio::Terminal => {}
            Stdio::ReadOnlyFile(path) => {
                // Without root init does it, in namespaces where it may mount.
                if let Some(map) = map {
                    let owners = map.of_root().map_err(|e| at_step(namespaces, &e))?;
                    let opened = stdio::open_read_only(user, path, Some(owners))
                        .or_else(|_| stdio::open_read_only(user, path, None));
                    match opened {
                        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {}
                        other => ends[fd as usize] = Some(other?),
                    }
                }
            }
            Stdio::Relayed if fd == 2 && ends[1].is_some() && is_same_file(standard(1), user) => {
                ends[2] = ends[1].as_ref().map(OwnedFd::try_clone).transpose()?;
            }
            Stdio::Relayed => {
                let own = match rustix::termios::isatty(user) {
                    true => terminal::reopen(user)?,
                    false => user.try_clone_to_owned()?,
                };
                let Pipe { read, write } = Pipe::new()?;
                map.iter().for_each(|map| map.give(write.as_fd()));
                if fd == 0 {
                    set_nonblocking(write.as_fd())?;
                    inputs.push(Relay::new(own, write));
                    ends[0] = Some(read);
                } else {
                    set_nonblocking(read.as_fd())?;
                    outputs.push(Relay::output(read, own, most));
                    ends[fd as usize] = Some(write);
                }
            }
        }
    }
    Ok((ends, (inputs, outputs)))
}

/// As root, granted trees are made here: what root may read, its stand-in may not even reach. `namespaces` is the
/// step that is to blame where there cannot be one more.
fn prepare_trees(
    plan: &Plan,
    map: Option<&OwnerMap>,
    namespaces: usize,
) -> Result<(Trees, Vec<PathBuf>), LaunchFailure> {
    let (mut trees, mut unmapped) = (Trees::new(), Vec::new());
    let Some(map) = map else {
        return Ok((trees, unmapped));
    };
    for Numbered { number, step, .. } in plan.placed() {
        let staged = PathBuf::from(STAGED_LAYER);
        let (from, at, access) = match step {
            Placed::Bind { from, at, access, owner: Owner::CallerMapped, .. } => (from, at, access),
            Placed::Layer { kept_in, owner: Owner::CallerMapped, .. } => {
                (kept_in, &staged, &Access::ReadWrite)
            }
            _ => continue,
        };
        let owners = map.of(from).map_err(|e| at_step(namespaces, &e))?;
        let tree = match mapped_tree(from, *access, owners) {
            Ok(Some(tree)) => tree,
            Ok(None) => {
                unmapped.push(from.clone());
                match host_tree(from, *access, None) {
                    // Root of a container may not copy mounts; init can, in namespaces of its own.
                    Err(e) if e.raw_os_error() == Some(libc::EPERM) => continue,
                    other => other.map_err(|e| at_step(*number, &e))?,
                }
            }
            Err(e) => return Err(at_step(*number, &e)),
        };
        trees.insert(at.clone(), tree);
    }
    Ok((trees, unmapped))
}

/// `None` where the file system cannot map owners.
fn mapped_tree(
    from: &std::path::Path,
    access: Access,
    map: &OwnedFd,
) -> io::Result<Option<OwnedFd>> {
    match host_tree(from, access, Some(map)) {
        Ok(tree) => Ok(Some(tree)),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EPERM | libc::ENOSYS)) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// The failed step in the user's words.
fn explain(plan: &Plan, failed: Failed) -> Error {
    let Some(Listed { step, .. }) = plan.steps().get(failed.step).copied() else {
        return Error::Setup(SetupFailure {
            step: "set up".to_owned(),
            target: failed.part,
            errno: failed.errno,
            hint: String::new(),
        });
    };
    if let (Step::Execute(Execute { program, .. }), true) = (step, failed.part.is_empty()) {
        return match failed.errno {
            libc::ENOENT => Error::NotExecutable {
                path: program.clone(),
                why:
                    "its interpreter or loader is not visible inside (add --read for its directory)"
                        .to_owned(),
            },
            libc::ENOEXEC => Error::NotExecutable {
                path: program.clone(),
                why: "not a program this machine can run, and no #! line".to_owned(),
            },
            errno => Error::NotExecutable {
                path: program.clone(),
                why: io::Error::from_raw_os_error(errno).to_string(),
            },
        };
    }
    let target = match failed.part.is_empty() {
        true => step.operand(),
        false => failed.part,
    };
    Error::Setup(SetupFailure {
        step: step.verb().to_owned(),
        target,
        errno: failed.errno,
        hint: hint(step, failed.errno).to_owned(),
    })
}

const FEW_FILES: &str =
    "the caller's limit of open files is too low; raise it (ulimit -n 4096), or grant fewer paths";

fn hint(step: Step<'_>, errno: i32) -> &'static str {
    match (step, errno) {
        (Step::Namespaces(_), libc::EPERM | libc::ENOSPC | libc::ENOSYS | libc::EINVAL) => {
            "this host refuses namespaces; `mcp doctor` names the setting"
        }
        (Step::Placed(Placed::Proc { .. }), libc::EPERM) => {
            "the /proc of this host is masked, as in a container; `mcp doctor` says more"
        }
        (Step::Filter(_), _) => "this host refuses system call filters; `mcp doctor` says more",
        (Step::Placed(Placed::Bind { .. }), libc::ELOOP) => {
            "the path became a symlink while the sandbox was set up"
        }
        (
            Step::Hold(_) | Step::Protect(_) | Step::Mask(_),
            libc::ELOOP | libc::ESTALE | libc::ENOTDIR,
        ) => "something else was put in its place while the sandbox was set up",
        (Step::Hold(_) | Step::Protect(_) | Step::Mask(_), libc::ENOTUNIQ) => {
            "its file system takes names for the same whatever their case, so another spelling would lead around the \
             mount that closes it: move it to another file system, or do without (--no-protect, no deny rule)"
        }
        (Step::Landlock(_), libc::EACCES) => {
            "root becomes an ordinary user here, who may not go there: start mcp as an ordinary user, or put it where others may read"
        }
        (Step::Placed(Placed::Bind { .. }), libc::ENOENT) => {
            "the path was removed while the sandbox was set up"
        }
        (_, libc::EMFILE) => FEW_FILES,
        (_, libc::ENOSYS) => "needs a newer kernel, or a filter around mcp refuses it",
        _ => "",
    }
}
