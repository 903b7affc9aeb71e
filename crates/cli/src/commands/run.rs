//! `mcp run`: policy → request → plan → run → report.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

use mcp_policy::{Defaults, Fallback};
use mcp_sandbox::session::{Options, Session};
use mcp_sandbox::{
    Ending, Identity, Judged, Notices, Report, Request, RunSpec, Watching, WritableLayer, macos,
    windows,
};

use crate::args::{self, Platform, Run, Starting};
use crate::audit::{AuditLog, Event, What, rules};
use crate::failure::Failure;
use crate::render;
use crate::render::to_json;
use crate::{layers, paths};

/// Lines about what is not shown.
const MOST_UNSHOWN: usize = 4;

mod browser;
mod ending;
mod explain;
mod grant;
pub mod hints;
pub mod package;
mod protection;
pub mod report_file;
mod restart;
mod runtime;
mod terminal;
mod typed;
mod warnings;

use browser::Browser;
use hints::{Hints, Listener, Runs};
use report_file::ReportFile;
use terminal::Terminal;
pub use typed::as_package;

pub fn run(mut args: Box<Run>) -> Result<u8, Failure> {
    if args.starting.json && !args.starting.explain {
        return Err(Failure::Usage(
            "--json goes with --explain here, for standard output is the server's; what a run did: --report FILE, or --report - \
             for standard error"
                .to_owned(),
        ));
    }
    // Nothing is what the options have taken for themselves: no file is made for it.
    if args.reference.is_none() && args.command.is_empty() {
        let taken = match args::taken_by_an_option() {
            Some((option, word)) => format!(
                " ({} takes the word after it, {})",
                render::plain(&option),
                render::plain(&word)
            ),
            None => String::new(),
        };
        return Err(Failure::Usage(format!(
            "nothing to run{taken}; give a command or a package: mcp run npx -y NAME, mcp run npm:NAME"
        )));
    }
    // A mistake is a run that did not start: it is in the log and in the report, too.
    let understood = typed::understand(&mut args);
    let what = What::new(args.reference.as_deref(), &args.command);
    recorded(&args.starting, what, &args.command, |log, report| {
        understood?;
        start(&args, log, report)
    })
}

/// Does what `start` does, with a line in the log and a report, however it ends.
pub fn recorded(
    starting: &Starting,
    what: What,
    command: &[OsString],
    start: impl FnOnce(&mut Option<AuditLog>, &mut Option<Report>) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let mut log = match starting.explain || starting.log.no_log {
        true => None,
        false => Some(AuditLog::open(what)?),
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
            Ok(_) => report.iter().for_each(|report| {
                log.end(Event::end(report, &log.hidden).hinted(&log.hints));
            }),
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

/// Leaves a report, once there is a plan.
fn start(
    args: &Run,
    log: &mut Option<AuditLog>,
    report: &mut Option<Report>,
) -> Result<u8, Failure> {
    let mut package = None;
    let browser = if args.browser { Some(Browser::find()?) } else { None };
    let (policy, command) = match &args.reference {
        Some(word) => {
            let prepared = package::prepare(args, word, browser.as_ref())?;
            let (policy, command) = (prepared.policy.clone(), prepared.command.clone());
            package = Some(prepared);
            (policy, command)
        }
        None => {
            let own: Vec<_> = browser.iter().map(Browser::layer).collect::<Result<_, _>>()?;
            let defaults = browser.as_ref().map_or_else(Defaults::run, |_| Browser::defaults());
            let policy = layers::effective_over(own, &args.permissions, defaults)?;
            (policy, args.command.clone())
        }
    };
    // Nothing that is kept on the host's disk has a bound, and --strict wants every bound.
    if let Some(package) =
        package.as_mut().filter(|_| !args.package.ephemeral && !args.starting.strict)
    {
        package.keep(&args.starting);
    }
    let kept = package.as_ref().and_then(|package| package.kept.as_ref());
    let home = match &args.home {
        Some(name) => Some(kept_home(name, args.starting.explain)?),
        None => kept.map(|kept| kept.home.clone()),
    };
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
        identity: Identity::None,
    };
    let how = How {
        starting: &args.starting,
        fallback: args.starting.fallback.unwrap_or_default(),
        judged: None,
        runs: if package.is_some() { Runs::Package } else { Runs::Command },
        package: package.as_ref(),
        json_only: package.is_some() && !args.package.raw,
        hints: None,
        browser: browser.as_ref(),
    };
    launch(spec, how, log, report)
}

/// How a spec is to be started.
pub struct How<'a> {
    pub starting: &'a Starting,
    pub fallback: Fallback,
    /// What the guard said, where it was asked.
    pub judged: Option<Judged>,
    pub runs: Runs,
    pub package: Option<&'a package::Prepared>,
    /// Whether what is no JSON goes to standard error: clients of a server cannot read it.
    pub json_only: bool,
    /// Where the hints go instead of standard error.
    pub hints: Option<&'a Path>,
    /// The browser that a person gave it.
    pub browser: Option<&'a Browser>,
}

