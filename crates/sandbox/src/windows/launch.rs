//! From a plan to a running command: job, token, container and DACL entries first, then the self-test inside them, then
//! the command, suspended until it is in its job. In the end everything is removed.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::core::error::{Error, SetupFailure};
use crate::core::exit_code;
use crate::core::notices::Notices;
use crate::core::plan::Plan;
use crate::core::report::{Answer, Evidence, Report};
use crate::core::request::Request;
use crate::protected::Undoings;
use crate::windows::access::Grant;
use crate::windows::channel::Failed;
use crate::windows::confinement::Confinement;
use crate::windows::failure::{RunError, at_step};
use crate::windows::network::REMEDY;
use crate::windows::proxy_host::{ProxyHost, RunningProxy};
use crate::windows::runs::HeldRecord;
use crate::windows::stdio_pipes::Streams;
use crate::windows::step::{Act, Step};
use crate::windows::supervise::{Ended, Limits, Supervisor};
use crate::windows::sys::console::Listening;
use crate::windows::sys::process::Process;
use crate::windows::sys::pty::PseudoConsole;
use crate::windows::terminal::Terminal;
use crate::windows::{command_line, environment, program_files, protect, self_test, win32};

/// Runs the command to its end.
pub fn run(plan: &Plan<Step>, request: &Request, notices: Notices) -> Result<Report, Error> {
    let proxy_host = ProxyHost::prepare(plan, request, notices)?;
    let outcome = try_run(plan, request, proxy_host);
    // However it ended, unless the command was never started.
    let undone = match &outcome {
        Err(RunError::Step(_)) => Undoings::default(),
        _ => protect::undo(request),
    };
    match outcome {
        Ok(report) => Ok(report.with_undone(undone)),
        Err(RunError::Step(failed)) => Err(explain(plan, failed)),
        Err(RunError::Io(source)) => Err(Error::Io { doing: "run the sandbox".to_owned(), source }),
    }
}

/// Sets everything up, runs the self-test, and removes everything again: for `doctor`.
pub fn rehearse(plan: &Plan<Step>, proxy_host: Option<ProxyHost>) -> Result<(), RunError> {
    let confinement = Confinement::build(plan)?;
    let running_proxy = proxy_host.map(|proxy_host| proxy_host.start(&confinement)).transpose()?;
    self_test::look(plan, &confinement, running_proxy.as_ref()).map(drop)
}

fn try_run(
    plan: &Plan<Step>,
    request: &Request,
    proxy_host: Option<ProxyHost>,
) -> Result<Report, RunError> {
    let limits = limits(plan, request);
    let mut confinement = Confinement::build(plan)?;
    let command: Vec<String> =
        request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let mut listed = HeldRecord::begin(&confinement.run, command.clone());
    let meter = listed.as_ref().and_then(HeldRecord::meter);
    let running_proxy =
        proxy_host.map(|proxy_host| proxy_host.metered(meter).start(&confinement)).transpose()?;
    let mut evidence = confinement.evidence.clone();
    evidence.extend(self_test::look(plan, &confinement, running_proxy.as_ref())?);
    if self_test::is_desktop_closed(plan, &evidence) {
        confinement.leave_desktop();
    }
    let _listening = Listening::to(&confinement.port)?;
    let streams = Streams::prepare(&request.stdio, limits.timeout.is_some())?;
    let proxy = running_proxy.as_ref().map(RunningProxy::variables).unwrap_or_default();
    let mut terminal = Terminal::open(&request.stdio, &confinement);
    let console = terminal.as_ref().and_then(Terminal::console);
    let process = start(plan, request, (&confinement, &proxy), (&streams, console), &mut evidence)?;
    if let Some(listed) = &mut listed {
        listed.started(process.id);
    }
    let (input, outputs) = match &mut terminal {
        None => streams.relay(),
        Some(terminal) => {
            terminal.listen();
            streams.forget()
        }
    };
    let supervisor = Supervisor::new(&confinement.job, &confinement.port, process, limits, input);
    let ended = supervisor.run();
    drop(terminal);
    let ended = ended?;
    outputs.finish();
    evidence.extend(own_evidence(plan, &ended));
    let network = running_proxy.map(|running_proxy| running_proxy.finish(&mut evidence));
    drop(confinement);
    drop(listed);
    let code = exit_code::of(&ended.ending);
    let mut report = Report::new(plan, &evidence, command, ended.ending, code, ended.usage);
    report.network = network.filter(|network| !network.is_empty());
    Ok(report)
}

