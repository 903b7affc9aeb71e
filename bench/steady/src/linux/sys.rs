//! The one call without a safe wrapper. All `unsafe` of this program is here.
#![allow(unsafe_code)]

use std::io;

/// Installs a filter of a single instruction, "allow", for this process and its children.
pub fn allow_everything() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let mut allow = libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    };
    let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
    // SAFETY: `program` points to one instruction, and both live until the call is over: the
    // kernel copies them.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
