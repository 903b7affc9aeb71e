//! Reads the unified log about one run, by the system's own tool, into a file that has no name.
//!
//! Since macOS 10.12. An account without the right to read the log (most that are not administrators') gets no lines.
//! Some say that `log show` leaves these lines out on their macOS, others that it has them: a run that is watched has
//! a `log stream` beside it, too.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::core::watched::Watched;
use crate::macos::denial_log::{self, Denial};

/// Never looked for on PATH.
const LOG: &str = "/usr/bin/log";
/// How long the tool may take to say that it reads.
const READY: Duration = Duration::from_secs(2);
/// How long its last lines may take.
const SETTLED: Duration = Duration::from_millis(700);
/// How long looking back may take.
const LOOKING: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(10);
/// More than this is not read: the command chooses how often it is refused.
const LARGEST: u64 = 8 << 20;

/// The lines about a run, from before its start.
pub struct LogStream {
    child: Child,
    lines: File,
    mark: String,
    started: Instant,
}

impl LogStream {
    /// Waits until the tool has begun to read, or for two seconds.
    pub fn start(mark: &str) -> io::Result<LogStream> {
        let lines = nameless()?;
        let child = tool(&denial_log::stream_arguments(mark), &lines)?;
        let stream = LogStream { child, lines, mark: mark.to_owned(), started: Instant::now() };
        // It says first what it filters by.
        wait_until(READY, || stream.length() > 0);
        Ok(stream)
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn length(&self) -> u64 {
        self.lines.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Everything that was refused, once no new line has come for a while.
    pub fn finish(mut self) -> Watched {
        let (mut last, mut since) = (self.length(), Instant::now());
        wait_until(SETTLED * 4, || {
            let now = self.length();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            since.elapsed() >= SETTLED
        });
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        self.end();
        let mut denials = denial_log::denials(&text(&mut self.lines), &self.mark);
        let looked = match denials.is_empty() {
            true => look_back(&self.mark, self.started.elapsed()),
            false => Ok(Vec::new()),
        };
        let cut_off = match &looked {
            Err(e) if has_ended => Some(format!(
                "macOS let us not read its log of refusals ({e}): an administrator's account can read it"
            )),
            _ => None,
        };
        denials.extend(looked.unwrap_or_default());
        watched(&denials, cut_off)
    }
}

/// A run that did not start leaves no reader behind.
impl Drop for LogStream {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the log kept of a run that began so long ago.
pub fn refused_since(mark: &str, ago: Duration) -> Option<Watched> {
    look_back(mark, ago).ok().map(|denials| watched(&denials, None))
}

fn look_back(mark: &str, ago: Duration) -> io::Result<Vec<Denial>> {
    let mut lines = nameless()?;
    let mut child = tool(&denial_log::show_arguments(mark, ago.as_secs() + 2), &lines)?;
    let mut status = None;
    wait_until(LOOKING, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    match status {
        Some(status) if status.success() => Ok(denial_log::denials(&text(&mut lines), mark)),
        Some(status) => Err(io::Error::other(format!("`log show` ended with {status}"))),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

fn watched(denials: &[Denial], cut_off: Option<String>) -> Watched {
    Watched {
        missing: denial_log::missing(denials),
        calls: denials.iter().map(|denial| denial.times).sum(),
        cut_off,
        ..Watched::default()
    }
}

/// Nothing of the caller but the file gets to the tool.
fn tool(arguments: &[String], lines: &File) -> io::Result<Child> {
    let mut command = Command::new(LOG);
    command.args(arguments).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(lines.try_clone()?).stderr(Stdio::null());
    command.spawn()
}

/// A file of this user's alone that is gone with its last descriptor.
fn nameless() -> io::Result<File> {
    let name =
        format!("mcp-log-{}-{}", std::process::id(), crate::core::run_record::RunId::random());
    let path = std::env::temp_dir().join(name);
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind();
    let _ = file.take(LARGEST).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn wait_until(longest: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + longest;
    while !holds() && Instant::now() < end {
        std::thread::sleep(TICK);
    }
}
