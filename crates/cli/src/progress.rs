//! A bar for what takes long, on a terminal only, on stderr.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::render;

const EVERY: Duration = Duration::from_millis(100);
const WIDTH: usize = 24;

pub struct Progress {
    what: String,
    is_shown: bool,
    drawn: Option<Instant>,
}

impl Progress {
    pub fn new(what: &str) -> Progress {
        Progress {
            what: render::plain(what),
            is_shown: std::io::stderr().is_terminal(),
            drawn: None,
        }
    }

    /// So far, and of how much, where that is known.
    pub fn at(&mut self, done: u64, total: Option<u64>) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= EVERY);
        if !self.is_shown || !is_due {
            return;
        }
        self.drawn = Some(Instant::now());
        let bar = match total {
            Some(total) if total > 0 => {
                let share = (done.min(total) as f64 / total as f64 * WIDTH as f64) as usize;
                format!(
                    "[{}{}] {} of {}",
                    "#".repeat(share),
                    " ".repeat(WIDTH - share),
                    render::rounded_bytes(done),
                    render::rounded_bytes(total)
                )
            }
            _ => render::rounded_bytes(done),
        };
        let _ = write!(std::io::stderr(), "\r\x1b[K{} {} {bar}", render::prefix(), self.what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
