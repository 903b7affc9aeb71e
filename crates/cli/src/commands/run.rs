//! `mcp run`: policy → request → plan → run → report.

use std::cell::Cell;
use std::ffi::OsString;

use mcp_policy::{Bytes, Defaults, Fallback, Policy};
use mcp_sandbox::session::{Options, Scene, Session};
use mcp_sandbox::{
    Describe, Ending, Identity, Intent, Judged, Notices, Plan, Report, Request, RunSpec, macos,
    windows,
};
use serde::Serialize;

use crate::args::{Platform, Run, Starting};
use crate::audit::{Event, Log, What, rules};
use crate::commands::policy::to_json;
use crate::failure::Failure;
use crate::render::{self, Paint};
use crate::{layers, paths};

/// Lines about what is not shown.
const MOST_UNSHOWN: usize = 4;

mod again;
mod grant;
pub mod package;
mod protection;
mod report_file;
mod runtime;
mod terminal;
mod typed;

use report_file::ReportFile;
use terminal::Terminal;

pub fn run(mut args: Box<Run>) -> Result<u8, Failure> {
    typed::understand(&mut args)?;
    let what = What::new(args.reference.as_deref(), first(&args.command));
    recorded(&args.starting, what, &args.command, |log, report| start(&args, log, report))
}

/// Does what `start` does, with a line in the log and a report, however it ends.
pub fn recorded(
    starting: &Starting,
    what: What,
    command: &[OsString],
    start: impl FnOnce(&mut Option<Log>, &mut Option<Report>) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let mut log = match starting.explain || starting.log.no_log {
        true => None,
        false => Some(Log::open(what)?),
    };
    // First of all: one that cannot be written must not be found out after an hour, and one of an
    // earlier run must not pass for this one's, however early this one fails.
    let file = starting.report.as_deref().filter(|_| !starting.explain);
    let file = file.map(ReportFile::create).transpose()?;
    let mut report = None;
    let outcome = start(&mut log, &mut report);
    if let Some(log) = &log {
        match &outcome {
            Ok(_) => report.iter().for_each(|report| log.end(Event::end(report, &log.hidden))),
            Err(failure) => log.end(Event::Refused {
                exit_code: failure.exit_code(),
                why: failure.word().into(),
                rules: report.as_ref().map(rules).unwrap_or_default(),
            }),
        }
    }
    if let (Some(file), Some(path)) = (file, &starting.report) {
        let report = report.unwrap_or_else(|| unplanned(command, outcome.as_ref().err()));
        // What has run has run: its ending stays the answer.
        if let Err(error) = file.write(&to_json(&report)) {
            render::say(&format!("the report is not written: {}", Failure::file(path, &error)));
        }
    }
    outcome
}

pub fn first(command: &[OsString]) -> Option<&std::ffi::OsStr> {
    command.first().map(|word| word.as_os_str())
}

/// Leaves a report, once there is a plan.
fn start(args: &Run, log: &mut Option<Log>, report: &mut Option<Report>) -> Result<u8, Failure> {
    let mut package = None;
    let (policy, command) = match &args.reference {
        Some(word) => {
            let prepared = package::prepare(args, word)?;
            let (policy, command) = (prepared.policy.clone(), prepared.command.clone());
            package = Some(prepared);
            (policy, command)
        }
        None if args.command.is_empty() => {
            return Err(Failure::Usage(
                "nothing to run; give a command or a package: mcp run npx -y NAME, mcp run npm:NAME"
                    .to_owned(),
            ));
        }
        None => (layers::effective(&args.permissions, Defaults::run())?, args.command.clone()),
    };
    let home =
        args.home.as_deref().map(|name| kept_home(name, args.starting.explain)).transpose()?;
    if let Some(log) = log {
        log.what.policy(&policy);
        if let Some(package) = &package {
            log.what.reference = Some(package.identity.reference.clone());
            log.what.digest = Some(package.identity.digest);
        }
    }
    let spec = RunSpec {
        policy,
        command,
        cwd: args.cwd.clone(),
        home,
        programs: Vec::new(),
        identity: Identity::Nobody,
    };
    let how = How {
        starting: &args.starting,
        fallback: args.starting.fallback.unwrap_or_default(),
        judged: None,
        package: package.as_ref(),
    };
    launch(spec, how, log, report)
}

