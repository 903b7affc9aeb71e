//! The few D-Bus messages that asking systemd for a scope takes: written, and read with every
//! length checked. Pure; the socket is in `dbus`.

/// No message we wait for is near this size; what claims to be larger ends the talk.
pub const LARGEST: usize = 1 << 20;
/// What has to be read before the length of a message is known.
pub const PREFIX: usize = 16;

const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;
const SIGNAL: u8 = 4;

/// Whom a call is for.
#[derive(Debug, Clone, Copy)]
pub struct Method<'a> {
    pub destination: &'a str,
    pub path: &'a str,
    pub interface: &'a str,
    pub member: &'a str,
}

/// Arguments in the making: each value on its boundary, as the wire wants it.
#[derive(Debug, Default)]
pub struct Arguments {
    bytes: Vec<u8>,
}

impl Arguments {
    fn align(&mut self, to: usize) {
        let length = self.bytes.len().next_multiple_of(to);
        self.bytes.resize(length, 0);
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.align(4);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    /// A string or an object path.
    pub fn string(&mut self, text: &str) -> &mut Self {
        self.u32(text.len() as u32);
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        self
    }

    fn signature(&mut self, text: &str) -> &mut Self {
        self.bytes.push(text.len() as u8);
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        self
    }

    /// An array whose elements start on multiples of `boundary`.
    pub fn array(&mut self, boundary: usize, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.u32(0);
        let length_at = self.bytes.len() - 4;
        self.align(boundary);
        let start = self.bytes.len();
        fill(self);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        self
    }

    /// One `(sv)`: a name and a value of any type.
    pub fn property(&mut self, name: &str, signature: &str, value: impl FnOnce(&mut Self)) {
        self.align(8);
        self.string(name).signature(signature);
        value(self);
    }

    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.u32(value.into())
    }
}

/// A whole message that calls a method.
pub fn call(serial: u32, method: Method<'_>, signature: &str, arguments: &Arguments) -> Vec<u8> {
    let mut message = Arguments { bytes: vec![b'l', METHOD_CALL, 0, 1] };
    message.u32(arguments.bytes.len() as u32).u32(serial);
    message.array(8, |fields| {
        let mut field = |code: u8, kind: &str, value: &str| {
            fields.align(8);
            fields.bytes.push(code);
            fields.signature(kind);
            match kind {
                "g" => fields.signature(value),
                _ => fields.string(value),
            };
        };
        field(1, "o", method.path);
        field(2, "s", method.interface);
        field(3, "s", method.member);
        field(6, "s", method.destination);
        if !signature.is_empty() {
            field(8, "g", signature);
        }
    });
    message.align(8);
    message.bytes.extend(&arguments.bytes);
    message.bytes
}

/// What the other side says, as far as we listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// The answer to a call; with it the first string or object path of its arguments.
    Return {
        to: u32,
        first: Option<String>,
    },
    Error {
        to: u32,
        name: String,
        text: String,
    },
    /// systemd is done with a job.
    JobRemoved {
        job: String,
        result: String,
    },
    Other,
}

/// Bytes that are no message of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The length of the message that starts with these bytes.
pub fn length(prefix: &[u8; PREFIX]) -> Result<usize, Malformed> {
    let mut read = DbusReader::new(prefix)?;
    read.at = 4;
    let body = read.u32()? as usize;
    read.at = 12;
    let fields = read.u32()? as usize;
    if body > LARGEST || fields > LARGEST {
        return Err(Malformed);
    }
    let length = PREFIX + fields.next_multiple_of(8) + body;
    if length > LARGEST { Err(Malformed) } else { Ok(length) }
}

