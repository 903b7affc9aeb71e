//! A desktop of a run's own: windows of the user's are on another one. Looked up when it is needed, so that this program
//! itself does without user32.dll, which no process loads whose desktop is closed to it.

use std::ffi::c_void;
use std::io;

use windows_sys::Win32::Foundation::FreeLibrary;
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};
use windows_sys::core::PCWSTR;

use super::sid::SddlDescriptor;
use super::{check, wide};

type Create = unsafe extern "system" fn(
    PCWSTR,
    PCWSTR,
    *const c_void,
    u32,
    u32,
    *const SECURITY_ATTRIBUTES,
) -> *mut c_void;
type CreateEx = unsafe extern "system" fn(
    PCWSTR,
    PCWSTR,
    *const c_void,
    u32,
    u32,
    *const SECURITY_ATTRIBUTES,
    u32,
    *const c_void,
) -> *mut c_void;
type Close = unsafe extern "system" fn(*mut c_void) -> i32;

/// READOBJECTS, CREATEWINDOW, CREATEMENU, ENUMERATE, WRITEOBJECTS and READ_CONTROL: what programs with windows need. Not
/// HOOKCONTROL, the journals and SWITCHDESKTOP.
const PROGRAMS: u32 = 0x2_00c7;
const READ_CONTROL: u32 = 0x2_0000;
/// In KiB: desktops share the memory of a session.
const HEAP: u32 = 512;

/// user32.dll, loaded while this lives.
struct Library(*mut c_void);

impl Library {
    fn open() -> io::Result<Library> {
        let name = wide("user32.dll");
        // SAFETY: the name ends in NUL; only the system's own directory is searched.
        let module = unsafe {
            LoadLibraryExW(name.as_ptr(), std::ptr::null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32)
        };
        if module.is_null() { Err(io::Error::last_os_error()) } else { Ok(Library(module)) }
    }

    fn function(
        &self,
        name: &'static std::ffi::CStr,
    ) -> io::Result<unsafe extern "system" fn() -> isize> {
        // SAFETY: the module is loaded, the name ends in NUL.
        unsafe { GetProcAddress(self.0, name.as_ptr().cast()) }.ok_or_else(|| {
            let name = name.to_string_lossy();
            io::Error::new(io::ErrorKind::Unsupported, format!("user32.dll has no {name}"))
        })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: it was loaded by us, and no function of it is used afterwards.
        unsafe { FreeLibrary(self.0) };
    }
}

/// Gone when this is dropped and no process is on it any more.
pub struct Desktop {
    handle: *mut c_void,
    name: Vec<u16>,
    library: Library,
}

impl Desktop {
    /// One for processes of this user in this container. The label is for them, too: they are Low.
    pub fn make(name: &str, container: &str) -> io::Result<Desktop> {
        let user = super::token::user()?;
        let security = SddlDescriptor::parse(&format!(
            "D:P(A;;GA;;;{user})(A;;{PROGRAMS:#x};;;{container})S:(ML;;NW;;;LW)"
        ))?;
        let attributes = SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: security.raw(),
            bInheritHandle: 0,
        };
        let library = Library::open()?;
        let name = wide(name);
        let access = PROGRAMS | READ_CONTROL;
        let none = std::ptr::null();
        let handle = match library.function(c"CreateDesktopExW") {
            Ok(function) => {
                // SAFETY: this is the signature that is documented for that name.
                let create = unsafe {
                    std::mem::transmute::<unsafe extern "system" fn() -> isize, CreateEx>(function)
                };
                // SAFETY: the name ends in NUL; it, the attributes and their descriptor live through the call; what is
                // null is to be null.
                unsafe {
                    create(
                        name.as_ptr(),
                        none,
                        none.cast(),
                        0,
                        access,
                        &raw const attributes,
                        HEAP,
                        none.cast(),
                    )
                }
            }
            Err(_) => {
                let function = library.function(c"CreateDesktopW")?;
                // SAFETY: this is the signature that is documented for that name.
                let create = unsafe {
                    std::mem::transmute::<unsafe extern "system" fn() -> isize, Create>(function)
                };
                // SAFETY: as above.
                unsafe {
                    create(name.as_ptr(), none, none.cast(), 0, access, &raw const attributes)
                }
            }
        };
        match handle.is_null() {
            true => Err(io::Error::last_os_error()),
            false => Ok(Desktop { handle, name, library }),
        }
    }

    /// As a process's creation takes it: in the window station of this process.
    pub(super) fn name(&self) -> *const u16 {
        self.name.as_ptr()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        if let Ok(function) = self.library.function(c"CloseDesktop") {
            // SAFETY: this is the signature that is documented for that name.
            let close = unsafe {
                std::mem::transmute::<unsafe extern "system" fn() -> isize, Close>(function)
            };
            // SAFETY: the handle is ours, and not used afterwards.
            let _ = check(unsafe { close(self.handle) });
        }
    }
}

/// Whether programs with windows start on this process's desktop: the library that they need finds it out when it is
/// loaded.
pub fn is_usable() -> io::Result<()> {
    Library::open().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::sys::handles::Inheritable;
    use crate::windows::sys::job::Job;
    use crate::windows::sys::process::{Children, Start};
    use crate::windows::{command_line, environment, job::JobLimits};
    use std::time::Duration;

    /// No container has this SID.
    const UNUSED: &str = "S-1-15-2-11-22-33-44-55-66-78";

    /// cmd.exe ends as it does on the user's desktop; a name that nothing has is refused by the library, not by us.
    #[test]
    fn a_program_starts_on_a_desktop_of_its_own() {
        let desktop = match Desktop::make(&format!("mcp-test-{}", std::process::id()), UNUSED) {
            Ok(desktop) => desktop,
            Err(e) => {
                println!("NOT VERIFIED: desktop: {e}");
                return;
            }
        };
        is_usable().unwrap();
        let root = std::env::var_os("SystemRoot").unwrap();
        let shell = std::path::Path::new(&root).join(r"System32\cmd.exe");
        let line =
            command_line::of_program(shell.as_os_str(), &["/c".into(), "exit".into(), "7".into()]);
        let nothing = std::fs::OpenOptions::new().read(true).write(true).open("NUL").unwrap();
        let stdio = [0; 3].map(|_| Inheritable::of(&nothing).unwrap());
        let job = Job::new().unwrap();
        job.set_limits(JobLimits::default()).unwrap();
        let environment = environment::block(&[("SystemRoot".into(), root.clone())]);
        let start = Start {
            program: shell.as_os_str(),
            command_line: &line.unwrap(),
            environment: &environment,
            directory: &root,
            stdio: &stdio,
            job: &job,
            token: None,
            container: None,
            desktop: Some(&desktop),
            children: Children::Allowed,
        };
        let process = start.suspended().unwrap().resume().unwrap();
        assert_eq!(process.ended(Duration::from_secs(20)).unwrap(), Some(7));
    }
}