/// From a spec to the end of the run. Leaves a report, once there is a plan.
pub fn launch(
    spec: RunSpec,
    how: How<'_>,
    log: &mut Option<AuditLog>,
    report: &mut Option<Report>,
) -> Result<u8, Failure> {
    let How { starting, fallback, judged, runs, package, json_only, hints: hints_file, browser } =
        how;
    let scripts = browser.map_or_else(Vec::new, |browser| browser.scripts(&spec.policy));
    let told_browser = browser.map(|browser| browser.told(&spec.policy));
    // What was compared with its bundle holds what an archive can hold.
    let plain: Vec<_> = package.iter().filter_map(|package| package.compared_root()).collect();
    let telling = |error: mcp_sandbox::Error| match package {
        Some(package) => package.telling(error.into()),
        None => error.into(),
    };
    let mut options = Options::default();
    (options.plain, options.layer, options.scripts) = (plain, layer(package), scripts);
    if starting.explain {
        return explained(spec, options, told_browser, starting, &telling);
    }
    let changed = Cell::new(None);
    let look = || match package.map_or(Ok(()), package::Prepared::check) {
        Ok(()) => true,
        Err(failure) => {
            changed.set(Some(failure));
            false
        }
    };
    options.fallback = fallback;
    options.strict = starting.strict;
    options.notices = if starting.quiet { Notices::Silent } else { Notices::Stderr };
    options.watching = watching(starting);
    options.judged = judged;
    options.check = if options.plain.is_empty() { None } else { Some(&look) };
    options.json_only = json_only;
    let session = Session::prepare(spec, options).map_err(telling)?;
    if let Some(package) = package {
        runtime::check(&package.needs, &session.request().program)?;
    }
    let listener = hints_file.map_or(Listener::Person, |_| Listener::Program(Vec::new()));
    let mut terminal =
        Terminal { starting, log, answer: None, hints: Hints::none(), runs, listener };
    match session.run(&mut terminal) {
        Ok(mut ended) => {
            ended.report.browser = told_browser;
            if starting.watch_paths {
                ended.report.unpassed = hints::unpassed(runs, ended.view());
            }
            protection::tell(&ended.report, starting.quiet);
            if !starting.quiet {
                ending::tell(&ended.report, &ended.view().request.policy.limits);
            }
            terminal.tell_after(&ended.report, hints_file);
            if let Some(package) = package.filter(|_| !starting.quiet) {
                package.tell_kept(&ended.report);
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

/// What would be done, on this system or the one that `--platform` names.
fn explained(
    spec: RunSpec,
    options: Options<'_>,
    browser: Option<String>,
    starting: &Starting,
    telling: &dyn Fn(mcp_sandbox::Error) -> Failure,
) -> Result<u8, Failure> {
    let told = explain::Told::of_spec(&spec).with_browser(browser);
    match starting.platform {
        Some(Platform::Macos) => explain::print(&macos::explain(spec)?, &told, starting),
        Some(Platform::Windows) => explain::print(&windows::explain(spec)?, &told, starting),
        None => {
            let explained = Session::explain(spec, options).map_err(telling)?;
            let told = explain::Told::of(&explained.request, told);
            explain::print(&explained.outline(), &told, starting)
        }
    }
}

fn layer(package: Option<&package::Prepared>) -> Option<WritableLayer> {
    package?.kept.as_ref()?.layer.clone()
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

/// A person at a terminal is told what was refused where the system keeps a log of that; a program that reads our
/// output does not wait for it.
fn watching(starting: &Starting) -> Watching {
    let is_told = !starting.quiet && std::io::stderr().is_terminal();
    match starting.watch_paths {
        true => Watching::Paths,
        false if cfg!(target_os = "macos") && is_told => Watching::Failure,
        false => Watching::Off,
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
