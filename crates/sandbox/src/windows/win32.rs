//! Constants of winnt.h, winbase.h and winerror.h under their own names, for modules that compile everywhere.
//! On Windows a test compares each with the one in `windows-sys`.
#![cfg_attr(
    not(windows),
    allow(dead_code, reason = "one list, of which explaining a plan elsewhere uses a part")
)]

// Access rights of files and directories.
pub const FILE_READ_DATA: u32 = 0x1;
pub const FILE_WRITE_DATA: u32 = 0x2;
pub const FILE_APPEND_DATA: u32 = 0x4;
pub const FILE_READ_EA: u32 = 0x8;
pub const FILE_WRITE_EA: u32 = 0x10;
/// On a directory this is FILE_TRAVERSE.
pub const FILE_EXECUTE: u32 = 0x20;
pub const FILE_DELETE_CHILD: u32 = 0x40;
pub const FILE_READ_ATTRIBUTES: u32 = 0x80;
pub const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
pub const DELETE: u32 = 0x1_0000;
pub const READ_CONTROL: u32 = 0x2_0000;
pub const WRITE_DAC: u32 = 0x4_0000;
pub const WRITE_OWNER: u32 = 0x8_0000;
pub const SYNCHRONIZE: u32 = 0x10_0000;

// Kinds and flags of access control entries.
pub const ACCESS_ALLOWED_ACE_TYPE: u8 = 0;
pub const ACCESS_DENIED_ACE_TYPE: u8 = 1;
pub const SYSTEM_MANDATORY_LABEL_ACE_TYPE: u8 = 0x11;
pub const OBJECT_INHERIT_ACE: u8 = 0x1;
pub const CONTAINER_INHERIT_ACE: u8 = 0x2;
pub const INHERIT_ONLY_ACE: u8 = 0x8;
pub const INHERITED_ACE: u8 = 0x10;

// Control bits of a security descriptor.
pub const SE_DACL_PRESENT: u16 = 0x4;
pub const SE_SACL_PRESENT: u16 = 0x10;
pub const SE_DACL_AUTO_INHERIT_REQ: u16 = 0x100;
pub const SE_DACL_AUTO_INHERITED: u16 = 0x400;
pub const SE_DACL_PROTECTED: u16 = 0x1000;
pub const SE_SELF_RELATIVE: u16 = 0x8000;

// Limits of job objects.
pub const JOB_OBJECT_LIMIT_JOB_TIME: u32 = 0x4;
pub const JOB_OBJECT_LIMIT_ACTIVE_PROCESS: u32 = 0x8;
pub const JOB_OBJECT_LIMIT_JOB_MEMORY: u32 = 0x200;
pub const JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION: u32 = 0x400;
pub const JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE: u32 = 0x2000;

/// Declares error numbers once, for the code and for the test below.
macro_rules! errors {
    ($($name:ident = $value:literal;)*) => {
        $(pub const $name: i32 = $value;)*
        #[cfg(all(windows, test))]
        const ERRORS: &[(&str, i32, u32)] =
            &[$((stringify!($name), $name, windows_sys::Win32::Foundation::$name)),*];
    };
}

errors! {
    ERROR_FILE_NOT_FOUND = 2;
    ERROR_ACCESS_DENIED = 5;
    ERROR_SHARING_VIOLATION = 32;
    ERROR_NOT_SUPPORTED = 50;
    ERROR_INVALID_NAME = 123;
    ERROR_BAD_EXE_FORMAT = 193;
    ERROR_CHILD_PROCESS_BLOCKED = 367;
    ERROR_ELEVATION_REQUIRED = 740;
    ERROR_NOT_FOUND = 1168;
    ERROR_NOT_ENOUGH_QUOTA = 1816;
}

#[cfg(all(windows, test))]
mod tests {
    use windows_sys::Win32::Security as security;
    use windows_sys::Win32::Storage::FileSystem as files;
    use windows_sys::Win32::System::JobObjects as jobs;

    use super::*;

    #[test]
    fn constants_are_those_of_windows() {
        for (name, ours, theirs) in ERRORS {
            assert_eq!(ours.cast_unsigned(), *theirs, "{name}");
        }
        let rights = [
            (FILE_READ_DATA, files::FILE_READ_DATA),
            (FILE_WRITE_DATA, files::FILE_WRITE_DATA),
            (FILE_APPEND_DATA, files::FILE_APPEND_DATA),
            (FILE_READ_EA, files::FILE_READ_EA),
            (FILE_WRITE_EA, files::FILE_WRITE_EA),
            (FILE_EXECUTE, files::FILE_EXECUTE),
            (FILE_DELETE_CHILD, files::FILE_DELETE_CHILD),
            (FILE_READ_ATTRIBUTES, files::FILE_READ_ATTRIBUTES),
            (FILE_WRITE_ATTRIBUTES, files::FILE_WRITE_ATTRIBUTES),
            (DELETE, files::DELETE),
            (READ_CONTROL, files::READ_CONTROL),
            (WRITE_DAC, files::WRITE_DAC),
            (WRITE_OWNER, files::WRITE_OWNER),
            (SYNCHRONIZE, files::SYNCHRONIZE),
            (OBJECT_INHERIT_ACE.into(), security::OBJECT_INHERIT_ACE),
            (CONTAINER_INHERIT_ACE.into(), security::CONTAINER_INHERIT_ACE),
            (INHERIT_ONLY_ACE.into(), security::INHERIT_ONLY_ACE),
            (INHERITED_ACE.into(), security::INHERITED_ACE),
            (SE_DACL_PRESENT.into(), security::SE_DACL_PRESENT.into()),
            (SE_DACL_AUTO_INHERIT_REQ.into(), security::SE_DACL_AUTO_INHERIT_REQ.into()),
            (SE_DACL_AUTO_INHERITED.into(), security::SE_DACL_AUTO_INHERITED.into()),
            (SE_DACL_PROTECTED.into(), security::SE_DACL_PROTECTED.into()),
            (SE_SELF_RELATIVE.into(), security::SE_SELF_RELATIVE.into()),
            (JOB_OBJECT_LIMIT_JOB_TIME, jobs::JOB_OBJECT_LIMIT_JOB_TIME),
            (JOB_OBJECT_LIMIT_ACTIVE_PROCESS, jobs::JOB_OBJECT_LIMIT_ACTIVE_PROCESS),
            (JOB_OBJECT_LIMIT_JOB_MEMORY, jobs::JOB_OBJECT_LIMIT_JOB_MEMORY),
            (
                JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
                jobs::JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
            ),
            (JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, jobs::JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE),
        ];
        for (place, (ours, theirs)) in rights.into_iter().enumerate() {
            assert_eq!(ours, theirs, "constant {place} of the list");
        }
    }
}
