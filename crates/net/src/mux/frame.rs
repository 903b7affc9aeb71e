//! Messages of a [`Mux`](super::Mux): eight bytes of head, and at most [`LARGEST`] of content.

/// More in one message is a violation: the reader keeps no more than one.
pub const LARGEST: usize = 16 << 10;
const HEAD: usize = 8;

/// The number of a connection. The side that opens them counts upwards from 1.
pub type Id = u32;

/// The other side did what its own code never does: nothing it says is heard any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation(pub &'static str);

/// One message between the two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame {
    /// The first word of the side that opens: the port on which it listens.
    Hello {
        /// The port.
        port: u16,
    },
    /// A new connection.
    Open(Id),
    /// Bytes of a connection.
    Data(Id, Vec<u8>),
    /// Nothing more comes from this side.
    End(Id),
    /// A connection is broken off.
    Reset(Id),
    /// This many more bytes may be sent.
    Credit(Id, u32),
    /// From the side that answers: say what there is to say, and go.
    Bye,
}

const HELLO: u8 = 1;
const OPEN: u8 = 2;
const DATA: u8 = 3;
const END: u8 = 4;
const RESET: u8 = 5;
const CREDIT: u8 = 6;
const BYE: u8 = 7;

/// Writes the head and content of a message. Content is never longer than [`LARGEST`]: callers cut it.
fn put(to: &mut Vec<u8>, kind: u8, id: Id, content: &[u8]) {
    let length = content.len().min(LARGEST) as u16;
    to.extend([kind, 0]);
    to.extend(length.to_le_bytes());
    to.extend(id.to_le_bytes());
    to.extend(content.iter().take(LARGEST));
}

/// Writes a frame of data without a copy of its content.
pub fn data(to: &mut Vec<u8>, id: Id, content: &[u8]) {
    for piece in content.chunks(LARGEST) {
        put(to, DATA, id, piece);
    }
}

impl Frame {
    /// Writes the frame.
    pub fn write(&self, to: &mut Vec<u8>) {
        match self {
            Frame::Hello { port } => put(to, HELLO, 0, &port.to_le_bytes()),
            Frame::Open(id) => put(to, OPEN, *id, &[]),
            Frame::Data(id, content) => data(to, *id, content),
            Frame::End(id) => put(to, END, *id, &[]),
            Frame::Reset(id) => put(to, RESET, *id, &[]),
            Frame::Credit(id, bytes) => put(to, CREDIT, *id, &bytes.to_le_bytes()),
            Frame::Bye => put(to, BYE, 0, &[]),
        }
    }

    fn read(kind: u8, id: Id, content: &[u8]) -> Result<Frame, Violation> {
        let has_id = id != 0;
        match (kind, content) {
            (HELLO, [low, high]) if !has_id => {
                Ok(Frame::Hello { port: u16::from_le_bytes([*low, *high]) })
            }
            (BYE, []) if !has_id => Ok(Frame::Bye),
            (OPEN, []) if has_id => Ok(Frame::Open(id)),
            (DATA, [_, ..]) if has_id => Ok(Frame::Data(id, content.to_vec())),
            (END, []) if has_id => Ok(Frame::End(id)),
            (RESET, []) if has_id => Ok(Frame::Reset(id)),
            (CREDIT, [a, b, c, d]) if has_id => {
                Ok(Frame::Credit(id, u32::from_le_bytes([*a, *b, *c, *d])))
            }
            _ => Err(Violation("a message of no known form")),
        }
    }
}

/// Bytes as they come, cut into messages.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// How many of them were given out.
    start: usize,
}

impl FrameReader {
    /// Takes bytes from the pipe, in pieces of any size.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes are kept.
    #[must_use]
    pub fn held(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The next whole message. After a violation there is none.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Violation> {
        let rest = self.bytes.get(self.start..).unwrap_or_default();
        let Some(&[kind, zero, low, high, a, b, c, d]) = rest.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_le_bytes([low, high]));
        if zero != 0 || length > LARGEST {
            return Err(Violation("a message that is too long"));
        }
        let Some(content) = rest.get(HEAD..HEAD + length) else { return Ok(None) };
        let frame = Frame::read(kind, u32::from_le_bytes([a, b, c, d]), content)?;
        self.start += HEAD + length;
        Ok(Some(frame))
    }
}
