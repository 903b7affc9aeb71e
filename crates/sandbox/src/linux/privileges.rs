//! Giving up capabilities, and the means to get new ones.

use std::io;

use crate::linux::channel::Seen;
use crate::linux::sys;

/// For good. Tells what is left by the kernel's word, which must be nothing.
pub fn drop_privileges() -> io::Result<Seen> {
    rustix::thread::set_no_new_privs(true)?;
    let bounding = sys::drop_all_capabilities()?;
    let left = sys::capabilities_left()?;
    if left != 0 || !rustix::thread::no_new_privs()? {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    Ok(Seen::Confirmed(match bounding {
        sys::Bounding::Empty => "capabilities 0 in every set, no_new_privs 1".to_owned(),
        sys::Bounding::Kept => {
            "capabilities 0 in every set but the bounding one, no_new_privs 1".to_owned()
        }
    }))
}