/// How a spec is to be started.
pub struct How<'a> {
    pub starting: &'a Starting,
    pub fallback: Fallback,
    /// What the guard said, where it was asked.
    pub judged: Option<Judged>,
    pub package: Option<&'a package::Prepared>,
}

/// From a spec to the end of the run. Leaves a report, once there is a plan.
pub fn launch(
    spec: RunSpec,
    how: How<'_>,
    log: &mut Option<Log>,
    report: &mut Option<Report>,
) -> Result<u8, Failure> {
    let How { starting, fallback, judged, package } = how;
    // What was compared with its bundle holds what an archive can hold.
    let plain: Vec<_> = package.iter().filter_map(|package| package.compared_root()).collect();
    let telling = |error: mcp_sandbox::Error| match package {
        Some(package) => package.telling(error.into()),
        None => error.into(),
    };
    if starting.explain {
        return match starting.platform {
            Some(Platform::Macos) => print_plan(&macos::explain(spec)?, starting.json),
            Some(Platform::Windows) => print_plan(&windows::explain(spec)?, starting.json),
            None => {
                print_plan(&Session::explain(spec, &plain).map_err(telling)?.plan, starting.json)
            }
        };
    }
    let changed = Cell::new(None);
    let look = || match package.map_or(Ok(()), package::Prepared::check) {
        Ok(()) => true,
        Err(failure) => {
            changed.set(Some(failure));
            false
        }
    };
    let mut options = Options::default();
    options.fallback = fallback;
    options.strict = starting.strict;
    options.notices = if starting.quiet { Notices::Silent } else { Notices::Stderr };
    options.judged = judged;
    options.check = if plain.is_empty() { None } else { Some(&look) };
    options.plain = plain;
    let session = Session::prepare(spec, options).map_err(telling)?;
    if let Some(package) = package {
        runtime::check(&package.needs, &session.request().program)?;
    }
    let mut terminal = Terminal { starting, log, answer: None };
    match session.run(&mut terminal) {
        Ok(ended) => {
            protection::tell(&ended.report, starting.quiet);
            if !starting.quiet {
                tell_ending(&ended.report, &ended.scene());
            }
            Ok(report.insert(ended.report).exit_code)
        }
        Err(not_started) => {
            let failure = changed.take().unwrap_or_else(|| terminal.failure(not_started.error));
            *report = not_started.report.map(|mut told| {
                told.ending = Ending::NotStarted(failure.to_string());
                told.exit_code = failure.exit_code();
                *told
            });
            Err(failure)
        }
    }
}

/// What something in a writable place leads to, and is not shown: a few lines, for the command can make many.
fn tell_unshown(request: &Request) {
    for unshown in request.unshown.iter().take(MOST_UNSHOWN) {
        let at = unshown.at.display();
        let read = quoted(unshown.read.as_os_str());
        render::say(&render::plain(&format!(
            "{at} {}: not shown (--read {read} shows it)",
            unshown.why()
        )));
    }
    if let Some(more @ 1..) = request.unshown.len().checked_sub(MOST_UNSHOWN) {
        render::say(&format!("{more} more such programs are not shown"));
    }
}

/// Values that are the user's own: secrets, and what was set in the environment.
fn hidden(request: &Request) -> Vec<String> {
    let secrets = request.secrets.iter().map(|(_, secret)| secret.reveal().to_string_lossy());
    let set = request.policy.env.set.values().map(|set| set.value.as_str().into());
    secrets.chain(set).map(std::borrow::Cow::into_owned).collect()
}

fn unplanned(command: &[OsString], failure: Option<&Failure>) -> Report {
    let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let why = failure.map_or_else(String::new, ToString::to_string);
    Report::unplanned(command, why, failure.map_or(0, Failure::exit_code))
}

/// Programs that cannot get the memory to start with end without a word.
fn warn_of_little_memory(policy: &Policy) {
    if let Some(limit) = policy.limits.memory.value.filter(|limit| *limit < Bytes::mib(1)) {
        render::say(&format!(
            "warning: a memory limit of {limit} is less than most programs need to start \
             (--max-memory 64M is more than enough for small ones)"
        ));
    }
}

fn print_plan<S: Describe + Serialize>(plan: &Plan<S>, as_json: bool) -> Result<u8, Failure> {
    render::print(&if as_json { to_json(plan) + "\n" } else { explain(plan) });
    Ok(0)
}

