//! Which processes are in a sandbox. `sandbox_check` is no public interface: it is looked for at run time, and
//! whether it tells the truth is tried before anything rests on it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem;

const GLOBAL_NAME: c_int = 2;
/// Asking is no violation, and not worth a line in the system's log.
const NO_REPORT: c_int = 0x4000_0000;

/// The last parameters are variable, which on arm64 go another way than fixed ones.
type Check = unsafe extern "C" fn(libc::pid_t, *const c_char, c_int, ...) -> c_int;

fn function() -> Option<Check> {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"sandbox_check".as_ptr()) };
    // SAFETY: a function of this name has this signature on every macOS that has it.
    (!found.is_null()).then(|| unsafe { mem::transmute::<*mut c_void, Check>(found) })
}

/// Whether this process is in a sandbox; `None` where that cannot be asked.
pub fn is_sandboxed() -> Option<bool> {
    let check = function()?;
    // SAFETY: without an operation the question is whether there is a sandbox at all.
    match unsafe { check(libc::getpid(), std::ptr::null(), 0) } {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Tells the processes of one run by a service that only their profile lets them look up.
#[derive(Clone)]
pub struct Membership {
    check: Check,
    own: CString,
    other: CString,
}

impl Membership {
    pub fn new(service: &str) -> Option<Membership> {
        let other = CString::new(format!("{service}.not")).ok()?;
        Some(Membership { check: function()?, own: CString::new(service).ok()?, other })
    }

    /// A process outside every sandbox may look up anything, so the answer to another name has to
    /// be no.
    pub fn holds(&self, pid: i32) -> bool {
        self.may(pid, &self.own) && !self.may(pid, &self.other)
    }

    fn may(&self, pid: i32, name: &CString) -> bool {
        let kind = GLOBAL_NAME | NO_REPORT;
        // SAFETY: operation and name are C strings that outlive the call.
        unsafe { (self.check)(pid, c"mach-lookup".as_ptr(), kind, name.as_ptr()) == 0 }
    }
}
