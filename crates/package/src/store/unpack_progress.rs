//! Says how far an archive was read while it is unpacked.

use std::fs::File;
use std::io::{Read, Seek};

use crate::archive::{Entry, Sink};
use crate::error::{Error, Result};

/// A sink with a callback: by the position in the bundle, which is known, and not by
/// the length of what is in it, which is not.
pub struct Told<S> {
    inner: S,
    bundle: File,
    length: u64,
    tell: Option<fn(u64, u64)>,
}

impl<S> Told<S> {
    pub fn new(bundle: &File, inner: S, tell: Option<fn(u64, u64)>) -> Result<Told<S>> {
        let failed = |e: std::io::Error| Error::machine(format!("read the bundle: {e}"), "");
        // Shares its position with the one that is read.
        let bundle = bundle.try_clone().map_err(failed)?;
        let length = bundle.metadata().map_err(failed)?.len();
        Ok(Told { inner, bundle, length, tell })
    }
}

impl<S: Sink> Sink for Told<S> {
    fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()> {
        self.inner.entry(entry, content)?;
        if let (Some(tell), Ok(at)) = (self.tell, self.bundle.stream_position()) {
            tell(at.min(self.length), self.length);
        }
        Ok(())
    }
}

/// The end is told, however it came.
impl<S> Drop for Told<S> {
    fn drop(&mut self) {
        if let Some(tell) = self.tell {
            tell(self.length, self.length);
        }
    }
}
