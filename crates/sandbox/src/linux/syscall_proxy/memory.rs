//! The memory of a thread that waits for an answer. The launcher opens it: Yama allows it only to those
//! above a process, and the syscall proxy is beside the command.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW};

use super::errno;
use crate::core::host::Ids;
use crate::linux::sys;

const LONGEST_PATH: usize = 4096;
const LONGEST_NAME: usize = 256;
/// Of a value, and of a list of names.
pub const LARGEST_VALUE: usize = 64 * 1024;
const PAGE: usize = 4096;

/// Nothing where it could not be opened: a process that is not dumpable.
pub struct CallerMemory(Option<File>);

#[derive(Clone, Copy)]
pub enum Clock {
    Seconds,
    Microseconds,
    Nanoseconds,
}

/// What is done with memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Read,
    ReadWrite,
}

impl CallerMemory {
    pub fn of(thread: i32, user: Option<Ids>, use_: Use) -> CallerMemory {
        let mut options = File::options();
        options.read(true).write(use_ == Use::ReadWrite);
        CallerMemory(sys::look_as(user, || options.open(format!("/proc/{thread}/mem"))).ok())
    }

    pub fn from_descriptor(descriptor: Option<OwnedFd>) -> CallerMemory {
        CallerMemory(descriptor.map(File::from))
    }

    pub fn descriptor(&self) -> Option<&File> {
        self.0.as_ref()
    }

    fn file(&self) -> io::Result<&File> {
        self.0.as_ref().ok_or_else(|| errno(libc::EPERM))
    }

    pub fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file()?.read_exact_at(bytes, at).map_err(|_| errno(libc::EFAULT))
    }

    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all_at(bytes, at).map_err(|_| errno(libc::EFAULT))
    }

    /// A string that ends with a zero, read page by page: the next page may not be there.
    fn string(&self, at: u64, longest: usize) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < longest {
            let from = at.checked_add(text.len() as u64).ok_or_else(|| errno(libc::EFAULT))?;
            let size = (PAGE - (from % PAGE as u64) as usize).min(longest - text.len());
            let mut part = vec![0; size];
            self.read(from, &mut part)?;
            match part.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend(&part[..end]);
                    return Ok(text);
                }
                None => text.extend(part),
            }
        }
        Err(errno(libc::ENAMETOOLONG))
    }

    pub fn path(&self, at: u64) -> io::Result<PathBuf> {
        Ok(OsString::from_vec(self.string(at, LONGEST_PATH)?).into())
    }

    /// The name of an attribute.
    pub fn name(&self, at: u64) -> io::Result<OsString> {
        Ok(OsString::from_vec(self.string(at, LONGEST_NAME)?))
    }

    pub fn value(&self, at: u64, size: u64) -> io::Result<Vec<u8>> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > LARGEST_VALUE {
            return Err(errno(libc::E2BIG));
        }
        let mut bytes = vec![0; size];
        if size > 0 {
            self.read(at, &mut bytes)?;
        }
        Ok(bytes)
    }

    pub fn times(&self, at: u64, clock: Clock) -> io::Result<Timestamps> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        if at == 0 {
            return Ok(Timestamps { last_access: now, last_modification: now });
        }
        let mut bytes = [0u8; 32];
        let words = if matches!(clock, Clock::Seconds) { 2 } else { 4 };
        self.read(at, &mut bytes[..8 * words])?;
        let mut numbers = [0i64; 4];
        for (number, part) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = i64::from_ne_bytes(part.try_into().unwrap_or_default());
        }
        let [a, b, c, d] = numbers;
        let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        let (last_access, last_modification) = match clock {
            Clock::Seconds => (time(a, 0), time(b, 0)),
            Clock::Microseconds => {
                let nanoseconds = |micro: i64| match micro {
                    0..1_000_000 => Ok(micro * 1000),
                    _ => Err(errno(libc::EINVAL)),
                };
                (time(a, nanoseconds(b)?), time(c, nanoseconds(d)?))
            }
            Clock::Nanoseconds => (time(a, b), time(c, d)),
        };
        Ok(Timestamps { last_access, last_modification })
    }
}