pub fn parse(message: &[u8]) -> Result<Incoming, Malformed> {
    let mut read = DbusReader::new(message)?;
    let kind = *message.get(1).ok_or(Malformed)?;
    read.at = 4;
    let body = read.u32()? as usize;
    read.at = 12;
    let header = Header::read(&mut read)?;
    read.align(8)?;
    let end = read.at.checked_add(body).ok_or(Malformed)?;
    let arguments = message.get(read.at..end).ok_or(Malformed)?;
    let mut arguments = DbusReader { bytes: arguments, at: 0, is_big: read.is_big };
    let is_text = header.signature.starts_with(['s', 'o']);
    Ok(match kind {
        METHOD_RETURN => {
            let first = if is_text { Some(arguments.string()?) } else { None };
            Incoming::Return { to: header.reply_to.ok_or(Malformed)?, first }
        }
        ERROR => {
            let text = if is_text { arguments.string()? } else { String::new() };
            Incoming::Error { to: header.reply_to.ok_or(Malformed)?, name: header.error, text }
        }
        SIGNAL if header.member == "JobRemoved" && header.signature == "uoss" => {
            arguments.u32()?;
            let job = arguments.string()?;
            arguments.string()?;
            Incoming::JobRemoved { job, result: arguments.string()? }
        }
        _ => Incoming::Other,
    })
}

#[derive(Default)]
struct Header {
    reply_to: Option<u32>,
    member: String,
    error: String,
    signature: String,
}

impl Header {
    fn read(read: &mut DbusReader<'_>) -> Result<Header, Malformed> {
        let length = read.u32()? as usize;
        let end = read.at.checked_add(length).ok_or(Malformed)?;
        let mut header = Header::default();
        while read.at < end {
            read.align(8)?;
            let code = read.byte()?;
            match (code, read.signature()?.as_str()) {
                (5, "u") => header.reply_to = Some(read.u32()?),
                (3, "s") => header.member = read.string()?,
                (4, "s") => header.error = read.string()?,
                (8, "g") => header.signature = read.signature()?,
                (_, "u") => drop(read.u32()?),
                (_, "s" | "o") => drop(read.string()?),
                (_, "g") => drop(read.signature()?),
                _ => return Err(Malformed),
            }
        }
        if read.at == end { Ok(header) } else { Err(Malformed) }
    }
}

struct DbusReader<'a> {
    bytes: &'a [u8],
    at: usize,
    is_big: bool,
}

impl<'a> DbusReader<'a> {
    fn new(message: &'a [u8]) -> Result<DbusReader<'a>, Malformed> {
        match message.first() {
            Some(b'l') => Ok(DbusReader { bytes: message, at: 0, is_big: false }),
            Some(b'B') => Ok(DbusReader { bytes: message, at: 0, is_big: true }),
            _ => Err(Malformed),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed)?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(taken)
    }

    fn align(&mut self, to: usize) -> Result<(), Malformed> {
        let next = self.at.next_multiple_of(to);
        self.take(next - self.at).map(drop)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.align(4)?;
        let bytes: [u8; 4] = self.take(4)?.try_into().map_err(|_| Malformed)?;
        Ok(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn string(&mut self) -> Result<String, Malformed> {
        let length = self.u32()? as usize;
        self.text(length)
    }

    fn signature(&mut self) -> Result<String, Malformed> {
        let length = self.byte()? as usize;
        self.text(length)
    }

    fn text(&mut self, length: usize) -> Result<String, Malformed> {
        let text = self.take(length)?;
        if self.byte()? != 0 {
            return Err(Malformed);
        }
        String::from_utf8(text.to_vec()).map_err(|_| Malformed)
    }
}

/// The path or abstract name of a unix socket, from an address such as
/// `unix:path=/run/user/1000/bus,guid=…`. Of several the first that we can use.
pub fn socket_of(address: &str) -> Option<Socket> {
    address.split(';').find_map(|one| {
        let keys = one.strip_prefix("unix:")?;
        keys.split(',').find_map(|pair| match pair.split_once('=')? {
            ("path", path) => Some(Socket::Path(unescaped(path)?)),
            ("abstract", name) => Some(Socket::Abstract(unescaped(name)?)),
            _ => None,
        })
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    Path(Vec<u8>),
    Abstract(Vec<u8>),
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
