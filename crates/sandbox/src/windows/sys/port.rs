//! A completion port: where a job tells what happens in it, and where others wake the launcher.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::Arc;
use std::time::Duration;

use windows_sys::Win32::Foundation::{INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetQueuedCompletionStatus, OVERLAPPED, PostQueuedCompletionStatus,
};

use super::own;

/// The key of messages from the job; others are wake-ups of our own.
pub(super) const JOB: usize = 1;
const WAKE: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    NewProcess(u32),
    /// Of its own accord, or not.
    Exit(u32),
    /// The last process is gone.
    Empty,
    /// A process was refused.
    ProcessLimit,
    MemoryLimit,
    TimeLimit,
    /// [`Port::wake`] was called with this number.
    Wake(u32),
    Other(u32),
}

#[derive(Debug, Clone)]
pub struct Port(Arc<OwnedHandle>);

impl Port {
    pub fn new() -> io::Result<Port> {
        // SAFETY: no file is associated; the result is a new handle.
        let handle =
            unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, std::ptr::null_mut(), 0, 1) };
        Ok(Port(Arc::new(own(handle)?)))
    }

    pub(super) fn raw(&self) -> windows_sys::Win32::Foundation::HANDLE {
        self.0.as_raw_handle()
    }

    pub fn wake(&self, word: u32) {
        // SAFETY: posts numbers; the handle is owned by `self`.
        unsafe { PostQueuedCompletionStatus(self.raw(), word, WAKE, std::ptr::null()) };
    }

    /// Waits for the next event; `None` when the time was up.
    pub fn wait(&self, pause: Duration) -> io::Result<Option<Event>> {
        let millis = u32::try_from(pause.as_millis()).unwrap_or(u32::MAX - 1).min(u32::MAX - 1);
        let (mut word, mut key) = (0u32, 0usize);
        let mut detail: *mut OVERLAPPED = std::ptr::null_mut();
        // SAFETY: the three out-pointers are live locals; the handle is owned by `self`.
        let answer = unsafe {
            GetQueuedCompletionStatus(
                self.raw(),
                &raw mut word,
                &raw mut key,
                &raw mut detail,
                millis,
            )
        };
        if answer == 0 && detail.is_null() {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(code) if code.cast_unsigned() == WAIT_TIMEOUT => Ok(None),
                _ => Err(error),
            };
        }
        if key == WAKE {
            return Ok(Some(Event::Wake(word)));
        }
        // A job puts a process number where others have a pointer.
        let process = detail as usize as u32;
        Ok(Some(match word {
            1 | 2 => Event::TimeLimit,
            3 => Event::ProcessLimit,
            4 => Event::Empty,
            6 => Event::NewProcess(process),
            7 | 8 => Event::Exit(process),
            9 | 10 => Event::MemoryLimit,
            other => Event::Other(other),
        }))
    }
}
