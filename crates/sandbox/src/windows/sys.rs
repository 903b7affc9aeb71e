//! The unsafe part: one file for each kind of object. No raw handle, SID or pointer leaves it; everything that
//! must be closed or freed is owned by a type that does.
#![allow(unsafe_code)]

pub mod acl;
pub mod adapters;
pub mod console;
pub mod container;
pub mod desktop;
pub mod handles;
pub mod job;
pub mod port;
pub mod process;
pub mod pty;
pub mod random;
pub mod sid;
pub mod token;

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;

/// The answer of a call that says no more than whether it worked.
fn check(answer: i32) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The answer of a call that returns its error.
fn check_code(code: u32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code.cast_signed())) }
}

/// Takes a handle that a call has just made for us.
fn own(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller got it from a call that makes a new handle, and has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Ended by NUL, as the system takes it.
fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// Version and build. GetVersionEx gives programs without a manifest an old version, RtlGetVersion does not.
pub fn version() -> (u32, u32, u32) {
    let mut info = OSVERSIONINFOW {
        dwOSVersionInfoSize: size_of::<OSVERSIONINFOW>() as u32,
        ..OSVERSIONINFOW::default()
    };
    // SAFETY: fills one structure of the size that it says, a live local.
    unsafe { windows_sys::Wdk::System::SystemServices::RtlGetVersion(&raw mut info) };
    (info.dwMajorVersion, info.dwMinorVersion, info.dwBuildNumber)
}
