//! What the system's log has about a run: read beside it for `mcp learn`, or afterwards when the command has failed.

use std::time::Instant;

use crate::core::plan::Plan;
use crate::core::report::Report;
use crate::core::request::Request;
use crate::core::watched::Watching;
use crate::macos::log_reader::{self, LogStream};
use crate::macos::step::Step;

/// What the system's log has about this run.
pub enum Refusals {
    NotRead,
    Streamed(LogStream),
    LookBack { mark: String, since: Instant },
}

impl Refusals {
    pub fn watch(plan: &Plan<Step>, request: &Request) -> Refusals {
        let mark = plan.steps.iter().find_map(|planned| match &planned.step {
            Step::Seatbelt { profile } => Some(profile.mark.clone()),
            _ => None,
        });
        match (request.watching, mark) {
            (Watching::Paths, Some(mark)) => {
                LogStream::start(&mark).map_or(Refusals::NotRead, Refusals::Streamed)
            }
            (Watching::Failure, Some(mark)) => Refusals::LookBack { mark, since: Instant::now() },
            _ => Refusals::NotRead,
        }
    }

    pub fn tell(self, mut report: Report) -> Report {
        report.watched = match self {
            Refusals::Streamed(stream) => Some(stream.finish()),
            Refusals::LookBack { mark, since } if report.exit_code != 0 => {
                log_reader::refused_since(&mark, since.elapsed())
            }
            Refusals::NotRead | Refusals::LookBack { .. } => None,
        };
        report
    }
}