pub fn kept_home(name: &str, only_explain: bool) -> Result<std::path::PathBuf, Failure> {
    let homes = paths::homes().ok_or_else(|| {
        Failure::Usage("--home needs a data directory: set HOME or XDG_DATA_HOME".to_owned())
    })?;
    let home = homes.join(name);
    if only_explain {
        return Ok(home);
    }
    mcp_package::store::make_private(&home).map_err(|e| Failure::file(&home, &e))?;
    paths::real(&home).map_err(|e| Failure::file(&home, &e))
}

/// One line for an ending that was ours, or for the likeliest reason of one that was not.
fn tell_ending(report: &Report, scene: &Scene<'_>) {
    let limits = &scene.request.policy.limits;
    match (&report.ending, &limits.memory.value, &limits.timeout.value) {
        (Ending::MemoryLimit, Some(limit), _) => {
            let peak = report.usage.max_tree_memory_bytes.unwrap_or_default();
            let peak = render::rounded_bytes(peak);
            render::say(&format!(
                "killed: memory limit {limit} reached (peak {peak}) — raise with --max-memory"
            ));
        }
        (Ending::Timeout, _, Some(limit)) => {
            render::say(&format!("killed: timeout {limit} reached — raise with --timeout"));
        }
        (Ending::SandboxFailed(why), ..) => {
            render::say(&format!(
                "killed: the sandbox failed while the command ran: {}",
                render::plain(why)
            ));
        }
        (Ending::Exited(code), ..) if *code != 0 => hint_at_hidden(scene),
        _ => {}
    }
    if let (Some(limit), 1..) = (limits.processes.value, report.usage.refused_processes) {
        let count = report.usage.refused_processes;
        render::say(&format!(
            "process limit {limit} reached ({count} refused) — raise with --max-pids"
        ));
    }
    if report.blocked_processes > 0 {
        render::say("blocked a new process (subprocess is off)");
    }
}

/// A failed command was perhaps given a path that it could not see.
fn hint_at_hidden(scene: &Scene<'_>) {
    let request = scene.request;
    let Ok(cwd) = std::env::current_dir() else {
        return;
    };
    for argument in request.argv.iter().skip(1) {
        let path = cwd.join(argument);
        let Ok(real) = paths::real(&path) else {
            continue;
        };
        if argument.is_empty() {
            continue;
        }
        if let Some(rule) = request.denying(&real) {
            let rule = rule.value.to_string_lossy();
            let argument = argument.to_string_lossy();
            let told = format!("{argument} is denied to the command (by --deny {rule})");
            render::say(&render::plain(&told));
        } else if !scene.shows(&real) {
            render::say(&format!(
                "{} is here, but not visible to the command (add --read {})",
                render::plain(&argument.to_string_lossy()),
                render::plain(&quoted(argument))
            ));
        }
    }
}

/// As a shell would take it.
pub fn quoted(argument: &std::ffi::OsStr) -> String {
    let text = argument.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,~".contains(c);
    if text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn explain<S: Describe>(plan: &Plan<S>) -> String {
    let paint = Paint::stdout();
    let mut text = format!("{}\n", paint.strong("Controls"));
    for (control, intent) in &plan.controls {
        let name = format!("{control:<18}");
        text += &match intent {
            Intent::Enforce { by } => format!("  {} {name} {by}\n", paint.good("[✓]")),
            Intent::Partial { by, missing, .. } => {
                format!("  {} {name} {by}\n      {:<18} {missing}\n", paint.warn("[!]"), "")
            }
            Intent::Unavailable { why, remedy } => {
                format!("  {} {name} {why}\n      {:<18} {remedy}\n", paint.bad("[⚠]"), "")
            }
            Intent::NotRequested => format!("  {} {name} not asked for\n", paint.faint("[ ]")),
        };
    }
    text += &format!("{}\n", paint.strong("Steps"));
    for (number, planned) in (1..).zip(&plan.steps) {
        let stage = planned.step.stage();
        let step = render::plain(&planned.step.to_string());
        text += &format!("  {number:>3}  {stage:<9} {step}\n");
    }
    for (title, attachment) in plan.steps.iter().filter_map(|planned| planned.step.attachment()) {
        text += &format!("{}\n{attachment}", paint.strong(title));
    }
    text
}
