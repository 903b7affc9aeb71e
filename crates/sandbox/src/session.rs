//! One run, from what was asked to its report. `mcp run`, `mcp exec` and the [helper](crate::helper) of a
//! [`Sandbox`](crate::Sandbox) all go this way.
//!
//! ```text
//! RunSpec ──prepare──▶ Session ──run──▶ FinishedRun (with its Report) or NotStarted
//!         ╰─explain──▶ Plan
//! ```
//!
//! A session makes the process that calls it the launcher: it copies itself, which is safe only with a single
//! thread. Programs with threads use [`Sandbox`](crate::Sandbox), which starts a launcher of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp_policy::Fallback;

use crate::core::error::Error;
use crate::core::notices::Notices;
use serde::Serialize;

use crate::core::plan::{Describe, Plan};
use crate::core::report::{Ending, Judged, Report, Usage};
use crate::core::request::{Request, Script, Secret, Stdio, WritableLayer};
use crate::core::run_spec::RunSpec;
use crate::core::watched::Watching;
use crate::platform::{self, Check, Facts, Reservation, RunPlan};

mod gaps;

pub use crate::core::gap::Gap;
use gaps::GapRules;

/// How a session is started; [`Options::default`] is what `mcp run` does without flags.
#[derive(Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// What to do when a boundary cannot be enforced on this host.
    pub fallback: Fallback,
    /// Refuse to start when anything, limits included, is less than asked for.
    pub strict: bool,
    /// Whether the launcher says on stderr what it refuses while the command runs.
    pub notices: Notices,
    /// What the guard said about the command, where it was asked.
    pub judged: Option<Judged>,
    /// Secrets by value; each replaces whatever else has its name.
    pub secrets: Vec<(OsString, Secret)>,
    /// Directories that are known to hold nothing but files, directories and links.
    pub plain: Vec<PathBuf>,
    /// What the command may change over something that is shown read-only. Linux only; elsewhere it stays read-only.
    pub layer: Option<WritableLayer>,
    /// Programs of the launcher's that the command finds inside. Linux only, where the sandbox has a root of its own.
    pub scripts: Vec<Script>,
    /// Whether the paths that the command looks for are noted in the report. Watching judges nothing. Not on Windows.
    pub watching: Watching,
    /// Whether lines of the standard output that are not JSON go to standard error, where that is no terminal. Not on Windows.
    pub json_only: bool,
    /// Asked while the sandbox is made; where it says no, the command does not start.
    pub check: Option<Check<'a>>,
}

/// What a session tells the program that started it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run starts without these boundaries, because the [`Fallback`] allows it.
    Weakened(&'a [Gap]),
    /// These boundaries hold except for what the sentence and the report say.
    Partial(&'a [Gap]),
    /// A limit that a person asked for cannot be enforced here.
    Unlimited(&'a Gap),
}

/// Who hears what a session does. Every method has an answer of its own, so that `impl Events for X {}` is silent.
pub trait Events {
    /// Something that a person may want to know.
    fn tell(&mut self, event: Event<'_>) {
        let _ = event;
    }

    /// Whether to start without these boundaries; asked with [`Fallback::Prompt`].
    fn start_anyway(&mut self, gaps: &[Gap]) -> bool {
        let _ = gaps;
        false
    }

    /// Everything is settled and the command starts next. Called once.
    ///
    /// # Errors
    ///
    /// Whatever should keep the command from starting; [`Error::Stopped`] has words for it.
    fn starting(&mut self, view: CommandView<'_>) -> Result<(), Error> {
        let _ = view;
        Ok(())
    }
}

/// Hears nothing and answers no.
impl Events for () {}

/// What a command will see, just before it starts.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CommandView<'a> {
    /// What was asked for, with what was found on this host.
    pub request: &'a Request,
    /// What the host can do.
    pub facts: &'a Facts,
}

impl CommandView<'_> {
    /// Whether a path of the host can be reached inside, at the same place.
    #[must_use]
    pub fn shows(&self, path: &Path) -> bool {
        platform::is_visible(path, self.request, self.facts)
    }
}

/// A run that is ready to be planned and started: its paths, program and secrets were found.
#[must_use = "a session does nothing until it is run"]
pub struct Session<'a> {
    request: Request,
    options: Options<'a>,
}

/// A run that is explained, not started.
#[non_exhaustive]
pub struct Explained {
    /// What was asked for, with what was found on this host.
    pub request: Request,
    plan: RunPlan,
}

impl Explained {
    /// What would be done, as a list.
    #[must_use]
    pub fn outline(&self) -> Plan<impl Describe + Serialize> {
        platform::outline(&self.plan)
    }
}

/// A run that came to its end.
#[non_exhaustive]
pub struct FinishedRun {
    /// What was enforced and used, and how it ended.
    pub report: Report,
    request: Request,
    facts: Facts,
}

impl FinishedRun {
    /// What the command saw.
    #[must_use]
    pub fn view(&self) -> CommandView<'_> {
        CommandView { request: &self.request, facts: &self.facts }
    }
}

/// A run whose command was never started.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct NotStarted {
    /// Why not.
    #[source]
    pub error: Error,
    /// What was planned, with nothing of it enforced. None where there was no plan yet.
    pub report: Option<Box<Report>>,
}

