//! Staying awake in a connection's first moments.
//!
//! A processor that rests takes tens of microseconds to be back, and a connection through a relay waits for that
//! several times. On the way to another machine this is lost in the journey; to a server on this one it would be
//! half of the time. So when a server was reached at once, the loop goes on asking for a moment instead of
//! waiting to be told, and lets other threads have the processor meanwhile.

use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

/// The most processor time that this adds to a new connection.
const MOMENT: Duration = Duration::from_micros(300);

#[derive(Debug)]
pub struct BusyPoll {
    until: Option<Instant>,
    /// With a single processor, the process whose answer is awaited could not run.
    helps: bool,
}

impl BusyPoll {
    pub fn new() -> BusyPoll {
        let helps =
            thread::available_parallelism().is_ok_and(|count| count > NonZero::<usize>::MIN);
        BusyPoll { until: None, helps }
    }

    pub fn stay(&mut self) {
        if self.helps {
            self.until = Some(Instant::now() + MOMENT);
        }
    }

    /// Whether the loop is not to rest now.
    pub fn is_awake(&mut self) -> bool {
        self.until.take_if(|until| *until <= Instant::now());
        self.until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_ends() {
        let mut busy_poll = BusyPoll { until: None, helps: true };
        assert!(!busy_poll.is_awake());
        busy_poll.until = Some(Instant::now() + Duration::from_secs(60));
        assert!(busy_poll.is_awake());
        busy_poll.stay();
        assert!(busy_poll.until.is_some());
        thread::sleep(MOMENT);
        assert!(!busy_poll.is_awake());
    }

    #[test]
    fn a_single_processor_is_left_to_the_others() {
        let mut busy_poll = BusyPoll { until: None, helps: false };
        busy_poll.stay();
        assert_eq!(busy_poll.until, None);
    }
}
