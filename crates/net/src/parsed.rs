//! The result of reading a short message from the front of a buffer.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<T> {
    NeedMore,
    /// `used` bytes of the buffer were the message; what follows is the peer's next word.
    Done {
        value: T,
        used: usize,
    },
    /// Nothing more can come of this: to be closed, with this reason.
    Broken(&'static str),
}
