//! `mcp run`: policy → request → plan → run → report.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};

use mcp_policy::{Bytes, Defaults, Origin, Policy};
use mcp_sandbox::platform::Check;
use mcp_sandbox::{
    Control, Describe, Ending, Identity, Intent, Judged, Notices, Plan, Report, Request, Usage,
    Wish, macos, platform, windows,
};

use crate::args::{Fallback, Platform, Run, Starting};
use crate::audit::{Event, Log, What, rules};
use crate::commands::policy::to_json;
use crate::failure::Failure;
use crate::render;
use crate::{layers, paths};

/// Lines about what is not shown.
const MOST_UNSHOWN: usize = 4;

mod ending;
mod explain;
mod grant;
pub mod hints;
pub mod package;
mod protection;
mod report_file;
mod runtime;
mod typed;

use hints::{Hints, Runs};
use report_file::ReportFile;

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
    let wanted = starting.report.as_deref().filter(|_| !starting.explain);
    let on_stderr = wanted.is_some_and(|path| path.as_os_str() == "-");
    let file = wanted.filter(|_| !on_stderr).map(ReportFile::create).transpose()?;
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
    if on_stderr {
        // Standard output is the server's.
        let told = report.take().unwrap_or_else(|| unplanned(command, outcome.as_ref().err()));
        render::print_to_stderr(&(to_json(&told) + "\n"));
    } else if let (Some(file), Some(path)) = (file, &starting.report) {
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
    let (mut policy, command) = match &args.reference {
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
    if args.starting.explain {
        // Fetching one may run a command, and nothing is to be run.
        policy.env.secrets.clear();
    }
    if let Some(log) = log {
        log.what.policy(&policy);
        if let Some(package) = &package {
            log.what.reference = Some(package.identity.reference.clone());
            log.what.digest = Some(package.identity.digest);
        }
    }
    let wish = Wish {
        policy,
        command,
        cwd: args.cwd.clone(),
        home,
        programs: Vec::new(),
        identity: Identity::Nobody,
    };
    let how = How {
        starting: &args.starting,
        fallback: args.starting.fallback(),
        judged: None,
        runs: if package.is_some() { Runs::Package } else { Runs::Command },
        package: package.as_ref(),
    };
    launch(wish, &how, log, report)
}

/// How a wish is to be started.
pub struct How<'a> {
    pub starting: &'a Starting,
    pub fallback: Fallback,
    /// What the guard said, where it was asked.
    pub judged: Option<Judged>,
    pub runs: Runs,
    pub package: Option<&'a package::Prepared>,
}

