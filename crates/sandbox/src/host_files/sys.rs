//! Attributes of files on Windows that the standard library does not pass on.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle};
use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_READ_ATTRIBUTES, GetFileInformationByHandle,
};

/// What a file is known by.
pub struct Information {
    pub attributes: u32,
    pub volume: u64,
    /// NTFS counts how often it gave a number.
    pub number: u64,
    /// How many names (hard links) it has.
    pub names: u32,
}

/// Of a link its own, of a directory too.
pub fn look(path: &Path) -> io::Result<Information> {
    let flags = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;
    let file =
        OpenOptions::new().access_mode(FILE_READ_ATTRIBUTES).custom_flags(flags).open(path)?;
    information(file.as_handle())
}

pub fn information(file: BorrowedHandle<'_>) -> io::Result<Information> {
    let mut info = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: fills one live structure; the handle is borrowed for the whole call.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut info) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Information {
        attributes: info.dwFileAttributes,
        volume: info.dwVolumeSerialNumber.into(),
        number: u64::from(info.nFileIndexHigh) << 32 | u64::from(info.nFileIndexLow),
        names: info.nNumberOfLinks,
    })
}
