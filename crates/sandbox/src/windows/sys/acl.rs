//! Entries in the access lists of files and directories.

use std::ffi::c_void;
use std::io;
use std::path::Path;

use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    EXPLICIT_ACCESS_W, GRANT_ACCESS, GetNamedSecurityInfoW, SE_FILE_OBJECT, SetEntriesInAclW,
    SetNamedSecurityInfoW, TRUSTEE_IS_SID, TRUSTEE_IS_UNKNOWN, TRUSTEE_W,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, DeleteAce, GetAce,
    GetSecurityDescriptorControl, InitializeSecurityDescriptor, PSECURITY_DESCRIPTOR,
    SE_DACL_AUTO_INHERIT_REQ, SE_DACL_AUTO_INHERITED, SE_DACL_PROTECTED, SECURITY_DESCRIPTOR,
    SECURITY_DESCRIPTOR_CONTROL, SetFileSecurityW, SetSecurityDescriptorControl,
    SetSecurityDescriptorDacl,
};

use super::sid::Sid;
use super::{check, check_code, wide};
use crate::windows::access::Access;

const ALLOWED: u8 = 0;
const DENIED: u8 = 1;
/// Onto files and directories below.
const INHERITED_BELOW: u8 = 0x3;
const INHERIT_ONLY: u8 = 0x8;
const INHERITED: u8 = 0x10;

/// Memory that the system allocated for an answer.
struct Local(*mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: it came from a call that says so, and is not used afterwards.
        unsafe { LocalFree(self.0) };
    }
}

/// The access list of a file, as it is now.
struct List {
    name: Vec<u16>,
    list: *mut ACL,
    descriptor: Local,
}

/// One entry, and where it is.
struct Entry {
    at: u32,
    kind: u8,
    flags: u8,
    mask: u32,
    is_ours: bool,
}

