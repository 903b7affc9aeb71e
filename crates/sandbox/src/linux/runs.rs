//! Running sandboxes of this user: what each uses, and its end.

mod live;

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::core::run_record::{Record, RunId, Stats};
use crate::unix::run_records::{self, First, HeldRecord, RecordFile};

/// Lists a run whose init is this process.
pub fn list_run(
    id: &RunId,
    init: i32,
    command: Vec<String>,
    cgroup: Option<String>,
) -> Option<HeldRecord> {
    let pid = u32::try_from(init).ok()?;
    let init = First { pid, started: live::started(pid)? };
    run_records::list_run(id, init, command, cgroup)
}

pub fn list() -> Vec<(Record, RunHandle)> {
    run_records::list().into_iter().map(|(record, file)| (record, RunHandle(file))).collect()
}

pub struct RunHandle(RecordFile);

impl RunHandle {
    pub fn stats(&self, record: &Record) -> Stats {
        let stats = match &record.cgroup {
            Some(cgroup) => live::of_cgroup(cgroup).unwrap_or_default(),
            None if live::started(record.init) == Some(record.init_started) => {
                live::of_tree(record.init)
            }
            None => Stats::default(),
        };
        Stats { network: self.0.network(), ..stats }
    }

    /// Init takes the whole sandbox with it, and its launcher sees that and cleans up.
    pub fn kill(&self, record: &Record) -> io::Result<()> {
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        let pid = Pid::from_raw(record.init.cast_signed()).ok_or_else(gone)?;
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => return self.0.wait_for_end(),
            Err(e) => return Err(e.into()),
        };
        // The descriptor names one process for good; that it is the right one shows its age, and
        // the lock that the launcher still holds.
        if live::started(record.init) != Some(record.init_started) {
            return match self.0.is_launcher_alive() {
                true => Err(io::Error::other("its processes cannot be seen from here")),
                false => Ok(()),
            };
        }
        if !self.0.is_launcher_alive() {
            return Ok(());
        }
        match pidfd_send_signal(&pidfd, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => self.0.wait_for_end(),
            Err(e) => Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests;
