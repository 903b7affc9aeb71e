//! A bar for what takes long, on a terminal only, on stderr.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
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
            is_shown: std::io::stderr().is_terminal() && !QUIET.load(Ordering::Relaxed),
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

static QUIET: AtomicBool = AtomicBool::new(false);

/// For `--quiet`: what is only news is not told from here on.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// News of an installation, unless a person wants none.
pub fn note(line: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        render::say(line);
    }
}

/// For the store, which unpacks wherever a package is needed.
pub fn unpacking(done: u64, total: u64) {
    static SHOWN: Mutex<Option<Progress>> = Mutex::new(None);
    let Ok(mut shown) = SHOWN.lock() else {
        return;
    };
    match done < total {
        true => shown.get_or_insert_with(|| Progress::new("unpacking")).at(done, Some(total)),
        false => *shown = None,
    }
}

/// Does something that takes its time and fills a directory, which is all that can be seen of it.
pub fn while_filling<T>(what: &str, directory: &Path, act: impl FnOnce() -> T) -> T {
    let mut progress = Progress::new(what);
    if !progress.is_shown {
        return act();
    }
    std::thread::scope(|scope| {
        let (is_over, over) = channel::<()>();
        scope.spawn(move || {
            while over.recv_timeout(5 * EVERY) == Err(RecvTimeoutError::Timeout) {
                progress.at(size_of(directory), None);
            }
        });
        let outcome = act();
        drop(is_over);
        outcome
    })
}

/// Of all files below a directory.
pub fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size_of(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.len()),
    };
    entries.map(size).sum()
}
