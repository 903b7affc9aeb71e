//! The program's first steps, instead of those of Rust's runtime: that one reads /proc/self/maps to
//! find the end of the stack, a tenth of the time `mcp` takes until the sandbox is made. What the
//! rest of the program relies on of it is done here.
#![allow(unsafe_code)]

/// Called by libc, which has the arguments for `std::env::args` already.
// SAFETY: no other `main` exists in this program: the crate is built with `no_main`.
#[unsafe(no_mangle)]
extern "C" fn main() -> libc::c_int {
    open_standard_descriptors();
    // A reader of ours that goes away is an error of one write, not the end of a sandbox.
    // SAFETY: SIG_IGN is a valid disposition, and no other thread exists.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let code = crate::run();
    let _ = std::io::Write::flush(&mut std::io::stdout());
    code.into()
}

/// Whatever was closed is /dev/null: the next file opened must not become standard output.
fn open_standard_descriptors() {
    for fd in 0..=2 {
        // SAFETY: F_GETFD has no memory arguments, and the path is a C string. Descriptors are
        // opened in rising order, so that the lowest free number is the one that was closed.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) == -1
                && libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) != fd
            {
                libc::abort();
            }
        }
    }
}
