//! Names on the wire: length-prefixed labels, ended by the root, perhaps by a pointer.

use mcp_policy::HostName;

use crate::cursor::Cursor;

const MAX_NAME: usize = 255;
const MAX_LABEL: u8 = 63;

/// A name as it was sent, upper and lower case kept: resolvers that mix the case of their
/// questions (0x20) check that the answer echoes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WireName(Vec<u8>);

impl WireName {
    /// Reads a name without pointers, as a question's must be: nothing precedes it.
    pub fn read_plain(cursor: &mut Cursor<'_>) -> Option<Self> {
        let mut wire = Vec::new();
        loop {
            let length = cursor.u8()?;
            if length > MAX_LABEL {
                return None;
            }
            wire.push(length);
            wire.extend_from_slice(cursor.take(usize::from(length))?);
            if wire.len() > MAX_NAME {
                return None;
            }
            if length == 0 {
                return Some(Self(wire));
            }
        }
    }

    /// Reads a name at the cursor, following pointers into `message`. Each pointer must lead
    /// to before the place it was reached from, so that there is an end.
    pub fn read<'a>(message: &'a [u8], cursor: &mut Cursor<'a>) -> Option<Self> {
        let mut wire = Vec::new();
        let mut here = *cursor;
        let mut start = message.len().checked_sub(here.rest().len())?;
        let mut jumped = false;
        loop {
            let length = here.u8()?;
            if length & 0xc0 == 0xc0 {
                let low = here.u8()?;
                let goal = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                if goal >= start {
                    return None;
                }
                if !jumped {
                    *cursor = here;
                    jumped = true;
                }
                here = Cursor::new(message.get(goal..)?);
                start = goal;
                continue;
            }
            if length > MAX_LABEL {
                return None;
            }
            wire.push(length);
            wire.extend_from_slice(here.take(usize::from(length))?);
            if wire.len() > MAX_NAME {
                return None;
            }
            if length == 0 {
                if !jumped {
                    *cursor = here;
                }
                return Some(Self(wire));
            }
        }
    }

    pub fn from_host(name: &HostName) -> Self {
        let mut wire = Vec::with_capacity(name.as_str().len() + 2);
        for label in name.labels() {
            // A host name's labels have at most 63 bytes.
            wire.push(u8::try_from(label.len()).unwrap_or(0));
            wire.extend_from_slice(label.as_bytes());
        }
        wire.push(0);
        Self(wire)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same name by DNS: ASCII letters of either case are one.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }

    /// As a host name. `None` for the root and for labels that no host name has: a dot, a
    /// NUL or a space inside a label is not the separator or the end that it looks like.
    pub fn host(&self) -> Option<HostName> {
        let mut text = String::with_capacity(self.0.len());
        let mut cursor = Cursor::new(&self.0);
        loop {
            let label = cursor.block8()?;
            if label.is_empty() {
                return text.parse().ok();
            }
            if label.contains(&b'.') {
                return None;
            }
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(str::from_utf8(label).ok()?);
        }
    }
}
