//! As many bytes as an archive announces, and an error where there are fewer.

use std::io::{Error, ErrorKind, Read, Result};

pub struct Exactly<R> {
    pub inner: R,
    pub left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.inner.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(Error::new(ErrorKind::UnexpectedEof, "it is cut off"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}
