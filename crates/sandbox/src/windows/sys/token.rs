//! Tokens: what a process may do, apart from its container.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::Security::{
    CreateRestrictedToken, DISABLE_MAX_PRIVILEGE, GetSidSubAuthority, GetSidSubAuthorityCount,
    GetTokenInformation, LookupPrivilegeNameW, SID_AND_ATTRIBUTES, SetTokenInformation,
    TOKEN_ADJUST_DEFAULT, TOKEN_ASSIGN_PRIMARY, TOKEN_DUPLICATE, TOKEN_GROUPS,
    TOKEN_INFORMATION_CLASS, TOKEN_MANDATORY_LABEL, TOKEN_PRIVILEGES, TOKEN_QUERY, TOKEN_USER,
    TokenGroups, TokenIntegrityLevel, TokenIsAppContainer, TokenPrivileges, TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::sid::Sid;
use super::{check, own};

/// Groups of the machine whose members may do more than others.
const POWERFUL: [&str; 9] = [
    "S-1-5-32-544",
    "S-1-5-32-547",
    "S-1-5-32-548",
    "S-1-5-32-549",
    "S-1-5-32-550",
    "S-1-5-32-551",
    "S-1-5-32-552",
    "S-1-5-32-556",
    "S-1-5-32-578",
];
pub const LOW: u32 = 0x1000;
const LOW_LABEL: &str = "S-1-16-4096";
const SE_GROUP_ENABLED: u32 = 0x4;
const SE_GROUP_INTEGRITY: u32 = 0x20;

#[derive(Debug)]
pub struct Token(OwnedHandle);

/// What a token says about itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TokenIdentity {
    pub is_container: bool,
    pub integrity: u32,
    /// But the one that everybody has, to pass through directories.
    pub privileges: Vec<String>,
    /// Groups that allow more than others, and are not for denying only.
    pub powerful_groups: Vec<String>,
}

impl Token {
    fn of_this_process() -> io::Result<Token> {
        let mut token: HANDLE = std::ptr::null_mut();
        let access = TOKEN_QUERY | TOKEN_DUPLICATE | TOKEN_ASSIGN_PRIMARY | TOKEN_ADJUST_DEFAULT;
        // SAFETY: the pseudo handle of this process is always valid, the token a live local.
        check(unsafe { OpenProcessToken(GetCurrentProcess(), access, &raw mut token) })?;
        Ok(Token(own(token)?))
    }

    /// This process's own, without privileges, and with powerful groups for denying only.
    pub fn restricted() -> io::Result<Token> {
        let own_token = Token::of_this_process()?;
        let powerful = own_token.powerful_groups()?;
        let disabled: Vec<SID_AND_ATTRIBUTES> = powerful
            .iter()
            .map(|sid| SID_AND_ATTRIBUTES { Sid: sid.raw(), Attributes: 0 })
            .collect();
        let mut token: HANDLE = std::ptr::null_mut();
        // SAFETY: the list has as many entries as is said, each pointing to a SID that `powerful` keeps; no
        // other lists; the result is a live local.
        check(unsafe {
            CreateRestrictedToken(
                own_token.raw(),
                DISABLE_MAX_PRIVILEGE,
                disabled.len() as u32,
                disabled.as_ptr(),
                0,
                std::ptr::null(),
                0,
                std::ptr::null(),
                &raw mut token,
            )
        })?;
        Ok(Token(own(token)?))
    }

    pub fn lower_integrity(&self) -> io::Result<()> {
        let sid = Sid::parse(LOW_LABEL)?;
        let label = TOKEN_MANDATORY_LABEL {
            Label: SID_AND_ATTRIBUTES { Sid: sid.raw(), Attributes: SE_GROUP_INTEGRITY },
        };
        let at: *const TOKEN_MANDATORY_LABEL = &raw const label;
        // SAFETY: one structure of this size, whose SID lives through the call.
        check(unsafe {
            SetTokenInformation(
                self.raw(),
                TokenIntegrityLevel,
                at.cast::<c_void>(),
                size_of::<TOKEN_MANDATORY_LABEL>() as u32,
            )
        })
    }

