//! The system's random numbers.

use std::io;

use windows_sys::Win32::Security::Cryptography::{
    BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom,
};

pub fn bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let (at, length) = (bytes.as_mut_ptr(), bytes.len() as u32);
    // SAFETY: a live local of that length.
    let status = unsafe {
        BCryptGenRandom(std::ptr::null_mut(), at, length, BCRYPT_USE_SYSTEM_PREFERRED_RNG)
    };
    match status {
        0 => Ok(bytes),
        status => Err(io::Error::other(format!("no random numbers ({status:#x})"))),
    }
}
