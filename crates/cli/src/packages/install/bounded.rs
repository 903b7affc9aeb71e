//! Runs a step of an installation within bounds: of the room that it takes on the disk, and of what it says.
//!
//! A step writes to a staging directory of the store, on the user's own disk. What a package has in its archive, and
//! what its scripts or its build do, could fill that disk. So the launcher looks again and again, and ends the step.
//! Leaves open: it samples, so what is written between two looks comes on top; other programs that fill the disk
//! meanwhile end the step as well.

use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mcp_sandbox::{Outcome, Sandbox};

use super::InstallDirectory;
use crate::failure::Failure;
use crate::render;

/// Twice what the largest package may unpack to: what was downloaded lies beside it.
const MOST_BYTES: u64 = 8 << 30;
const MOST_ENTRIES: u64 = 1_000_000;
/// What is to stay free on the disk, or an eighth of what was free, if that is less.
const LEAST_FREE: u64 = 1 << 30;
const PAUSE: Duration = Duration::from_millis(100);
/// Of each output, the first and the last are kept.
const MOST_SAID: usize = 2 << 20;

/// What a step came to.
pub struct Bounded {
    pub outcome: Outcome,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Which bound it passed.
    pub over: Option<String>,
}

/// Runs it to its end, or to where it passes a bound.
pub fn run(work: &InstallDirectory, sandbox: &mut Sandbox) -> Result<Bounded, Failure> {
    let mut watch = Watch::new(&work.directory);
    let sandbox = sandbox.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = sandbox.spawn()?;
    let (out, err) = (running.stdout.take(), running.stderr.take());
    let failed = |e: io::Error| Failure::Refused(format!("read what the installation says: {e}"));
    let (outcome, over, stdout, stderr) = std::thread::scope(|scope| {
        let out = scope.spawn(|| ends(out));
        let err = scope.spawn(|| ends(err));
        let mut over = None;
        let outcome: Result<Outcome, Failure> = loop {
            match running.wait_timeout(PAUSE) {
                Ok(Some(outcome)) => break Ok(outcome),
                Ok(None) if over.is_none() => {
                    over = watch.look();
                    if over.is_some()
                        && let Err(error) = running.kill()
                    {
                        break Err(error.into());
                    }
                }
                Ok(None) => {}
                Err(error) => break Err(error.into()),
            }
        };
        // Its end closes the pipes, also where waiting for it failed.
        drop(running);
        let read = |reader: std::thread::ScopedJoinHandle<'_, io::Result<Vec<u8>>>| {
            reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader panicked")))
        };
        (outcome, over, read(out), read(err))
    });
    let (stdout, stderr) = (stdout.map_err(failed)?, stderr.map_err(failed)?);
    Ok(Bounded { outcome: outcome?, stdout, stderr, over })
}

/// The first and the last of what is said: a script may say anything, for ever.
fn ends(from: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return Ok(kept) };
    let mut piece = [0; 16 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(kept),
            Ok(read) => kept.extend_from_slice(&piece[..read]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        if kept.len() > MOST_SAID {
            kept.drain(MOST_SAID / 4..MOST_SAID * 3 / 4);
        }
    }
}

/// Room on a file system.
#[derive(Clone, Copy)]
struct Free {
    bytes: u64,
    /// `None` where the file system has no bound of its own.
    entries: Option<u64>,
}

struct Watch<'a> {
    directory: &'a Path,
    at_start: Option<Free>,
    /// Counting takes a while; the next count is not before this.
    next_count: Instant,
}

impl Watch<'_> {
    fn new(directory: &Path) -> Watch<'_> {
        let next_count = Instant::now() + 10 * PAUSE;
        Watch { directory, at_start: free(directory), next_count }
    }

    /// The bound that was passed.
    fn look(&mut self) -> Option<String> {
        let now = free(self.directory);
        if let (Some(start), Some(now)) = (self.at_start, now)
            && let Some(told) = too_little_left(start, now)
        {
            return Some(told);
        }
        // Less was taken than it may have: no need to count.
        let taken = |start: Free, now: Free| {
            let entries =
                start.entries.zip(now.entries).map(|(start, now)| start.saturating_sub(now));
            (start.bytes.saturating_sub(now.bytes), entries)
        };
        if let Some((bytes, Some(entries))) =
            self.at_start.zip(now).map(|(start, now)| taken(start, now))
            && bytes < MOST_BYTES / 2
            && entries < MOST_ENTRIES / 2
        {
            return None;
        }
        if Instant::now() < self.next_count {
            return None;
        }
        let begun = Instant::now();
        let mut size = Size::default();
        size.add(self.directory);
        self.next_count = Instant::now() + (20 * begun.elapsed()).max(10 * PAUSE);
        (size.bytes > MOST_BYTES || size.entries > MOST_ENTRIES).then(|| {
            format!(
                "it takes more room than an installation may have ({}, {MOST_ENTRIES} files)",
                render::rounded_bytes(MOST_BYTES)
            )
        })
    }
}

fn too_little_left(start: Free, now: Free) -> Option<String> {
    if now.bytes < LEAST_FREE.min(start.bytes / 8) {
        let (was, left) = (render::rounded_bytes(start.bytes), render::rounded_bytes(now.bytes));
        return Some(format!(
            "the disk is nearly full: {was} were free when it began, {left} are left"
        ));
    }
    let (was, left) = start.entries.zip(now.entries)?;
    (left < was / 8).then(|| {
        format!("the file system has room for few more files: {was} when it began, {left} now")
    })
}

#[cfg(unix)]
fn free(directory: &Path) -> Option<Free> {
    let found = rustix::fs::statvfs(directory).ok()?;
    let entries = Some(found.f_favail).filter(|_| found.f_files > 0);
    Some(Free { bytes: found.f_bavail.saturating_mul(found.f_frsize), entries })
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<Free> {
    None
}

/// What is below a directory. A step changes it meanwhile, so what is gone is passed over.
#[derive(Default)]
struct Size {
    bytes: u64,
    entries: u64,
}

impl Size {
    fn add(&mut self, directory: &Path) {
        let mut pending = vec![directory.to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                self.entries += 1;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                    _ => self.bytes += entry.metadata().map_or(0, |found| taken(&found)),
                }
                if self.bytes > MOST_BYTES || self.entries > MOST_ENTRIES {
                    return;
                }
            }
        }
    }
}

/// On the disk, where that can be told: a file with holes takes less than its length.
fn taken(found: &std::fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        found.blocks() * 512
    }
    #[cfg(not(unix))]
    {
        found.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_endless_output_the_ends_are_kept() {
        let mut said = b"first".to_vec();
        said.extend(vec![b'x'; 3 * MOST_SAID]);
        said.extend(b"last");
        let kept = ends(Some(said.as_slice())).unwrap();
        assert!(kept.starts_with(b"first") && kept.ends_with(b"last"));
        assert!(kept.len() <= MOST_SAID, "{}", kept.len());
        assert_eq!(ends(Some(b"short".as_slice())).unwrap(), b"short");
    }

    #[test]
    fn a_disk_that_fills_is_noticed() {
        let free = |gigabytes: u64, entries| Free { bytes: gigabytes << 30, entries };
        let full = |start, now| too_little_left(start, now).is_some();
        assert!(!full(free(100, None), free(2, None)));
        assert!(full(free(100, None), free(0, None)));
        assert!(!full(free(2, None), free(1, None)), "an eighth of 2 GiB is less");
        assert!(full(free(9, Some(1000)), free(9, Some(100))));
        assert!(!full(free(9, Some(1000)), free(9, Some(200))));
    }
}
