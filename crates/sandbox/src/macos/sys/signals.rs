//! Signals by descriptor: a handler writes each one's number into a pipe.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use super::check;
use crate::unix::relay::{Pipe, set_nonblocking};

/// Where the handler writes; -1 for nowhere.
static WRITER: AtomicI32 = AtomicI32::new(-1);

extern "C" fn note(signal: libc::c_int) {
    let writer = WRITER.load(Ordering::Relaxed);
    let byte = signal as u8;
    // SAFETY: write is async-signal-safe, and one byte outlives the call. errno is put back, for
    // the code that was interrupted.
    unsafe {
        let errno = *libc::__error();
        libc::write(writer, (&raw const byte).cast(), 1);
        *libc::__error() = errno;
    }
}

/// The signals that are taken by descriptor in this process.
pub struct Signals {
    reader: OwnedFd,
}

impl Signals {
    pub fn take(signals: &[i32]) -> io::Result<Signals> {
        let Pipe { read: reader, write: writer } = Pipe::new()?;
        for end in [&reader, &writer] {
            set_nonblocking(end.as_fd())?;
        }
        // Never closed: a handler may run at any time from now on.
        WRITER.store(writer.into_raw_fd(), Ordering::Relaxed);
        for signal in signals {
            // SAFETY: the action is plain data, set up before use; `note` is async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = note as *const () as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                let mut before: libc::sigaction = mem::zeroed();
                check(libc::sigaction(*signal, &raw const action, &raw mut before))?;
                // Started by `nohup`: the signal is not for this run.
                if *signal == libc::SIGHUP && before.sa_sigaction == libc::SIG_IGN {
                    check(libc::sigaction(*signal, &raw const before, std::ptr::null_mut()))?;
                }
            }
        }
        Ok(Signals { reader })
    }

    pub fn next(&self) -> Option<i32> {
        let mut byte = [0u8; 1];
        match rustix::io::read(&self.reader, &mut byte) {
            Ok(1) => Some(byte[0].into()),
            _ => None,
        }
    }

    /// In a copy of this process that must not answer for it.
    pub fn ignore(signals: &[i32]) {
        for signal in signals {
            // SAFETY: SIG_IGN is a valid disposition and runs no code of ours.
            unsafe { libc::signal(*signal, libc::SIG_IGN) };
        }
    }

    /// As for every program that is not started by Rust's runtime.
    pub fn restore_for_exec() {
        // SAFETY: SIG_DFL is a valid disposition.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
