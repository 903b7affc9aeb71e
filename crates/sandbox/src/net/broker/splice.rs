//! Bytes from socket to socket through a pipe, without coming by here (splice, Linux 2.6.17).

use std::io;
use std::os::fd::OwnedFd;

use mio::net::TcpStream;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

/// As much as a pipe of the default size takes. Larger ones are counted against the user's
/// quota, and are no faster.
const MOST: usize = 1 << 20;

/// Empty ones are kept for the next connection.
const KEPT: usize = 64;

#[derive(Debug)]
pub struct Buffer {
    read: OwnedFd,
    write: OwnedFd,
    held: usize,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Zero at the end of the stream.
    pub fn fill(&mut self, from: &TcpStream) -> io::Result<usize> {
        let count = splice(from, None, &self.write, None, MOST, SpliceFlags::NONBLOCK)?;
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
pub struct Buffers(Vec<Buffer>);

impl Buffers {
    pub fn take(&mut self) -> io::Result<Buffer> {
        if let Some(buffer) = self.0.pop() {
            return Ok(buffer);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Buffer { read, write, held: 0 })
    }

    pub fn put_back(&mut self, buffer: Buffer) {
        if self.0.len() < KEPT {
            self.0.push(buffer);
        }
    }
}
