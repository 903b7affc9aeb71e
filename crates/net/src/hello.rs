//! The first message of a TLS client: which server it says it wants.
//!
//! Stops a program that was let through to one name's address from asking the machine there
//! for another name (domain fronting), as far as the name is sent in the clear. Left open:
//! a server that serves another name than the one it was asked for; what is inside an
//! encrypted ClientHello (ECH), whose outer name is all that can be seen here; the second
//! ClientHello after a HelloRetryRequest, which TLS 1.3 makes the server compare itself.
//!
//! Servers are more lenient than the RFCs: Java's takes any record version from 3.0 on, Go's any
//! below 16.0, and both skip a warning alert before the hello. So the first byte alone decides
//! that a stream is TLS, and TLS is either a ClientHello by the book or broken.

use std::ops::RangeInclusive;

use mcp_policy::HostName;

use super::cursor::Cursor;

const HANDSHAKE: u8 = 22;
/// ChangeCipherSpec, Alert, Handshake, application data, Heartbeat. No TLS client begins with
/// another than a handshake, but there are servers that read on after one.
const CONTENT_TYPES: RangeInclusive<u8> = 20..=24;
/// The first byte of an SSL 2 record has this bit, and a length in the others.
const SSL2_RECORD: u8 = 0x80;
const MAX_RECORD: usize = 1 << 14;
const CLIENT_HELLO: u8 = 1;
/// Post-quantum key shares make it some 2 KiB; session tickets can add tens.
pub const MAX_HELLO: usize = 64 << 10;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HelloProgress {
    NeedMore,
    NotTls,
    Hello(Hello),
    /// It begins as TLS and cannot be judged: to be closed, with this reason.
    Broken(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub server_name: Option<HostName>,
    pub ech: Ech,
}

/// Whether the hello holds another one, encrypted. Browsers always send the extension,
/// mostly filled with noise, so its presence says little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ech {
    Absent,
    /// `server_name` is then the outer, public name.
    Present,
}

/// Puts the ClientHello together from the records it was cut into. Does not keep the bytes
/// for the server: the caller does.
#[derive(Debug, Default)]
pub struct HelloReader {
    /// Of the record that is being read.
    header: Vec<u8>,
    in_record: usize,
    /// The handshake message so far.
    message: Vec<u8>,
    end: Option<HelloProgress>,
}

impl HelloReader {
    /// Takes the next bytes of the stream. After an answer other than `NeedMore` it stays.
    pub fn feed(&mut self, bytes: &[u8]) -> HelloProgress {
        if self.end.is_none() {
            self.end = self.advance(bytes);
        }
        self.end.clone().unwrap_or(HelloProgress::NeedMore)
    }

    fn advance(&mut self, mut bytes: &[u8]) -> Option<HelloProgress> {
        while !bytes.is_empty() {
            if self.in_record == 0 {
                let missing = 5usize.saturating_sub(self.header.len()).min(bytes.len());
                let (now, later) = bytes.split_at(missing);
                self.header.extend_from_slice(now);
                bytes = later;
                match self.record_length() {
                    Ok(None) => continue,
                    Ok(Some(length)) => self.in_record = length,
                    Err(end) => return Some(end),
                }
                self.header.clear();
            }
            let (now, later) = bytes.split_at(self.in_record.min(bytes.len()));
            self.in_record -= now.len();
            self.message.extend_from_slice(now);
            bytes = later;
            if let Some(end) = self.complete_message() {
                return Some(end);
            }
        }
        None
    }

