//! Access lists of files and directories, read and written as bytes, of just the object that was opened.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsHandle, AsRawHandle};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, SetKernelObjectSecurity,
};
use windows_sys::Win32::Storage::FileSystem::GetFinalPathNameByHandleW;

use super::check;
use crate::host_files::sys::information;
use crate::windows::spread::{Kind, Look};

const READ_ATTRIBUTES: u32 = 0x80;
const READ_CONTROL: u32 = 0x2_0000;
const WRITE_DAC: u32 = 0x4_0000;
/// Others may go on with what they do to it.
const SHARE_ALL: u32 = 7;
/// Directories, and links themselves.
const ITSELF: u32 = 0x200_0000 | 0x20_0000;
const DIRECTORY: u32 = 0x10;
const REPARSE_POINT: u32 = 0x400;

/// What an object is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Looking,
    Changing,
}

#[derive(Debug)]
pub struct Object(File);

impl Object {
    pub fn open(path: &Path, purpose: Purpose) -> io::Result<Object> {
        let rights = match purpose {
            Purpose::Looking => READ_ATTRIBUTES | READ_CONTROL,
            Purpose::Changing => READ_ATTRIBUTES | READ_CONTROL | WRITE_DAC,
        };
        let mut how = OpenOptions::new();
        how.access_mode(rights).share_mode(SHARE_ALL).custom_flags(ITSELF);
        how.open(path).map(Object)
    }

    /// Where it is, whatever way led there.
    pub fn place(&self) -> io::Result<PathBuf> {
        let mut name = vec![0u16; 512];
        loop {
            let room = u32::try_from(name.len()).unwrap_or(u32::MAX);
            // SAFETY: the buffer has the room that is said, and the handle is owned by `self`.
            let length = unsafe {
                GetFinalPathNameByHandleW(self.0.as_raw_handle(), name.as_mut_ptr(), room, 0)
            };
            match length as usize {
                0 => return Err(io::Error::last_os_error()),
                length if length < name.len() => {
                    name.truncate(length);
                    return Ok(std::ffi::OsString::from_wide(&name).into());
                }
                length => name.resize(length + 1, 0),
            }
        }
    }

    pub fn look(&self) -> io::Result<Look> {
        let info = information(self.0.as_handle())?;
        let kind = match info.attributes {
            bits if bits & REPARSE_POINT != 0 => Kind::Link,
            bits if bits & DIRECTORY != 0 => Kind::Directory,
            _ => Kind::File,
        };
        Ok(Look { kind, names: info.names, id: (info.volume, info.number) })
    }

    /// Its security descriptor, as far as it is about access.
    pub fn descriptor(&self) -> io::Result<Vec<u8>> {
        let handle = self.0.as_raw_handle();
        let mut size = 0u32;
        // SAFETY: without a buffer the call only tells the size.
        unsafe {
            GetKernelObjectSecurity(
                handle,
                DACL_SECURITY_INFORMATION,
                std::ptr::null_mut(),
                0,
                &raw mut size,
            )
        };
        // Aligned as the system wants it.
        let mut words = vec![0u64; (size as usize).div_ceil(size_of::<u64>()).max(1)];
        let room = (words.len() * size_of::<u64>()) as u32;
        let at: *mut c_void = words.as_mut_ptr().cast();
        // SAFETY: the buffer has the size that is said; the handle is owned by `self`.
        check(unsafe {
            GetKernelObjectSecurity(handle, DACL_SECURITY_INFORMATION, at, room, &raw mut size)
        })?;
        Ok(words.into_iter().flat_map(u64::to_ne_bytes).collect())
    }

    pub fn set_descriptor(&self, bytes: &[u8]) -> io::Result<()> {
        let mut words = vec![0u64; bytes.len().div_ceil(size_of::<u64>())];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            *word = u64::from_ne_bytes(whole);
        }
        let at: *mut c_void = words.as_mut_ptr().cast();
        // SAFETY: a descriptor with offsets into itself, aligned, which the call checks and only reads.
        check(unsafe {
            SetKernelObjectSecurity(self.0.as_raw_handle(), DACL_SECURITY_INFORMATION, at)
        })
    }
}
