//! SOCKS 5 (RFC 1928, RFC 1929): the proxy's side for programs, the client's side for the
//! user's own proxy. Every message has at most 513 bytes; callers read into a buffer and ask
//! again when more came. BIND and UDP ASSOCIATE are refused: they would open a way in.

use super::cursor::Cursor;
use super::parsed::Parsed;

mod client;
mod server;

pub use client::{
    Auth, Choice, connect_request, greeting, read_auth_status, read_choice, read_reply,
};
pub use server::{
    Admits, Greeting, SocksCommand, V4_REFUSAL, Welcome, auth_status, choice, read_credentials,
    read_greeting, read_request, reply,
};

const VERSION: u8 = 5;
const AUTH_VERSION: u8 = 1;

const NO_AUTH: u8 = 0;
const PASSWORD: u8 = 2;
const NOTHING_ACCEPTABLE: u8 = 0xff;

const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The reply codes of RFC 1928.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyCode {
    Connected,
    Failed,
    /// By the rules: what the allowlist says no to.
    NotAllowed,
    NetworkUnreachable,
    HostUnreachable,
    ConnectionRefused,
    TimedOut,
    CommandNotSupported,
    AddressNotSupported,
}

impl ReplyCode {
    fn code(self) -> u8 {
        match self {
            Self::Connected => 0,
            Self::Failed => 1,
            Self::NotAllowed => 2,
            Self::NetworkUnreachable => 3,
            Self::HostUnreachable => 4,
            Self::ConnectionRefused => 5,
            Self::TimedOut => 6,
            Self::CommandNotSupported => 7,
            Self::AddressNotSupported => 8,
        }
    }

    fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Connected,
            2 => Self::NotAllowed,
            3 => Self::NetworkUnreachable,
            4 => Self::HostUnreachable,
            5 => Self::ConnectionRefused,
            6 => Self::TimedOut,
            7 => Self::CommandNotSupported,
            8 => Self::AddressNotSupported,
            _ => Self::Failed,
        }
    }
}

/// Reads with `read` from the front of `buffer`: `None` from it means that bytes are missing.
fn parse<T>(
    buffer: &[u8],
    read: impl FnOnce(&mut Cursor<'_>) -> Option<Result<T, &'static str>>,
) -> Parsed<T> {
    let mut cursor = Cursor::new(buffer);
    match read(&mut cursor) {
        None => Parsed::NeedMore,
        Some(Ok(value)) => Parsed::Done { value, used: buffer.len() - cursor.rest().len() },
        Some(Err(reason)) => Parsed::Broken(reason),
    }
}

#[cfg(test)]
mod tests;
