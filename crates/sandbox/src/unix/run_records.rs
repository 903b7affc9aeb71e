//! The records of running sandboxes: one file each, in a directory that is this user's alone.
//!
//! The launcher holds a lock on its file. A process that can lock a file has found one whose launcher
//! is gone, and removes it. A directory of another user's, links, pipes and nonsense are passed
//! over: names and numbers in them are never acted on.

mod directory;

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::core::run_record::{NetworkTotals, Record, RunId};
use directory::Directory;
use mcp_net::broker::Meter;

/// A larger file is none of ours.
const LARGEST: usize = 1 << 20;
/// Stale records that a starting run removes: starting must not take long.
const SWEPT: usize = 32;
const ATTEMPTS: usize = 8;
/// How long a launcher may take to clean up after its sandbox was killed.
const LEAVING: Duration = Duration::from_secs(10);

/// A record as long as it is there: taken away when dropped.
pub struct HeldRecord {
    directory: Directory,
    name: String,
    locked: OwnedFd,
    /// Where the counters of the network stand in the file, behind the record.
    counters: u64,
}

/// The first process of a sandbox, by its number and by when it started.
pub struct First {
    pub pid: u32,
    pub started: u64,
}

/// Lists a run. A host without a place for records has a run that is not listed, and nothing else.
pub fn list_run(
    id: &RunId,
    init: First,
    command: Vec<String>,
    cgroup: Option<String>,
) -> Option<HeldRecord> {
    let directory = Directory::for_writing()?;
    let record = Record {
        id: id.clone(),
        command,
        since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        launcher: std::process::id(),
        init: init.pid,
        init_started: init.started,
        cgroup,
    };
    let name = file_name(id);
    let locked = create(&directory, &name)?;
    let text = serde_json::to_vec(&record).ok()?;
    // Half a record is not read by anybody.
    let _ = rustix::io::write(&locked, &text);
    let counters = text.len() as u64;
    Some(HeldRecord { directory, name, locked, counters })
}

fn file_name(id: &RunId) -> String {
    format!("{id}.json")
}

/// A sweep may take the file for a stale one before it is locked: then it is made again.
fn create(directory: &Directory, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..ATTEMPTS {
        let file = rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o600)).ok()?;
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if locked && rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink > 0) {
            return Some(file);
        }
        let _ = directory.remove(name);
    }
    None
}

impl HeldRecord {
    /// Writes the counters of the network behind the record, always as long as before.
    pub fn meter(&self) -> Option<Meter> {
        let (file, at) = (self.locked.try_clone().ok()?, self.counters);
        Some(Box::new(move |totals| {
            let NetworkTotals { connections, bytes_out, bytes_in } = totals;
            let line = format!("\n{connections:20} {bytes_out:20} {bytes_in:20}\n");
            // A meter that stands still is no reason to stop anything.
            let _ = rustix::io::pwrite(&file, line.as_bytes(), at);
        }))
    }

    /// Removes records whose launchers were killed.
    pub fn sweep(&self) {
        for name in self.directory.names(SWEPT) {
            if name != self.name {
                drop(open(&self.directory, &name));
            }
        }
    }
}

impl Drop for HeldRecord {
    fn drop(&mut self) {
        let _ = self.directory.remove(&self.name);
    }
}

pub fn list() -> Vec<(Record, RecordFile)> {
    let mut runs = Vec::new();
    for directory in Directory::all() {
        for name in directory.names(usize::MAX) {
            if let Some((record, file)) = open(&directory, &name)
                && file_name(&record.id) == name
            {
                runs.push((record, file));
            }
        }
    }
    runs
}

/// A record whose launcher lives. One that is stale is removed.
fn open(directory: &Directory, name: &str) -> Option<(Record, RecordFile)> {
    let id = RunId::parse(name.strip_suffix(".json")?)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || stat.st_uid != rustix::process::getuid().as_raw() {
        return None;
    }
    if !is_locked(&file) {
        let _ = directory.remove(name);
        return None;
    }
    let text = text(&file)?;
    let record: Record = serde_json::from_slice(text.split(|b| *b == b'\n').next()?).ok()?;
    (record.id == id).then_some((record, RecordFile(file)))
}

fn text(file: &OwnedFd) -> Option<Vec<u8>> {
    let size = usize::try_from(rustix::fs::fstat(file).ok()?.st_size).ok()?;
    let mut text = vec![0; LARGEST.min(size)];
    let length = rustix::io::pread(file, &mut text, 0).ok()?;
    text.truncate(length);
    Some(text)
}

/// The line behind the record, where the run has a meter.
fn counters(text: &[u8]) -> Option<NetworkTotals> {
    let line = std::str::from_utf8(text.split(|b| *b == b'\n').nth(1)?).ok()?;
    let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [connections, bytes_out, bytes_in] = numbers[..] else {
        return None;
    };
    Some(NetworkTotals { connections, bytes_out, bytes_in })
}

/// Whether the launcher lives. Trying takes the lock for a moment where it does not.
fn is_locked(file: &OwnedFd) -> bool {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
            false
        }
        Err(Errno::WOULDBLOCK) => true,
        Err(_) => false,
    }
}

/// The open record: its lock tells whether the run goes on.
pub struct RecordFile(OwnedFd);

impl RecordFile {
    pub fn network(&self) -> Option<NetworkTotals> {
        text(&self.0).as_deref().and_then(counters)
    }

    pub fn is_launcher_alive(&self) -> bool {
        is_locked(&self.0)
    }

    pub fn wait_for_end(&self) -> io::Result<()> {
        let until = Instant::now() + LEAVING;
        while self.is_launcher_alive() {
            if Instant::now() > until {
                return Err(io::Error::other("it was killed, but its launcher does not end"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
