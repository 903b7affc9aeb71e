//! DNS on TCP: each message has its length in two bytes before it (RFC 1035, 4.2.2).

/// Puts a stream's bytes back together into messages; keeps at most one message.
#[derive(Debug)]
pub struct DnsFrames {
    partial: Vec<u8>,
    limit: usize,
}

/// The peer announces a message that is longer than we take. The stream cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl DnsFrames {
    /// Messages of at most `limit` bytes.
    pub fn new(limit: u16) -> Self {
        Self { partial: Vec::new(), limit: usize::from(limit) }
    }

    /// Takes all of `bytes`; gives the messages that are complete with them, in order.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut complete = Vec::new();
        loop {
            let wanted = match *self.partial.as_slice() {
                [] | [_] => 2,
                [high, low, ..] => {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    if length > self.limit {
                        return Err(TooLong);
                    }
                    2 + length
                }
            };
            let missing = wanted.saturating_sub(self.partial.len()).min(bytes.len());
            let (now, later) = bytes.split_at(missing);
            self.partial.extend_from_slice(now);
            bytes = later;
            if self.partial.len() < wanted {
                return Ok(complete);
            }
            if wanted > 2 {
                complete.push(self.partial.split_off(2));
                self.partial.clear();
            } else if self.partial == [0, 0] {
                // An empty message says nothing.
                self.partial.clear();
            }
        }
    }

    /// Whether the stream could end here without cutting a message.
    #[cfg(test)]
    pub fn is_between_messages(&self) -> bool {
        self.partial.is_empty()
    }
}

/// The message with its length before it; `None` when it is longer than TCP's 65,535.
pub fn framed(message: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(message.len()).ok()?;
    let mut bytes = Vec::with_capacity(message.len() + 2);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(message);
    Some(bytes)
}
