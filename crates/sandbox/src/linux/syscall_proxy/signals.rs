//! Signals within the tree, where Landlock does not keep them there (before version 6). Only a process's
//! signal to itself passes: there all that counts is in registers. Every other one is sent from here, through a handle of a
//! process that is known to be in the tree.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Signal, pidfd_send_signal};

use super::calls::is;
use super::errno;
use crate::linux::process_tree;
use crate::linux::sys::{self, Notification, Verdict};
use mcp_seccomp::Arch;
use mcp_seccomp::plain::call;

pub struct SignalCalls {
    pub arch: Arch,
    /// The process that all of the tree is below.
    pub top: i32,
}

impl SignalCalls {
    /// `None` for a call that sends no signal.
    pub fn answer(&self, notification: &Notification) -> Option<io::Result<Verdict>> {
        let [a, b, c, ..] = notification.arguments;
        let is = |call| is(self.arch, notification, call);
        let own = || process_of(notification.thread);
        Some(if is(call::KILL) {
            self.kill(notification, a as i32, b as i32)
        } else if is(call::TGKILL) || is(call::RT_TGSIGQUEUEINFO) {
            own().and_then(|own| self.to_thread(own, a as i32, b as i32, c as i32))
        } else if is(call::TKILL) {
            // By a number alone, which another may have by the time the call has passed.
            process_of(a as i32)
                .and_then(|process| self.to_other_thread(process, a as i32, b as i32))
        } else if is(call::RT_SIGQUEUEINFO) {
            own().and_then(|own| match a as i32 == own {
                true => Ok(Verdict::Pass),
                false => self.to_process(a as i32, b as i32),
            })
        } else if is(call::PIDFD_SEND_SIGNAL) {
            process_behind(notification.thread, a as i32)
                .and_then(|pid| self.to_process(pid, b as i32))
        } else {
            return None;
        })
    }

    fn kill(&self, notification: &Notification, pid: i32, signal: i32) -> io::Result<Verdict> {
        let own = process_of(notification.thread)?;
        if pid == own {
            return Ok(Verdict::Pass);
        }
        if pid > 0 {
            return self.to_process(pid, signal);
        }
        let group = match pid {
            -1 => None,
            0 => Some(process_tree::group(own).ok_or_else(|| errno(libc::ESRCH))?),
            group => Some(group.checked_neg().ok_or_else(|| errno(libc::ESRCH))?),
        };
        let mut sent = false;
        for member in process_tree::below(self.top) {
            // kill(-1) leaves out who calls it; a group is signalled as a whole.
            let meant = match group {
                None => member != own,
                Some(group) => process_tree::group(member) == Some(group),
            };
            if meant {
                sent |= self.to_process(member, signal).is_ok();
            }
        }
        if sent { Ok(Verdict::Done(0)) } else { Err(errno(libc::ESRCH)) }
    }

    fn to_thread(&self, own: i32, process: i32, thread: i32, signal: i32) -> io::Result<Verdict> {
        match process == own {
            true => Ok(Verdict::Pass),
            false => self.to_other_thread(process, thread, signal),
        }
    }

    fn to_other_thread(&self, process: i32, thread: i32, signal: i32) -> io::Result<Verdict> {
        if process_tree::handle(process, self.top).is_none() {
            return Err(errno(libc::EPERM));
        }
        sys::send_to_thread(process, thread, signal)?;
        Ok(Verdict::Done(0))
    }

    fn to_process(&self, pid: i32, signal: i32) -> io::Result<Verdict> {
        let Some(handle) = process_tree::handle(pid, self.top) else {
            let is_there = Path::new(&format!("/proc/{pid}")).exists();
            return Err(errno(if is_there { libc::EPERM } else { libc::ESRCH }));
        };
        if signal != 0 {
            let signal = Signal::from_named_raw(signal).ok_or_else(|| errno(libc::EINVAL))?;
            pidfd_send_signal(handle, signal)?;
        }
        Ok(Verdict::Done(0))
    }
}

/// The process that a thread belongs to.
fn process_of(thread: i32) -> io::Result<i32> {
    let status = fs::read(format!("/proc/{thread}/status")).map_err(|_| errno(libc::ESRCH))?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let field = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    field.and_then(|id| id.trim().parse().ok()).ok_or_else(|| errno(libc::ESRCH))
}

/// The process that a handle of the asker's stands for.
fn process_behind(thread: i32, fd: i32) -> io::Result<i32> {
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{fd}"))
        .map_err(|_| errno(libc::EBADF))?;
    let field = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    field.and_then(|id| id.trim().parse().ok()).ok_or_else(|| errno(libc::EBADF))
}