impl List {
    fn of(path: &Path) -> io::Result<List> {
        let name = wide(path);
        let mut list: *mut ACL = std::ptr::null_mut();
        let mut descriptor: PSECURITY_DESCRIPTOR = std::ptr::null_mut();
        // SAFETY: the name ends in NUL; the two results are live locals, the second to be freed by us.
        check_code(unsafe {
            GetNamedSecurityInfoW(
                name.as_ptr(),
                SE_FILE_OBJECT,
                DACL_SECURITY_INFORMATION,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                &raw mut list,
                std::ptr::null_mut(),
                &raw mut descriptor,
            )
        })?;
        let descriptor = Local(descriptor);
        if list.is_null() {
            // Open to all; one entry of ours would close it to everybody else.
            let why = "has no access list, which a container cannot be let through";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(List { name, list, descriptor })
    }

    fn entries(&self, sid: &Sid) -> Vec<Entry> {
        // SAFETY: the list is valid while `self` holds its descriptor.
        let count = unsafe { (*self.list).AceCount };
        let mut found = Vec::new();
        for at in 0..u32::from(count) {
            let mut entry: *mut c_void = std::ptr::null_mut();
            // SAFETY: the list is valid, the index below its count, the result a live local.
            if unsafe { GetAce(self.list, at, &raw mut entry) } == 0 {
                continue;
            }
            let header: *const ACE_HEADER = entry.cast();
            // SAFETY: every entry begins with a header.
            let (kind, flags) = unsafe { ((*header).AceType, (*header).AceFlags) };
            if kind != ALLOWED && kind != DENIED {
                continue;
            }
            let body: *const ACCESS_ALLOWED_ACE = entry.cast();
            // SAFETY: entries of these two kinds have this form, and a valid SID from `SidStart` on.
            let (mask, is_ours) = unsafe {
                let holder = (&raw const (*body).SidStart).cast_mut().cast::<c_void>();
                ((*body).Mask, sid.is(holder))
            };
            found.push(Entry { at, kind, flags, mask, is_ours });
        }
        found
    }

    /// Writes a list back, and to all that inherits from it.
    fn write_through(&self, list: *const ACL) -> io::Result<()> {
        // SAFETY: the name ends in NUL, the list is valid by the callers' word; nothing else is set.
        check_code(unsafe {
            SetNamedSecurityInfoW(
                self.name.as_ptr(),
                SE_FILE_OBJECT,
                DACL_SECURITY_INFORMATION,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                list,
                std::ptr::null(),
            )
        })
    }

    /// Writes a list back to this very directory. The other way looks at everything below, which for a home
    /// directory takes minutes.
    fn write_here(&self, list: *const ACL) -> io::Result<()> {
        let mut fresh = SECURITY_DESCRIPTOR::default();
        let at: PSECURITY_DESCRIPTOR = (&raw mut fresh).cast();
        let (mut control, mut revision) = (SECURITY_DESCRIPTOR_CONTROL::default(), 0u32);
        // SAFETY: `fresh` is a live local of the right size, initialised first; the list outlives the calls; the
        // old descriptor is held by `self`; the name ends in NUL.
        unsafe {
            check(InitializeSecurityDescriptor(at, 1))?;
            check(SetSecurityDescriptorDacl(at, 1, list, 0))?;
            check(GetSecurityDescriptorControl(
                self.descriptor.0,
                &raw mut control,
                &raw mut revision,
            ))?;
            // What the list inherits stays marked as inherited.
            let mut kept = control & (SE_DACL_AUTO_INHERITED | SE_DACL_PROTECTED);
            if control & SE_DACL_AUTO_INHERITED != 0 {
                kept |= SE_DACL_AUTO_INHERIT_REQ;
            }
            let bits = SE_DACL_AUTO_INHERITED | SE_DACL_PROTECTED | SE_DACL_AUTO_INHERIT_REQ;
            check(SetSecurityDescriptorControl(at, bits, kept))?;
            check(SetFileSecurityW(self.name.as_ptr(), DACL_SECURITY_INFORMATION, at))
        }
    }
}

/// Lets a SID at a file or directory; what is below inherits it where the access is of that kind.
pub fn let_in(path: &Path, sid: &Sid, access: Access) -> io::Result<()> {
    let list = List::of(path)?;
    let inherited = access.is_inherited() && path.is_dir();
    let entry = EXPLICIT_ACCESS_W {
        grfAccessPermissions: access.mask(),
        grfAccessMode: GRANT_ACCESS,
        grfInheritance: if inherited { u32::from(INHERITED_BELOW) } else { 0 },
        Trustee: TRUSTEE_W {
            pMultipleTrustee: std::ptr::null_mut(),
            MultipleTrusteeOperation: 0,
            TrusteeForm: TRUSTEE_IS_SID,
            TrusteeType: TRUSTEE_IS_UNKNOWN,
            ptstrName: sid.raw().cast(),
        },
    };
    let mut longer: *mut ACL = std::ptr::null_mut();
    // SAFETY: one entry whose SID lives through the call; the old list is held; the new one is freed by us.
    check_code(unsafe { SetEntriesInAclW(1, &raw const entry, list.list, &raw mut longer) })?;
    let _memory = Local(longer.cast());
    if inherited { list.write_through(longer) } else { list.write_here(longer) }
}

/// Whether an entry lets a SID at a path already, as far as asked for.
pub fn lets_in(path: &Path, sid: &Sid, access: Access) -> io::Result<bool> {
    let list = List::of(path)?;
    let entries = list.entries(sid);
    let applies = |entry: &&Entry| entry.is_ours && entry.flags & INHERIT_ONLY == 0;
    let gives = |kind| {
        let of_kind = entries.iter().filter(applies).filter(move |entry| entry.kind == kind);
        of_kind.fold(0, |mask, entry| mask | entry.mask)
    };
    let wanted = access.mask();
    Ok(gives(ALLOWED) & wanted == wanted && gives(DENIED) & wanted == 0)
}

/// Takes every entry of a SID out again that was put here and not inherited; how many there were.
pub fn shut_out(path: &Path, sid: &Sid) -> io::Result<usize> {
    let list = List::of(path)?;
    let is_put_here = |entry: &Entry| entry.is_ours && entry.flags & INHERITED == 0;
    let ours: Vec<Entry> = list.entries(sid).into_iter().filter(is_put_here).collect();
    if ours.is_empty() {
        return Ok(0);
    }
    for entry in ours.iter().rev() {
        // SAFETY: the list is our copy, and indices are taken out from the last one on.
        check(unsafe { DeleteAce(list.list, entry.at) })?;
    }
    match ours.iter().any(|entry| entry.flags & INHERITED_BELOW != 0) {
        true => list.write_through(list.list)?,
        false => list.write_here(list.list)?,
    }
    Ok(ours.len())
}