/// From a wish to the end of the run. Leaves a report, once there is a plan.
pub fn launch(
    wish: Wish,
    how: &How<'_>,
    log: &mut Option<Log>,
    report: &mut Option<Report>,
) -> Result<u8, Failure> {
    let starting = how.starting;
    match starting.platform {
        Some(Platform::Macos) => {
            let told = explain::Told::of_wish(&wish);
            return explain::print(&macos::explain(wish)?, &told, starting);
        }
        Some(Platform::Windows) => {
            let told = explain::Told::of_wish(&wish);
            return explain::print(&windows::explain(wish)?, &told, starting);
        }
        None => {}
    }
    // What was compared with its bundle holds what an archive can hold.
    let package = how.package;
    let plain: Vec<_> = package.iter().filter_map(|package| package.compared_root()).collect();
    let request = platform::resolve_knowing(wish, &plain).map_err(|error| match package {
        Some(package) => package.telling(error.into()),
        None => error.into(),
    })?;
    if let Some(package) = package
        && !starting.explain
    {
        runtime::check(&package.needs, &request.program)?;
    }
    let mut facts =
        if starting.explain { platform::probe_host()? } else { platform::assume_host()? };
    let claim = platform::claim(&request, &mut facts);
    let mut plan = mcp_sandbox::plan(&request, &facts);
    if starting.explain {
        return explain::print(&plan, &explain::Told::of(&request), starting);
    }
    let mut not_started = |plan: &Plan<platform::Step>, failure: Failure| {
        let told = not_started(plan, &request, failure.to_string(), failure.exit_code());
        *report = Some(Report { guard: how.judged.clone(), ..told });
        failure
    };
    settle_gaps(&plan, &request.policy, how).map_err(|failure| not_started(&plan, failure))?;
    if !starting.quiet {
        warn_of_little_memory(&request.policy);
        for held in &request.held_back {
            let name = render::plain(&held.name);
            render::say(&format!(
                "{name} is not passed on ({}) — name it with --env {name}",
                held.reason
            ));
        }
    }
    let mut hints = match starting.quiet {
        true => Hints::none(),
        false => Hints::new(how.runs, &request, &facts),
    };
    if !starting.quiet {
        tell_unshown(&request);
    }
    hints.before();
    if let Some(log) = log {
        log.hidden = hidden(&request);
        log.start()?;
    }
    let notices = if starting.quiet { Notices::Silent } else { Notices::Stderr };
    let changed = Cell::new(None);
    let look = || match package.map_or(Ok(()), package::Prepared::check) {
        Ok(()) => true,
        Err(failure) => {
            changed.set(Some(failure));
            false
        }
    };
    let check: Option<Check<'_>> = if plain.is_empty() { None } else { Some(&look) };
    let mut outcome = platform::run(&plan, &request, claim, notices, check);
    if let Err(error) = &outcome
        && let Some(again) = mcp_sandbox::plan_again(&request, &plan, error)?
    {
        plan = again.plan;
        settle_gaps(&plan, &request.policy, how).map_err(|failure| not_started(&plan, failure))?;
        outcome = platform::run(&plan, &request, again.claim, notices, check);
    }
    let mut ended = outcome.map_err(|error| {
        not_started(&plan, changed.take().unwrap_or_else(|| Failure::from(error)))
    })?;
    ended.guard = how.judged.clone();
    protection::tell(&ended, starting.quiet);
    if !starting.quiet {
        ending::tell(&ended, &request.policy.limits);
    }
    hints.after(&ended);
    Ok(report.insert(ended).exit_code)
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

fn not_started<S: Describe>(plan: &Plan<S>, request: &Request, why: String, code: u8) -> Report {
    let command = request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    Report::new(plan, &[], command, Ending::NotStarted(why), code, Usage::default())
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

/// Fail closed, degrade in the open: boundaries stop the run, limits are told.
fn settle_gaps<S>(plan: &Plan<S>, policy: &Policy, how: &How<'_>) -> Result<(), Failure> {
    let stopping: Vec<(Control, &Intent)> =
        if how.starting.strict { plan.gaps().collect() } else { plan.boundary_gaps().collect() };
    if !stopping.is_empty() {
        let list =
            stopping.iter().map(|(control, intent)| render::plain(&sentence(*control, intent)));
        let list = list.collect::<Vec<_>>().join("\n     ");
        match how.fallback {
            _ if how.starting.strict => {
                return Err(Failure::Refused(format!(
                    "not started, because --strict was given:\n     {list}\n     \
                     (take the limit away with `none`, or leave out --strict)"
                )));
            }
            Fallback::Deny => {
                return Err(Failure::Refused(format!(
                    "not started: {list}\n     (--fallback warn starts without it)"
                )));
            }
            Fallback::Warn => render::say(&format!("warning: {list}")),
            Fallback::Prompt => ask(&list)?,
        }
        // Without whole boundaries, what the guard could not read, or let pass because of them, is not run.
        if let Some(judged) = &how.judged
            && (judged.decision == "unknown" || !judged.noted.is_empty())
        {
            return Err(Failure::Guarded(format!(
                "not started: the guard leaves part of the command to the sandbox ({}), and the sandbox is not \
                 whole here",
                [&judged.rules[..], &judged.noted[..]].concat().join(", ")
            )));
        }
    }
    if how.starting.quiet {
        return Ok(());
    }
    let told: Vec<_> = plan.told_gaps().map(|(control, _)| control.to_string()).collect();
    if !told.is_empty() && stopping.is_empty() {
        render::say(&format!(
            "warning: only partly enforced on this host: {} (mcp run --explain says what is \
             missing, --strict refuses to start)",
            told.join(", ")
        ));
    }
    for (control, intent) in plan.gaps().filter(|(control, _)| !control.is_boundary()) {
        // A default that degrades is in the report; only what somebody asked for is worth a line.
        let unavailable = matches!(intent, Intent::Unavailable { .. });
        if unavailable && was_asked_for(control, policy) {
            render::say(&render::plain(&format!("warning: {}", sentence(control, intent))));
        }
    }
    Ok(())
}

fn was_asked_for(control: Control, policy: &Policy) -> bool {
    let limits = &policy.limits;
    let origin = match control {
        Control::Memory => &limits.memory.origin,
        Control::Cpu => &limits.cpu.origin,
        Control::CpuTime => &limits.cpu_time.origin,
        Control::Io => &limits.io.origin,
        Control::Processes => &limits.processes.origin,
        Control::OpenFiles => &limits.open_files.origin,
        Control::FileSize => &limits.file_size.origin,
        Control::TmpSize => &limits.tmp_size.origin,
        Control::AddressSpace => &limits.address_space.origin,
        Control::Timeout => &limits.timeout.origin,
        _ => return true,
    };
    *origin != Origin::Default
}

fn sentence(control: Control, intent: &Intent) -> String {
    match intent {
        Intent::Unavailable { why, remedy } => {
            format!("{control} cannot be enforced: {why}; {remedy}")
        }
        Intent::Partial { by, missing, .. } => {
            format!("{control} is only partly enforced by {by}: {missing}")
        }
        Intent::Enforce { by } => format!("{control} is enforced by {by}"),
        Intent::NotRequested => format!("{control} was not asked for"),
    }
}

fn ask(list: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::Refused(format!(
            "not started: {list}\n     (nobody to ask here; --fallback warn starts without it)"
        )));
    }
    render::say(&format!("warning: {list}"));
    eprint!("{} start anyway? [y/N] ", render::prefix());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::Refused("not started".to_owned())),
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
