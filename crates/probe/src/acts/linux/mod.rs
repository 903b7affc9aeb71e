//! Acts that need Linux, mostly system calls made by number.

pub(super) mod attributes;
pub(super) mod connects;
pub(super) mod degraded_host;
pub(super) mod descriptors;
pub(super) mod identity;
pub(super) mod inodes;
pub(super) mod jobs;
pub(super) mod kernel;
pub(super) mod keys;
pub(super) mod limits;
pub(super) mod namespaces;
pub(super) mod processes;
pub(super) mod sockets;
pub(super) mod test_network;

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use crate::spec::Failure;

/// "The current directory" as `openat` and friends take it.
const AT_FDCWD: u64 = (libc::AT_FDCWD as i64).cast_unsigned();

/// An ioctl's number; its type differs between C libraries, its value never exceeds 32 bits.
macro_rules! command {
    ($name:ident) => {
        crate::sys::Arg::Num(u64::from(libc::$name as u32))
    };
}
use command;

/// A word of the command line as the kernel reads it. It cannot hold a zero byte: it came from argv.
fn c_string(text: impl AsRef<OsStr>) -> Result<CString, Failure> {
    CString::new(text.as_ref().as_bytes()).map_err(|_| Failure::usage("a zero byte in a name"))
}
