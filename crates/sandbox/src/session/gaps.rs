//! Controls that were asked for and that this host does not, or not wholly, enforce; and whether a run may start
//! with them.

use mcp_policy::{Fallback, Origin, Policy};

use crate::core::control::Control;
use crate::core::error::Error;
use crate::core::gap::Gap;
use crate::core::plan::{Intent, Intents};
use crate::core::report::Judged;
use crate::session::{Event, Events};

/// What decides whether a plan with gaps may be carried out.
pub struct GapRules<'a> {
    pub fallback: Fallback,
    pub strict: bool,
    pub judged: Option<&'a Judged>,
}

impl GapRules<'_> {
    /// Fail closed, degrade in the open: boundaries stop the run, limits are told.
    pub fn settle(
        &self,
        intents: &Intents,
        policy: &Policy,
        events: &mut dyn Events,
    ) -> Result<(), Error> {
        let stopping: Vec<Gap> = match self.strict {
            true => intents.gaps().map(Gap::new).collect(),
            false => intents.boundary_gaps().map(Gap::new).collect(),
        };
        if !stopping.is_empty() {
            let starts = match self.fallback {
                _ if self.strict => false,
                Fallback::Warn => {
                    events.tell(Event::Weakened(&stopping));
                    true
                }
                Fallback::Prompt => events.start_anyway(&stopping),
                _ => false,
            };
            if !starts {
                return Err(Error::NotEnforced { gaps: stopping });
            }
            self.ask_the_guard()?;
        }
        let told: Vec<Gap> = intents.told_gaps().map(Gap::new).collect();
        if stopping.is_empty() && !told.is_empty() {
            events.tell(Event::Partial(&told));
        }
        for (control, intent) in intents.gaps().filter(|(control, _)| !control.is_boundary()) {
            // A default that degrades is in the report; only what a person asked for is worth a line.
            let unavailable = matches!(intent, Intent::Unavailable { .. });
            if unavailable && was_asked_for(control, policy) {
                events.tell(Event::Unlimited(&Gap::new((control, intent))));
            }
        }
        Ok(())
    }

    /// Without whole boundaries, a command does not run that the guard could not read, or allowed because of them.
    fn ask_the_guard(&self) -> Result<(), Error> {
        match self.judged {
            Some(judged) if judged.decision == "unknown" || !judged.noted.is_empty() => {
                Err(Error::Guarded { rules: [&judged.rules[..], &judged.noted[..]].concat() })
            }
            _ => Ok(()),
        }
    }
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

#[cfg(test)]
mod tests {

    use mcp_policy::Defaults;

    use super::*;
    /// Notes what it is told, and answers what it was told to answer.
    struct RecordedEvents {
        yes: bool,
        lines: Vec<String>,
    }

    impl Events for RecordedEvents {
        fn tell(&mut self, event: Event<'_>) {
            self.lines.push(match event {
                Event::Weakened(gaps) => format!("weakened {}", gaps.len()),
                Event::Partial(gaps) => format!("partial {}", gaps.len()),
                Event::Unlimited(gap) => format!("unlimited {}", gap.control),
            });
        }

        fn start_anyway(&mut self, _: &[Gap]) -> bool {
            self.lines.push("asked".to_owned());
            self.yes
        }
    }

    fn intents(control: Control, intent: Intent) -> Intents {
        Intents::from_iter([(control, intent)])
    }

    fn judged(decision: &str, noted: &[&str]) -> Judged {
        let noted = noted.iter().map(|rule| (*rule).to_owned()).collect();
        Judged { decision: decision.to_owned(), rules: Vec::new(), noted, why: None }
    }

    #[test]
    fn gaps_stop_what_they_should() {
        use Fallback::{Deny, Prompt, Warn};
        let boundary = intents(Control::Network, Intent::unavailable("no", "do"));
        let told = intents(Control::Filesystem, Intent::partial("x", "y"));
        let limit = intents(Control::Cpu, Intent::partial("x", "y"));
        let whole = intents(Control::Network, Intent::enforce("x"));
        let policy = Policy::merge(&[], Defaults::run()).unwrap();
        for (plan, fallback, strict, yes, starts, lines) in [
            (&boundary, Deny, false, true, false, &[][..]),
            (&boundary, Warn, false, false, true, &["weakened 1"]),
            (&boundary, Warn, true, true, false, &[]),
            (&boundary, Prompt, false, true, true, &["asked"]),
            (&boundary, Prompt, false, false, false, &["asked"]),
            (&boundary, Prompt, true, true, false, &[]),
            (&told, Deny, false, false, true, &["partial 1"]),
            (&told, Deny, true, false, false, &[]),
            (&limit, Deny, false, false, true, &[]),
            (&limit, Deny, true, false, false, &[]),
            (&whole, Deny, true, false, true, &[]),
        ] {
            let mut heard = RecordedEvents { yes, lines: Vec::new() };
            let rules = GapRules { fallback, strict, judged: None };
            let outcome = rules.settle(plan, &policy, &mut heard);
            assert_eq!(outcome.is_ok(), starts, "{plan:?} {fallback:?} {strict}");
            assert_eq!(heard.lines, lines, "{plan:?} {fallback:?} {strict}");
            if let Err(error) = outcome {
                assert_eq!(error.exit_code(), 125);
                assert!(matches!(error, Error::NotEnforced { .. }));
            }
        }
    }

    #[test]
    fn the_guard_does_not_rely_on_boundaries_that_are_not_there() {
        let boundary = intents(Control::Network, Intent::unavailable("no", "do"));
        let whole = intents(Control::Network, Intent::enforce("x"));
        let policy = Policy::merge(&[], Defaults::exec()).unwrap();
        for (judged, starts) in [
            (judged("allow", &[]), true),
            (judged("allow", &["python-text"]), false),
            (judged("unknown", &[]), false),
        ] {
            for (plan, starts) in [(&boundary, starts), (&whole, true)] {
                let mut heard = RecordedEvents { yes: true, lines: Vec::new() };
                let rules =
                    GapRules { fallback: Fallback::Warn, strict: false, judged: Some(&judged) };
                let outcome = rules.settle(plan, &policy, &mut heard);
                assert_eq!(outcome.is_ok(), starts, "{plan:?} {judged:?}");
                if let Err(error) = outcome {
                    assert_eq!(error.exit_code(), 126);
                }
            }
        }
    }

    #[test]
    fn a_limit_is_worth_a_line_where_a_person_asked_for_it() {
        let limit = intents(Control::Cpu, Intent::unavailable("no", "do"));
        let defaults = Policy::merge(&[], Defaults::run()).unwrap();
        let mut flags = mcp_policy::Layer::command_line("/", None);
        flags.cpu(Some(mcp_policy::Cores::from_millicores(100)));
        let asked = Policy::merge(&[flags.build().unwrap()], Defaults::run()).unwrap();
        for (policy, lines) in [(&defaults, &[][..]), (&asked, &["unlimited cpu"])] {
            let mut heard = RecordedEvents { yes: false, lines: Vec::new() };
            let rules = GapRules { fallback: Fallback::Deny, strict: false, judged: None };
            rules.settle(&limit, policy, &mut heard).unwrap();
            assert_eq!(heard.lines, lines);
        }
    }
}
