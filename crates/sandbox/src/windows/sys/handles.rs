//! The three standard handles, and handles that a new process may inherit.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::windows::fs::{FileExt, MetadataExt};
use std::os::windows::io::{
    AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, IntoRawHandle, OwnedHandle, RawHandle,
};

use windows_sys::Win32::Foundation::{
    CloseHandle, DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE, HANDLE_FLAG_INHERIT,
    INVALID_HANDLE_VALUE, SetHandleInformation,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_TYPE_CHAR, FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType,
};
use windows_sys::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle,
};
use windows_sys::Win32::System::Pipes::GetNamedPipeInfo;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::{check, own};

/// What a standard handle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    None,
    File,
    Directory,
    Pipe,
    Console,
    /// A socket, NUL, a device: nothing that is handed over.
    Other,
}

fn standard(number: usize) -> RawHandle {
    match number {
        0 => io::stdin().as_raw_handle(),
        1 => io::stdout().as_raw_handle(),
        _ => io::stderr().as_raw_handle(),
    }
}

fn is_terminal(number: usize) -> bool {
    match number {
        0 => io::stdin().is_terminal(),
        1 => io::stdout().is_terminal(),
        _ => io::stderr().is_terminal(),
    }
}

pub fn kind(number: usize) -> Kind {
    let handle = standard(number);
    if handle.is_null() {
        return Kind::None;
    }
    // SAFETY: the call fails on what is no handle.
    match unsafe { GetFileType(handle) } {
        FILE_TYPE_CHAR if is_terminal(number) => Kind::Console,
        // A socket says that it is a pipe, too.
        FILE_TYPE_PIPE => {
            let none = std::ptr::null_mut();
            // SAFETY: nothing is asked for but whether it is one.
            let is_pipe = unsafe { GetNamedPipeInfo(handle, none, none, none, none) } != 0;
            if is_pipe { Kind::Pipe } else { Kind::Other }
        }
        FILE_TYPE_DISK => match duplicate(number).and_then(|copy| File::from(copy).metadata()) {
            Ok(metadata) if metadata.file_attributes() & 0x10 != 0 => Kind::Directory,
            Ok(_) => Kind::File,
            Err(_) => Kind::Other,
        },
        _ => Kind::Other,
    }
}

/// One more handle for a standard one.
pub fn duplicate(number: usize) -> io::Result<OwnedHandle> {
    let handle = standard(number);
    if handle.is_null() {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    // SAFETY: it is one of the standard handles, which this program does not close while this runs.
    unsafe { BorrowedHandle::borrow_raw(handle) }.try_clone_to_owned()
}

/// A handle that goes into a new process where a list names it.
#[derive(Debug)]
pub struct Inheritable(OwnedHandle);

impl Inheritable {
    pub fn of(handle: &impl AsHandle) -> io::Result<Inheritable> {
        let mut copy: HANDLE = std::ptr::null_mut();
        // SAFETY: both processes are this one; the handle is borrowed for the call, the copy a live local.
        check(unsafe {
            DuplicateHandle(
                GetCurrentProcess(),
                handle.as_handle().as_raw_handle(),
                GetCurrentProcess(),
                &raw mut copy,
                0,
                1,
                DUPLICATE_SAME_ACCESS,
            )
        })?;
        Ok(Inheritable(own(copy)?))
    }

    pub(super) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    /// For a process that is to find out that it has no such handle.
    pub fn number(&self) -> u64 {
        self.raw() as usize as u64
    }
}

/// Takes a handle that this process was started with, and makes it non-inheritable.
pub fn adopt(number: u64) -> io::Result<OwnedHandle> {
    let number = usize::try_from(number).map_err(io::Error::other)?;
    let handle: HANDLE = std::ptr::without_provenance_mut(number);
    // SAFETY: the calls fail on what is no handle.
    unsafe {
        if GetFileType(handle) != FILE_TYPE_PIPE {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        check(SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0))?;
    }
    own(handle)
}

/// Closes the three standard handles, so that their readers see the end.
pub fn close_standard() {
    for number in [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
        // SAFETY: numbers, and a handle that is this process's own; it is not the standard one any more when it
        // is closed, and what is none of ours is not closed by that.
        unsafe {
            let handle = GetStdHandle(number);
            SetStdHandle(number, std::ptr::null_mut());
            if !handle.is_null() && handle != INVALID_HANDLE_VALUE {
                CloseHandle(handle);
            }
        }
    }
}

/// Whether a number is a handle of this process to a file that begins with this text.
pub fn reaches(number: u64, text: &str) -> bool {
    let Ok(number) = usize::try_from(number) else { return false };
    let handle: HANDLE = std::ptr::without_provenance_mut(number);
    // SAFETY: the call fails on what is no handle.
    if unsafe { GetFileType(handle) } != FILE_TYPE_DISK {
        return false;
    }
    // SAFETY: only read from, and given back below without being closed: whose it is we do not know.
    let file = unsafe { File::from_raw_handle(handle) };
    let mut seen = vec![0; text.len()];
    let read = file.seek_read(&mut seen, 0);
    let _ = file.into_raw_handle();
    read.is_ok_and(|count| count == text.len()) && seen == text.as_bytes()
}
