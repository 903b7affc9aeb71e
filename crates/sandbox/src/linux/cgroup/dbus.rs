//! A connection to a D-Bus peer over a unix socket: as much of one as a few calls take.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

use super::dbus_wire::{self as wire, Arguments, Incoming, Method, PREFIX, Socket};

/// The answer to the greeting is one line.
const LONGEST_LINE: usize = 1024;

pub struct Connection {
    stream: UnixStream,
    until: Instant,
    serial: u32,
}

impl Connection {
    /// Connects and says who we are; nothing after this waits past `until`.
    pub fn open(socket: &Socket, uid: u32, until: Instant) -> io::Result<Connection> {
        let address = match socket {
            Socket::Path(path) => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
            Socket::Abstract(name) => SocketAddr::from_abstract_name(name)?,
        };
        let stream = UnixStream::connect_addr(&address)?;
        stream.set_write_timeout(Some(left(until)?))?;
        let mut connection = Connection { stream, until, serial: 0 };
        let digits: String = uid.to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
        let greeting = format!("\0AUTH EXTERNAL {digits}\r\nBEGIN\r\n");
        connection.stream.write_all(greeting.as_bytes())?;
        let line = connection.line()?;
        if line.starts_with(b"OK ") {
            return Ok(connection);
        }
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        Err(io::Error::new(io::ErrorKind::PermissionDenied, line))
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") && line.len() < LONGEST_LINE {
            let mut byte = [0; 1];
            self.fill(&mut byte)?;
            line.push(byte[0]);
        }
        Ok(line)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.stream.set_read_timeout(Some(left(self.until)?))?;
        self.stream.read_exact(buffer).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::TimedOut, "no answer in time")
            }
            _ => e,
        })
    }

    /// Sends a call; the number its answer will carry.
    pub fn call(
        &mut self,
        method: Method<'_>,
        signature: &str,
        arguments: &Arguments,
    ) -> io::Result<u32> {
        self.serial += 1;
        self.stream.write_all(&wire::call(self.serial, method, signature, arguments))?;
        Ok(self.serial)
    }

    pub fn next(&mut self) -> io::Result<Incoming> {
        let mut prefix = [0; PREFIX];
        self.fill(&mut prefix)?;
        let malformed = |_| io::Error::from(io::ErrorKind::InvalidData);
        let mut message = vec![0; wire::length(&prefix).map_err(malformed)?];
        message[..PREFIX].copy_from_slice(&prefix);
        self.fill(&mut message[PREFIX..])?;
        wire::parse(&message).map_err(malformed)
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
