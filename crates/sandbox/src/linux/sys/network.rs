//! Socket options that rustix does not wrap.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// Lets only those packets through that a classic BPF program keeps: `(code, yes, no, k)` each.
pub fn attach_filter(socket: BorrowedFd<'_>, program: &[(u16, u8, u8, u32)]) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which outlives the call with the steps it points to.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            mem::size_of_val(&program) as libc::socklen_t,
        )
    };
    check(result.into())?;
    Ok(())
}