impl From<Error> for NotStarted {
    fn from(error: Error) -> NotStarted {
        NotStarted { error, report: None }
    }
}

/// A plan with what it was made from.
struct Planning {
    facts: Facts,
    reservation: Reservation,
    plan: RunPlan,
}

impl Planning {
    fn new(request: &Request, mut facts: Facts) -> Planning {
        let reservation = platform::reserve(request, &mut facts);
        let plan = platform::plan(request, &facts);
        Planning { facts, reservation, plan }
    }
}

impl<'a> Session<'a> {
    /// The plan for this host, found by trying. Nothing is run: secrets are not fetched, since fetching one may run
    /// a command.
    ///
    /// # Errors
    ///
    /// When the command is not found, or a granted path does not exist.
    pub fn explain(mut spec: RunSpec, options: Options<'_>) -> Result<Explained, Error> {
        spec.policy.env.secrets.clear();
        let mut request = platform::resolve_knowing(spec, &options.plain)?;
        (request.layer, request.scripts) = (options.layer, options.scripts);
        let plan = Planning::new(&request, platform::probe_host()?).plan;
        Ok(Explained { request, plan })
    }

    /// Finds what the spec names. Nothing is started yet.
    ///
    /// # Errors
    ///
    /// When the command is not found, a granted path does not exist, or a secret cannot be fetched.
    pub fn prepare(spec: RunSpec, mut options: Options<'a>) -> Result<Session<'a>, Error> {
        let mut request = platform::resolve_knowing(spec, &options.plain)?;
        add_secrets(&mut request, std::mem::take(&mut options.secrets));
        request.layer = options.layer.take();
        request.scripts = std::mem::take(&mut options.scripts);
        request.watching = options.watching;
        if options.json_only && cfg!(unix) && request.stdio[1] != Stdio::Terminal {
            request.stdio[1] = Stdio::Filtered;
        }
        Ok(Session { request, options })
    }

    /// What will be run, with what was found.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Runs the command to its end. The calling process must have a single thread.
    ///
    /// Where this host refuses what was planned, the run is planned once more with what was found by trying.
    ///
    /// # Errors
    ///
    /// When the command was not started. A command that fails is no error.
    pub fn run(self, events: &mut dyn Events) -> Result<FinishedRun, NotStarted> {
        let Planning { mut facts, reservation, mut plan } =
            Planning::new(&self.request, platform::assume_host()?);
        let view = CommandView { request: &self.request, facts: &facts };
        self.settle(&plan, events)
            .and_then(|()| events.starting(view))
            .map_err(|error| self.not_started(&plan, error))?;
        let mut outcome = self.carry_out(&plan, reservation);
        if let Err(error) = &outcome
            && let Some(again) = self.plan_again(&plan, error)?
        {
            (facts, plan) = (again.facts, again.plan);
            self.settle(&plan, events).map_err(|error| self.not_started(&plan, error))?;
            outcome = self.carry_out(&plan, again.reservation);
        }
        let mut report = outcome.map_err(|error| self.not_started(&plan, error))?;
        report.guard.clone_from(&self.options.judged);
        Ok(FinishedRun { report, request: self.request, facts })
    }

    fn settle(&self, plan: &RunPlan, events: &mut dyn Events) -> Result<(), Error> {
        let Options { fallback, strict, ref judged, .. } = self.options;
        let rules = GapRules { fallback, strict, judged: judged.as_ref() };
        rules.settle(&plan.controls, &self.request.policy, events)
    }

    fn carry_out(&self, plan: &RunPlan, reservation: Reservation) -> Result<Report, Error> {
        let Options { notices, check, .. } = self.options;
        platform::run(plan, &self.request, reservation, notices, check)
    }

    /// Another plan after a failed set-up, made from what is found by trying. None where the failure is not the
    /// host's, and the same would only fail again. Nothing has run yet.
    fn plan_again(&self, failed: &RunPlan, error: &Error) -> Result<Option<Planning>, Error> {
        match error {
            Error::Setup(failure) if !failure.is_shortage() => {}
            _ => return Ok(None),
        }
        let again = Planning::new(&self.request, platform::probe_host()?);
        let differs = !platform::same_walls(&again.plan, failed);
        Ok(differs.then_some(again))
    }

    fn not_started(&self, plan: &RunPlan, error: Error) -> NotStarted {
        let command = self.request.argv.iter().map(|word| word.to_string_lossy().into_owned());
        let ending = Ending::NotStarted(error.to_string());
        let (command, code) = (command.collect(), error.exit_code());
        let mut report =
            Report::new(&platform::outline(plan), &[], command, ending, code, Usage::default());
        report.guard.clone_from(&self.options.judged);
        NotStarted { error, report: Some(Box::new(report)) }
    }
}

fn add_secrets(request: &mut Request, secrets: Vec<(OsString, Secret)>) {
    let is_given = |name: &OsString| secrets.iter().any(|(given, _)| given == name);
    request.env.retain(|(name, _)| !is_given(name));
    request.secrets.retain(|(name, _)| !is_given(name));
    request.secrets.extend(secrets);
}
