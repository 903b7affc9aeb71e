//! Bytes from socket to socket through memory of ours, where there is no splice.

use std::io::{self, Read, Write};

use mio::net::TcpStream;

const SIZE: usize = 64 << 10;

/// Empty ones are kept for the next connection.
const KEPT: usize = 16;

#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// All of its memory, however little is in it.
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Zero at the end of the stream.
    pub fn fill(&mut self, mut from: &TcpStream, most: usize) -> io::Result<usize> {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
        if self.end == self.bytes.len() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let end = self.bytes.len().min(self.end + most);
        let count = from.read(&mut self.bytes[self.end..end])?;
        self.end += count;
        Ok(count)
    }

    pub fn drain(&mut self, mut to: &TcpStream) -> io::Result<usize> {
        let count = to.write(&self.bytes[self.start..self.end])?;
        self.start += count;
        Ok(count)
    }
}

#[derive(Debug, Default)]
pub struct Buffers(Vec<Buffer>);

impl Buffers {
    pub fn take(&mut self) -> io::Result<Buffer> {
        let new = || Buffer { bytes: vec![0; SIZE].into(), start: 0, end: 0 };
        Ok(self.0.pop().unwrap_or_else(new))
    }

    pub fn put_back(&mut self, buffer: Buffer) {
        if self.0.len() < KEPT {
            self.0.push(buffer);
        }
    }
}
