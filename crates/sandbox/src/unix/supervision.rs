//! What the launchers of Linux and macOS have in common while a command runs, and the programs that started them.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// Taken by descriptor in the launcher. What is not here (SIGSEGV, SIGKILL …) means the
/// launcher itself.
pub const SIGNALS: [i32; 11] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGCHLD,
    libc::SIGTTOU,
];

/// How long a reader of relayed output may keep a finished run waiting.
pub const DRAIN: Duration = Duration::from_secs(5);

/// The time until a moment, as `poll` takes it.
pub fn pause(until: Instant) -> Timespec {
    let pause = until.saturating_duration_since(Instant::now());
    let seconds = i64::try_from(pause.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: i64::from(pause.subsec_nanos()) }
}

/// Waits for the end of a child, once.
pub fn reap(child: &mut Child, ended: &mut Option<ExitStatus>) -> io::Result<ExitStatus> {
    if let Some(status) = *ended {
        return Ok(status);
    }
    let status = match child.wait() {
        // This program ignores SIGCHLD, so the kernel collects its children.
        Err(e) if e.raw_os_error() == Some(libc::ECHILD) => ExitStatus::default(),
        other => other?,
    };
    *ended = Some(status);
    Ok(status)
}