    /// The length in the record header, once it is all there.
    fn record_length(&self) -> Result<Option<usize>, HelloProgress> {
        let is_first = self.message.is_empty();
        match *self.header.as_slice() {
            [HANDSHAKE, 3, _, high, low] => match usize::from(u16::from_be_bytes([high, low])) {
                0 => Err(HelloProgress::Broken("an empty TLS record")),
                length if length > MAX_RECORD => {
                    Err(HelloProgress::Broken("a TLS record that is too long"))
                }
                length => Ok(Some(length)),
            },
            [] | [HANDSHAKE] | [HANDSHAKE, 3, ..] => Ok(None),
            _ if !is_first => Err(HelloProgress::Broken("a ClientHello that is interrupted")),
            [HANDSHAKE, ..] => Err(HelloProgress::Broken("a TLS record of an unknown version")),
            [kind, ..] if CONTENT_TYPES.contains(&kind) => {
                Err(HelloProgress::Broken("TLS that does not begin with a ClientHello"))
            }
            [length, _, CLIENT_HELLO, ..] if length & SSL2_RECORD != 0 => {
                Err(HelloProgress::Broken("an SSL 2 hello"))
            }
            [length] | [length, _] if length & SSL2_RECORD != 0 => Ok(None),
            _ => Err(HelloProgress::NotTls),
        }
    }

    fn complete_message(&mut self) -> Option<HelloProgress> {
        let [kind, high, middle, low, ..] = *self.message.as_slice() else {
            return match self.message.first() {
                Some(&CLIENT_HELLO) | None => None,
                Some(_) => Some(NOT_A_HELLO),
            };
        };
        if kind != CLIENT_HELLO {
            return Some(NOT_A_HELLO);
        }
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if length > MAX_HELLO {
            return Some(HelloProgress::Broken("a ClientHello that is too long"));
        }
        let body = self.message.get(4..4 + length)?;
        let end = match read_hello(body) {
            Ok(hello) => HelloProgress::Hello(hello),
            Err(reason) => HelloProgress::Broken(reason),
        };
        self.message = Vec::new();
        Some(end)
    }
}

const NOT_A_HELLO: HelloProgress =
    HelloProgress::Broken("a TLS handshake that is not a ClientHello");

/// Reads a whole ClientHello, without its handshake header.
fn read_hello(body: &[u8]) -> Result<Hello, &'static str> {
    let mut cursor = Cursor::new(body);
    let extensions = read_fixed_part(&mut cursor).ok_or("a malformed ClientHello")?;
    let mut hello = Hello { server_name: None, ech: Ech::Absent };
    let mut seen = Vec::new();
    let mut cursor = Cursor::new(extensions);
    while !cursor.is_empty() {
        let (Some(kind), Some(data)) = (cursor.u16(), cursor.block16()) else {
            return Err("a malformed ClientHello");
        };
        if matches!(kind, SERVER_NAME | ENCRYPTED_HELLO) && seen.contains(&kind) {
            return Err("a ClientHello with an extension twice");
        }
        match kind {
            SERVER_NAME => hello.server_name = Some(read_server_name(data)?),
            ENCRYPTED_HELLO => hello.ech = Ech::Present,
            _ => continue,
        }
        seen.push(kind);
    }
    Ok(hello)
}

/// Version, random, session, cipher suites, compression; gives the extensions.
fn read_fixed_part<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    cursor.take(2 + 32)?;
    let session = cursor.block8()?;
    let suites = cursor.block16()?;
    let compressions = cursor.block8()?;
    if session.len() > 32 || suites.is_empty() || suites.len() % 2 != 0 || compressions.is_empty() {
        return None;
    }
    if cursor.is_empty() {
        return Some(&[]);
    }
    let extensions = cursor.block16()?;
    cursor.is_empty().then_some(extensions)
}

/// RFC 6066: a list of names, of which there may be one of each type, and the only type is
/// a host name. Servers disagree about which of two they take, so two are refused.
fn read_server_name(data: &[u8]) -> Result<HostName, &'static str> {
    const MALFORMED: &str = "a malformed server name in the ClientHello";
    let mut outer = Cursor::new(data);
    let mut list = Cursor::new(outer.block16().ok_or(MALFORMED)?);
    let (Some(0), Some(name)) = (list.u8(), list.block16()) else {
        return Err(MALFORMED);
    };
    if !outer.is_empty() || !list.is_empty() {
        return Err(MALFORMED);
    }
    let name = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    name.ok_or("a server name in the ClientHello that is not a host name")
}

#[cfg(test)]
mod tests;
