//! Bytes from socket to socket through a pipe, without coming by here (splice, Linux 2.6.17).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mio::net::TcpStream;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// What one pipe may hold: its slots take more than a page each where a socket has larger pieces.
const MOST: usize = 1 << 20;

/// A pipe of this size moves nearly twice as much for the same work as one of the default 64 KiB.
const LARGE: usize = 1 << 20;

/// All pipes of a user share a quota of 64 MiB, beyond which those of other programs are tiny. So
/// only the first are large; they are the ones in use while few connections move much.
const LARGE_ONES: usize = 2;

/// Empty ones are kept for the next connection.
const KEPT: usize = 64;

#[derive(Debug)]
pub struct Buffer {
    read: OwnedFd,
    write: OwnedFd,
    held: usize,
    /// Whether it is one of the large ones; they are counted by this.
    large: Option<Arc<()>>,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    pub fn held(&self) -> usize {
        self.held
    }

    /// Zero at the end of the stream, and perhaps before something urgent.
    pub fn fill(&mut self, from: &TcpStream, most: usize) -> io::Result<usize> {
        let most = most.min(MOST.saturating_sub(self.held));
        if most == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = splice(from, None, &self.write, None, most, SpliceFlags::NONBLOCK)?;
        self.held += count;
        Ok(count)
    }

    pub fn drain(&mut self, to: &TcpStream) -> io::Result<usize> {
        let count = splice(&self.read, None, to, None, self.held, SpliceFlags::NONBLOCK)?;
        self.held -= count.min(self.held);
        Ok(count)
    }
}

#[derive(Debug, Default)]
pub struct Buffers {
    kept: Vec<Buffer>,
    large: Vec<Buffer>,
    /// One more than there are large ones, wherever they are now.
    count: Arc<()>,
}

impl Buffers {
    pub fn take(&mut self) -> io::Result<Buffer> {
        if let Some(buffer) = self.large.pop() {
            return Ok(buffer);
        }
        let may_be_large = Arc::strong_count(&self.count) <= LARGE_ONES;
        if !may_be_large && let Some(buffer) = self.kept.pop() {
            return Ok(buffer);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Refused where the user has used up the quota: then it has the default size.
        let is_large = may_be_large && fcntl_setpipe_size(&write, LARGE).is_ok();
        Ok(Buffer { read, write, held: 0, large: is_large.then(|| self.count.clone()) })
    }

    pub fn put_back(&mut self, buffer: Buffer) {
        if buffer.large.is_some() {
            self.large.push(buffer);
        } else if self.kept.len() < KEPT {
            self.kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_ones_are_few_and_come_first() {
        let mut buffers = Buffers::default();
        let taken: Vec<_> = (0..4).map(|_| buffers.take().unwrap()).collect();
        let large = taken.iter().filter(|buffer| buffer.large.is_some()).count();
        // A user whose quota is used up has none.
        assert!(large == LARGE_ONES || large == 0, "{large}");
        taken.into_iter().rev().for_each(|buffer| buffers.put_back(buffer));
        assert_eq!(buffers.take().unwrap().large.is_some(), large > 0);
        // One that went with its connection is made anew.
        let again: Vec<_> = (0..4).map(|_| buffers.take().unwrap()).collect();
        assert_eq!(again.iter().filter(|buffer| buffer.large.is_some()).count(), large);
    }
}
