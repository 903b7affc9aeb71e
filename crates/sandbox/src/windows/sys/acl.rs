//! Reads and writes the security descriptor of one open file or directory, as bytes.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsHandle, AsRawHandle};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, LABEL_SECURITY_INFORMATION,
    SetKernelObjectSecurity,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES, FILE_SHARE_DELETE, FILE_SHARE_READ,
    FILE_SHARE_WRITE, GetFinalPathNameByHandleW, READ_CONTROL, WRITE_DAC, WRITE_OWNER,
};

use super::check;
use crate::host_files::sys::information;
use crate::windows::acl_apply::{Kind, ObjectInfo};

/// Other programs may keep the file open, and open it, for anything.
const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
/// Opens directories, and links instead of their targets.
pub const FLAGS: u32 = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;

/// The rights that an object is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    ReadDacl,
    WriteDacl,
    WriteLabel,
}

#[derive(Debug)]
pub struct Object(File);

impl Object {
    pub fn open(path: &Path, rights: Rights) -> io::Result<Object> {
        let rights = match rights {
            Rights::ReadDacl => FILE_READ_ATTRIBUTES | READ_CONTROL,
            Rights::WriteDacl => FILE_READ_ATTRIBUTES | READ_CONTROL | WRITE_DAC,
            Rights::WriteLabel => READ_CONTROL | WRITE_OWNER,
        };
        let mut how = OpenOptions::new();
        how.access_mode(rights).share_mode(SHARE_ALL).custom_flags(FLAGS);
        how.open(path).map(Object)
    }

    /// Its path without links.
    pub fn final_path(&self) -> io::Result<PathBuf> {
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

    pub fn info(&self) -> io::Result<ObjectInfo> {
        let info = information(self.0.as_handle())?;
        let kind = match info.attributes {
            bits if bits & FILE_ATTRIBUTE_REPARSE_POINT != 0 => Kind::ReparsePoint,
            bits if bits & FILE_ATTRIBUTE_DIRECTORY != 0 => Kind::Directory,
            _ => Kind::File,
        };
        Ok(ObjectInfo { kind, links: info.names, id: (info.volume, info.number) })
    }

    pub fn modified(&self) -> io::Result<std::time::SystemTime> {
        self.0.metadata()?.modified()
    }

    /// Its security descriptor, with the DACL only.
    pub fn descriptor(&self) -> io::Result<Vec<u8>> {
        self.read(DACL_SECURITY_INFORMATION)
    }

    /// Its security descriptor, with the mandatory label only.
    pub fn label(&self) -> io::Result<Vec<u8>> {
        self.read(LABEL_SECURITY_INFORMATION)
    }

    fn read(&self, part: u32) -> io::Result<Vec<u8>> {
        let handle = self.0.as_raw_handle();
        let mut size = 0u32;
        // SAFETY: without a buffer the call only tells the size.
        unsafe { GetKernelObjectSecurity(handle, part, std::ptr::null_mut(), 0, &raw mut size) };
        // Aligned as the system wants it.
        let mut words = vec![0u64; (size as usize).div_ceil(size_of::<u64>()).max(1)];
        let room = (words.len() * size_of::<u64>()) as u32;
        let at: *mut c_void = words.as_mut_ptr().cast();
        // SAFETY: the buffer has the size that is said; the handle is owned by `self`.
        check(unsafe { GetKernelObjectSecurity(handle, part, at, room, &raw mut size) })?;
        Ok(words.into_iter().flat_map(u64::to_ne_bytes).collect())
    }

    pub fn set_descriptor(&self, bytes: &[u8]) -> io::Result<()> {
        self.write(DACL_SECURITY_INFORMATION, bytes)
    }

    pub fn set_label(&self, bytes: &[u8]) -> io::Result<()> {
        self.write(LABEL_SECURITY_INFORMATION, bytes)
    }

    fn write(&self, part: u32, bytes: &[u8]) -> io::Result<()> {
        let mut words = vec![0u64; bytes.len().div_ceil(size_of::<u64>())];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            *word = u64::from_ne_bytes(whole);
        }
        let at: *mut c_void = words.as_mut_ptr().cast();
        // SAFETY: a descriptor with offsets into itself, aligned, which the call checks and only reads.
        check(unsafe { SetKernelObjectSecurity(self.0.as_raw_handle(), part, at) })
    }
}