fn start(
    plan: &Plan<Step>,
    request: &Request,
    (confinement, proxy): (&Confinement, &[(&'static str, String)]),
    (streams, console): (&Streams, Option<&PseudoConsole>),
    evidence: &mut Vec<Evidence>,
) -> Result<Process, RunError> {
    let last = plan.steps.len().saturating_sub(1);
    let fail = |e: &io::Error| at_step(last, e);
    let (program, line) = invocation(request).map_err(|why| {
        RunError::Step(Failed {
            step: last,
            errno: win32::ERROR_NOT_SUPPORTED,
            why: why.to_owned(),
        })
    })?;
    let (mut variables, mut cwd) = (Vec::new(), OsString::new());
    for planned in &plan.steps {
        match &planned.step {
            Step::Environment { set } => variables = set.clone(),
            Step::Execute { cwd: at, .. } => cwd = at.into(),
            _ => {}
        }
    }
    for (name, secret) in &request.secrets {
        environment::put(&mut variables, name.clone(), secret.reveal().clone());
    }
    for (name, value) in proxy {
        environment::put(&mut variables, (*name).into(), value.into());
    }
    let block = environment::block(&variables);
    let start = confinement.start(&program, &line, &block, &cwd, &streams.inside);
    let suspended = match console {
        None => start.suspended(),
        Some(console) => start.suspended_in(console),
    };
    let suspended = suspended.map_err(|e| fail(&e))?;
    let process = suspended.resume().map_err(|e| fail(&e))?;
    let seen = format!("process {} was put into the job before its first instruction", process.id);
    evidence.push(Evidence { step: last, answer: Answer::Confirmed(seen) });
    Ok(process)
}

/// What is executed, and its command line.
fn invocation(request: &Request) -> Result<(OsString, OsString), command_line::QuotingError> {
    let program = request.program.as_os_str();
    let arguments = request.argv.get(1..).unwrap_or_default();
    if program_files::is_batch(Path::new(program)) {
        let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
        let shell = Path::new(&root).join(r"System32\cmd.exe");
        return Ok((shell.into(), command_line::of_batch(program, arguments)?));
    }
    let line = command_line::of_shell(program, arguments)
        .unwrap_or_else(|| command_line::of_program(program, arguments))?;
    Ok((program.to_owned(), line))
}

fn limits(plan: &Plan<Step>, request: &Request) -> Limits {
    let grace = request.policy.limits.grace.value.as_std();
    let mut limits = Limits { timeout: None, grace, has_time_limit: false };
    for planned in &plan.steps {
        if let Step::Job { limits: job } = &planned.step {
            limits.has_time_limit = job.user_time.is_some();
        }
        if let Step::Timeout { after, grace } = &planned.step {
            limits.timeout = Some(after.as_std());
            limits.grace = grace.as_std();
        }
    }
    limits
}

/// The steps that only the end confirms.
fn own_evidence(plan: &Plan<Step>, ended: &Ended) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    for (step, planned) in plan.steps.iter().enumerate() {
        let answer = match &planned.step {
            Step::Timeout { after, .. } => Answer::Confirmed(format!("armed for {after}")),
            Step::Environment { .. } => Answer::Confirmed(String::new()),
            Step::Execute { .. } if !ended.is_tree_dead => {
                Answer::Less("some processes could not be ended".to_owned())
            }
            _ => continue,
        };
        evidence.push(Evidence { step, answer });
    }
    evidence
}

/// The failed step in the user's words.
fn explain(plan: &Plan<Step>, failed: Failed) -> Error {
    let Some(planned) = plan.steps.get(failed.step) else {
        let (step, hint) = ("set up".to_owned(), String::new());
        return Error::Setup(SetupFailure { step, target: failed.why, errno: failed.errno, hint });
    };
    if let Step::Execute { program, .. } = &planned.step {
        let why = match failed.errno {
            _ if !failed.why.is_empty() => failed.why,
            win32::ERROR_FILE_NOT_FOUND => "does not exist".to_owned(),
            win32::ERROR_BAD_EXE_FORMAT => "not a program this machine can run".to_owned(),
            win32::ERROR_ELEVATION_REQUIRED => {
                "its manifest requires an administrator, which a sandboxed program cannot be"
                    .to_owned()
            }
            win32::ERROR_ACCESS_DENIED => {
                "the system refuses it (add --read for the directory of the program)".to_owned()
            }
            errno => io::Error::from_raw_os_error(errno).to_string(),
        };
        return Error::NotExecutable { path: program.clone(), why };
    }
    let hint = match &planned.step {
        Step::Grant { grant: Grant { path, .. } } | Step::LastingGrant { path }
            if failed.errno == win32::ERROR_ACCESS_DENIED =>
        {
            format!(
                "you cannot change its DACL (no WRITE_DAC): grant a directory of your own, or run once, as \
                 administrator: icacls \"{path}\" /grant *S-1-15-2-1:(OI)(CI)(RX)"
            )
        }
        Step::Reached => REMEDY.to_owned(),
        // The reason names a port in use already.
        Step::Served { .. } if failed.errno == win32::ERROR_NOT_SUPPORTED => REMEDY.to_owned(),
        Step::Refused { act: Act::Reach { .. } | Act::Change { .. } | Act::Move { .. } } => {
            "every container may have it already, by an entry for ALL APPLICATION PACKAGES"
                .to_owned()
        }
        _ => String::new(),
    };
    let parts = [failed.why, hint];
    let hint: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Error::Setup(SetupFailure {
        step: planned.step.verb().to_owned(),
        target: planned.step.operand(),
        errno: failed.errno,
        hint: hint.join("; "),
    })
}
