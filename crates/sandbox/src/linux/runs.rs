//! The records of running sandboxes: one file each, in a directory that is this user's alone.
//!
//! The launcher holds a lock on its file. Whoever can lock a file has found one whose launcher
//! is gone, and removes it. A directory of another user's, links, pipes and nonsense are passed
//! over: names and numbers in them are never acted on.

mod directory;
mod live;

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::core::run_record::{NetworkTotals, Record, RunId, Stats};
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
pub struct Listed {
    directory: Directory,
    name: String,
    locked: OwnedFd,
    /// Where the counters of the network stand in the file, behind the record.
    counters: u64,
}

/// Lists a run. A host without a place for records has a run that is not listed, and nothing else.
pub fn list_run(
    id: &RunId,
    init: i32,
    command: Vec<String>,
    cgroup: Option<String>,
) -> Option<Listed> {
    let directory = Directory::for_writing()?;
    let init = u32::try_from(init).ok()?;
    let record = Record {
        id: id.clone(),
        command,
        since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        launcher: std::process::id(),
        init,
        init_started: live::started(init)?,
        cgroup,
    };
    let name = file_name(id);
    let locked = create(&directory, &name)?;
    let text = serde_json::to_vec(&record).ok()?;
    // Half a record is not read by anybody.
    let _ = rustix::io::write(&locked, &text);
    let counters = text.len() as u64;
    Some(Listed { directory, name, locked, counters })
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

impl Listed {
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

impl Drop for Listed {
    fn drop(&mut self) {
        let _ = self.directory.remove(&self.name);
    }
}

pub fn list() -> Vec<(Record, RunHandle)> {
    let mut runs = Vec::new();
    for directory in Directory::all() {
        for name in directory.names(usize::MAX) {
            if let Some((record, file)) = open(&directory, &name)
                && file_name(&record.id) == name
            {
                runs.push((record, RunHandle { file }));
            }
        }
    }
    runs
}

/// A record whose launcher lives. One that is stale is removed.
fn open(directory: &Directory, name: &str) -> Option<(Record, OwnedFd)> {
    let id = RunId::parse(name.strip_suffix(".json")?)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_file = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    if !is_file || stat.st_uid != rustix::process::getuid().as_raw() {
        return None;
    }
    if !is_locked(&file) {
        let _ = directory.remove(name);
        return None;
    }
    let text = text(&file)?;
    let record: Record = serde_json::from_slice(text.split(|b| *b == b'\n').next()?).ok()?;
    (record.id == id).then_some((record, file))
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
pub struct RunHandle {
    file: OwnedFd,
}

impl RunHandle {
    pub fn stats(&self, record: &Record) -> Stats {
        let stats = match &record.cgroup {
            Some(cgroup) => live::of_cgroup(cgroup).unwrap_or_default(),
            None if live::started(record.init) == Some(record.init_started) => {
                live::of_tree(record.init)
            }
            None => Stats::default(),
        };
        Stats { network: text(&self.file).as_deref().and_then(counters), ..stats }
    }

    /// Init takes the whole sandbox with it, and its launcher sees that and cleans up.
    pub fn kill(&self, record: &Record) -> io::Result<()> {
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        let pid = Pid::from_raw(record.init.cast_signed()).ok_or_else(gone)?;
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => return self.wait_for_end(),
            Err(e) => return Err(e.into()),
        };
        // The descriptor names one process for good; that it is the right one shows its age, and
        // the lock that the launcher still holds.
        if live::started(record.init) != Some(record.init_started) {
            return match is_locked(&self.file) {
                true => Err(io::Error::other("its processes are not to be seen from here")),
                false => Ok(()),
            };
        }
        if !is_locked(&self.file) {
            return Ok(());
        }
        match pidfd_send_signal(&pidfd, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => self.wait_for_end(),
            Err(e) => Err(e.into()),
        }
    }

    fn wait_for_end(&self) -> io::Result<()> {
        let until = Instant::now() + LEAVING;
        while is_locked(&self.file) {
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
