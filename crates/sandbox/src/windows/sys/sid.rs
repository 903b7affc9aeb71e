//! Security identifiers.

use std::fmt;
use std::io;

use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW,
    ConvertStringSidToSidW,
};
use windows_sys::Win32::Security::{CopySid, GetLengthSid, PSECURITY_DESCRIPTOR, PSID};

use super::{check, wide};

/// ALL APPLICATION PACKAGES.
pub const ALL_CONTAINERS: &str = "S-1-15-2-1";

/// A copy of our own, aligned as the system wants it.
#[derive(Clone)]
pub struct Sid(Vec<u32>);

impl Sid {
    pub fn parse(text: &str) -> io::Result<Sid> {
        let mut sid: PSID = std::ptr::null_mut();
        // SAFETY: the text ends in NUL; the result is memory of the system's, freed below.
        check(unsafe { ConvertStringSidToSidW(wide(text).as_ptr(), &raw mut sid) })?;
        // SAFETY: the call above gave a valid SID.
        let copy = unsafe { Sid::copy(sid) };
        // SAFETY: it was allocated by the call above and is not used any more.
        unsafe { LocalFree(sid) };
        copy
    }

    /// # Safety
    /// `sid` has to be a valid SID.
    pub(super) unsafe fn copy(sid: PSID) -> io::Result<Sid> {
        // SAFETY: valid by the caller's word.
        let length = unsafe { GetLengthSid(sid) };
        let mut own = vec![0u32; (length as usize).div_ceil(size_of::<u32>())];
        // SAFETY: the copy has at least the SID's own length.
        check(unsafe { CopySid(length, own.as_mut_ptr().cast(), sid) })?;
        Ok(Sid(own))
    }

    /// Not to be written to, nor used after `self` is gone.
    pub(super) fn raw(&self) -> PSID {
        self.0.as_ptr().cast_mut().cast()
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = std::ptr::null_mut();
        // SAFETY: the SID is ours; the result is memory of the system's, freed below.
        if unsafe { ConvertSidToStringSidW(self.raw(), &raw mut text) } == 0 {
            return f.write_str("S-?");
        }
        // SAFETY: the call above gave a string that ends in NUL.
        let length = (0..).take_while(|at| unsafe { *text.add(*at) } != 0).count();
        // SAFETY: it has that many characters before its NUL.
        let shown = String::from_utf16_lossy(unsafe { std::slice::from_raw_parts(text, length) });
        // SAFETY: it was allocated by the call above and is not used any more.
        unsafe { LocalFree(text.cast()) };
        f.write_str(&shown)
    }
}

/// A security descriptor, from its SDDL text.
pub struct SddlDescriptor(PSECURITY_DESCRIPTOR);

impl SddlDescriptor {
    pub fn parse(text: &str) -> io::Result<SddlDescriptor> {
        let mut descriptor: PSECURITY_DESCRIPTOR = std::ptr::null_mut();
        // SAFETY: the text ends in NUL; the result is memory of the system's, freed when this is dropped.
        check(unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                wide(text).as_ptr(),
                1,
                &raw mut descriptor,
                std::ptr::null_mut(),
            )
        })?;
        Ok(SddlDescriptor(descriptor))
    }

    /// Not to be used after `self` is gone.
    pub(super) fn raw(&self) -> PSECURITY_DESCRIPTOR {
        self.0
    }
}

impl Drop for SddlDescriptor {
    fn drop(&mut self) {
        // SAFETY: it was allocated by the call above and is not used any more.
        unsafe { LocalFree(self.0) };
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
