//! The person at the terminal: hears what a session tells, and is asked where it asks.

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use mcp_sandbox::session::{CommandView, Event, Events, Gap};
use mcp_sandbox::{Error, Report};

use super::hints::{Hints, Listener, Runs};
use super::{hidden, tell_unshown, warnings};
use crate::args::Starting;
use crate::audit::AuditLog;
use crate::failure::Failure;
use crate::render;

pub struct Terminal<'a> {
    pub starting: &'a Starting,
    pub log: &'a mut Option<AuditLog>,
    /// What came of the question whether to start anyway.
    pub answer: Option<Declined>,
    /// Silent until the command starts, and with --quiet.
    pub hints: Hints,
    pub runs: Runs,
    pub listener: Listener,
}

pub enum Declined {
    /// There is no terminal to ask on.
    NotAsked,
    No,
}

impl Events for Terminal<'_> {
    fn tell(&mut self, event: Event<'_>) {
        if let Event::Weakened(gaps) = event {
            // With --quiet as well: less than what was asked for is never silent.
            render::say(&format!("warning: {}", lines(gaps)));
        }
        if self.starting.quiet {
            return;
        }
        match event {
            Event::Partial(gaps) => {
                let names: Vec<String> = gaps.iter().map(|gap| gap.control.to_string()).collect();
                render::say(&format!(
                    "warning: only partly enforced on this host: {} (mcp run --explain says what is \
                     missing, --strict refuses to start)",
                    names.join(", ")
                ));
            }
            Event::Unlimited(gap) => {
                render::say(&render::plain(&format!("warning: {gap}")));
            }
            _ => {}
        }
    }

    fn start_anyway(&mut self, gaps: &[Gap]) -> bool {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            self.answer = Some(Declined::NotAsked);
            return false;
        }
        render::say(&format!("warning: {}", lines(gaps)));
        eprint!("{} start anyway? [y/N] ", render::prefix());
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        let yes = read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes");
        if !yes {
            self.answer = Some(Declined::No);
        }
        yes
    }

    fn starting(&mut self, view: CommandView<'_>) -> Result<(), Error> {
        let request = view.request;
        if !self.starting.quiet {
            warnings::tell(request);
            for held in &request.held_back {
                let name = render::plain(&held.name);
                render::say(&format!(
                    "{name} is not passed on ({}) — name it with --env {name}",
                    held.reason
                ));
            }
            tell_unshown(request);
        }
        if !self.starting.quiet || self.listener != Listener::Person {
            self.hints = Hints::new(self.runs, view, self.listener.clone());
            self.hints.before();
        }
        if let Some(log) = self.log.as_mut() {
            log.hidden = hidden(request);
            log.start().map_err(|failure| Error::Stopped(failure.to_string()))?;
        }
        Ok(())
    }
}

impl Terminal<'_> {
    /// The hints of a run that has ended: told, or written for the program that asked for them; and into the log.
    pub fn tell_after(&mut self, report: &Report, file: Option<&Path>) {
        self.hints.after(report);
        if let Some(path) = file {
            // They are help: a run that was good does not fail for want of them.
            let _ = std::fs::write(path, render::to_json(&self.hints.collected(report)));
        }
        if let Some(log) = self.log.as_mut() {
            log.hints = self.hints.about();
        }
    }

    /// What kept a run from starting, with the flags that would change it.
    pub fn failure(&self, error: Error) -> Failure {
        let gaps = match error {
            Error::NotEnforced { gaps } => lines(&gaps),
            Error::Guarded { .. } => return Failure::Guarded(render::plain(&error.to_string())),
            Error::Stopped(why) => return Failure::Refused(why),
            error => return error.into(),
        };
        Failure::Refused(match &self.answer {
            _ if self.starting.strict => format!(
                "not started, because --strict was given:\n     {gaps}\n     \
                 (take the limit away with `none`, or leave out --strict)"
            ),
            Some(Declined::No) => "not started".to_owned(),
            Some(Declined::NotAsked) => format!(
                "not started: {gaps}\n     (there is no terminal to ask on; --fallback warn starts without it)"
            ),
            None => format!("not started: {gaps}\n     (--fallback warn starts without it)"),
        })
    }
}

fn lines(gaps: &[Gap]) -> String {
    let lines: Vec<String> = gaps.iter().map(|gap| render::plain(&gap.sentence)).collect();
    lines.join("\n     ")
}
