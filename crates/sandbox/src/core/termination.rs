//! When a run is asked to end, and when it is killed: its time is up, or the launcher got a signal that means so.
//!
//! Stops: a command that ignores SIGTERM or has stopped itself, and keeps its launcher for ever. Pure; the
//! launchers of every system send what this says.

use std::time::{Duration, Instant};

use crate::core::report::Ending;

/// Two signals this close together were sent as one: coreutils' `timeout` sends its own to the launcher and then
/// to the group that the launcher is in.
const SAME_SIGNAL: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub struct Termination {
    timeout: Option<Duration>,
    grace: Duration,
    started: Option<Instant>,
    asked: Option<StopRequest>,
}

#[derive(Debug)]
struct StopRequest {
    since: Instant,
    ending: Ending,
}

/// What the launcher has to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Nothing,
    /// Ask the command to end: it has the grace for it.
    Ask,
    /// Kill the tree.
    Kill,
}

impl Termination {
    #[must_use]
    pub fn new(timeout: Option<Duration>, grace: Duration) -> Termination {
        Termination { timeout, grace, ..Termination::default() }
    }

    /// The command runs from here on, and its time with it.
    pub fn start(&mut self, now: Instant) {
        self.started = Some(now);
    }

    /// Whether the command was asked to end.
    #[cfg(any(unix, test))]
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// The launcher got a signal that means the end of the run. The first one is the command's to obey, the second
    /// is an order.
    pub fn on_signal(&mut self, signal: i32, now: Instant) -> Due {
        let ending = Ending::Signaled(signal);
        match &mut self.asked {
            None => {
                self.asked = Some(StopRequest { since: now, ending });
                Due::Ask
            }
            Some(asked) if now.duration_since(asked.since) < SAME_SIGNAL => Due::Nothing,
            Some(asked) => {
                if asked.ending != Ending::Timeout {
                    asked.ending = ending;
                }
                Due::Kill
            }
        }
    }

    pub fn on_time(&mut self, now: Instant) -> Due {
        if let Some(asked) = &self.asked {
            let is_over = now.duration_since(asked.since) >= self.grace;
            return if is_over { Due::Kill } else { Due::Nothing };
        }
        match (self.started, self.timeout) {
            (Some(started), Some(timeout)) if now.duration_since(started) >= timeout => {
                self.asked = Some(StopRequest { since: now, ending: Ending::Timeout });
                Due::Ask
            }
            _ => Due::Nothing,
        }
    }

    /// When [`on_time`](Self::on_time) will have something to do.
    pub fn next(&self) -> Option<Instant> {
        match &self.asked {
            Some(asked) => asked.since.checked_add(self.grace),
            None => self.started?.checked_add(self.timeout?),
        }
    }

    /// How the run ended, where it was killed, or ended by itself after its time was up.
    pub fn ending(&self) -> Option<Ending> {
        self.asked.as_ref().map(|asked| asked.ending.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);
    const MOMENT: Duration = Duration::from_millis(1);

    #[test]
    fn a_signal_asks_and_after_the_grace_kills() {
        let now = Instant::now();
        let mut termination = Termination::new(None, GRACE);
        assert_eq!((termination.on_time(now), termination.next()), (Due::Nothing, None));
        assert_eq!(termination.on_signal(15, now), Due::Ask);
        assert_eq!(termination.next(), Some(now + GRACE));
        assert_eq!(termination.on_time(now + GRACE - MOMENT), Due::Nothing);
        assert_eq!(termination.on_time(now + GRACE), Due::Kill);
        assert_eq!(termination.ending(), Some(Ending::Signaled(15)));
    }

    #[test]
    fn a_second_signal_kills_and_one_sent_twice_does_not() {
        let now = Instant::now();
        let mut termination = Termination::new(None, GRACE);
        assert_eq!(termination.on_signal(15, now), Due::Ask);
        assert_eq!(termination.on_signal(15, now + MOMENT), Due::Nothing);
        assert_eq!(termination.on_signal(2, now + SAME_SIGNAL), Due::Kill);
        assert_eq!(termination.ending(), Some(Ending::Signaled(2)));
    }

    #[test]
    fn a_timeout_stays_one() {
        let now = Instant::now();
        let mut termination = Termination::new(Some(GRACE), GRACE);
        assert_eq!((termination.on_time(now + GRACE), termination.next()), (Due::Nothing, None));
        termination.start(now);
        assert_eq!(termination.next(), Some(now + GRACE));
        assert_eq!(termination.on_time(now + GRACE), Due::Ask);
        assert!(termination.is_asked());
        assert_eq!(termination.on_signal(15, now + GRACE + SAME_SIGNAL), Due::Kill);
        assert_eq!(termination.ending(), Some(Ending::Timeout));
    }

    #[test]
    fn no_grace_kills_at_once_and_an_endless_one_never() {
        let now = Instant::now();
        let mut termination = Termination::new(None, Duration::ZERO);
        assert_eq!(termination.on_signal(1, now), Due::Ask);
        assert_eq!(termination.on_time(now), Due::Kill);
        let mut termination = Termination::new(None, Duration::MAX);
        assert_eq!(termination.on_signal(1, now), Due::Ask);
        assert_eq!((termination.on_time(now + GRACE), termination.next()), (Due::Nothing, None));
    }
}