    pub(super) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    /// The bytes of an answer, aligned for the pointers in it.
    fn ask(&self, class: TOKEN_INFORMATION_CLASS) -> io::Result<Vec<u64>> {
        let mut size = 0u32;
        // SAFETY: without a buffer the call only tells the size.
        unsafe { GetTokenInformation(self.raw(), class, std::ptr::null_mut(), 0, &raw mut size) };
        let mut answer = vec![0u64; (size as usize).div_ceil(size_of::<u64>()).max(1)];
        let room = (answer.len() * size_of::<u64>()) as u32;
        // SAFETY: the buffer has the size that is said.
        check(unsafe {
            GetTokenInformation(self.raw(), class, answer.as_mut_ptr().cast(), room, &raw mut size)
        })?;
        Ok(answer)
    }

    fn groups(&self) -> io::Result<Vec<(Sid, u32)>> {
        let answer = self.ask(TokenGroups)?;
        let groups: *const TOKEN_GROUPS = answer.as_ptr().cast();
        // SAFETY: the answer holds one such structure, followed by as many entries as it says, each with a valid
        // SID inside the answer.
        unsafe {
            let first = (&raw const (*groups).Groups).cast::<SID_AND_ATTRIBUTES>();
            std::slice::from_raw_parts(first, (*groups).GroupCount as usize)
                .iter()
                .map(|group| Ok((Sid::copy(group.Sid)?, group.Attributes)))
                .collect()
        }
    }

    fn user(&self) -> io::Result<Sid> {
        let answer = self.ask(TokenUser)?;
        let user: *const TOKEN_USER = answer.as_ptr().cast();
        // SAFETY: the answer holds one such structure with a valid SID inside the answer.
        unsafe { Sid::copy((*user).User.Sid) }
    }

    fn powerful_groups(&self) -> io::Result<Vec<Sid>> {
        let is_powerful = |(sid, attributes): &(Sid, u32)| {
            attributes & SE_GROUP_ENABLED != 0 && POWERFUL.contains(&sid.to_string().as_str())
        };
        Ok(self.groups()?.into_iter().filter(is_powerful).map(|(sid, _)| sid).collect())
    }

    fn integrity(&self) -> io::Result<u32> {
        let answer = self.ask(TokenIntegrityLevel)?;
        let label: *const TOKEN_MANDATORY_LABEL = answer.as_ptr().cast();
        // SAFETY: the answer holds one such structure with a valid SID, whose last part is the level.
        unsafe {
            let sid = (*label).Label.Sid;
            let count = *GetSidSubAuthorityCount(sid);
            Ok(*GetSidSubAuthority(sid, u32::from(count).saturating_sub(1)))
        }
    }

    fn privileges(&self) -> io::Result<Vec<String>> {
        let answer = self.ask(TokenPrivileges)?;
        let list: *const TOKEN_PRIVILEGES = answer.as_ptr().cast();
        let mut names = Vec::new();
        // SAFETY: the answer holds one such structure, followed by as many entries as it says.
        let entries = unsafe {
            let first = (&raw const (*list).Privileges).cast();
            std::slice::from_raw_parts::<windows_sys::Win32::Security::LUID_AND_ATTRIBUTES>(
                first,
                (*list).PrivilegeCount as usize,
            )
        };
        for entry in entries {
            let mut name = [0u16; 64];
            let mut length = name.len() as u32;
            // SAFETY: the buffer has the length that is said; no system is named, so this one is meant.
            let known = unsafe {
                LookupPrivilegeNameW(
                    std::ptr::null(),
                    &raw const entry.Luid,
                    name.as_mut_ptr(),
                    &raw mut length,
                )
            };
            let name = match known {
                0 => format!("privilege {}", entry.Luid.LowPart),
                _ => String::from_utf16_lossy(name.get(..length as usize).unwrap_or_default()),
            };
            if name != "SeChangeNotifyPrivilege" {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub fn identity(&self) -> io::Result<TokenIdentity> {
        let powerful = self.powerful_groups()?;
        Ok(TokenIdentity {
            is_container: self.ask(TokenIsAppContainer).is_ok_and(|answer| answer[0] as u32 != 0),
            integrity: self.integrity()?,
            privileges: self.privileges()?,
            powerful_groups: powerful.iter().map(Sid::to_string).collect(),
        })
    }
}

/// Whose this process is.
pub fn user() -> io::Result<Sid> {
    Token::of_this_process()?.user()
}

/// What this process is.
pub fn identity() -> io::Result<TokenIdentity> {
    Token::of_this_process()?.identity()
}
