//! DNS messages: the stub's side (questions read, answers written), the resolver's side
//! (questions written, answers read), and the framing of both on TCP.
//!
//! RFC 1035, EDNS of RFC 6891, negative answers of RFC 2308. One question per message, class
//! IN. What is malformed is ignored, never answered, so that the stub is no echo for noise.

mod frames;
mod lookup;
mod name;
mod reply;
mod request;

#[cfg(test)]
use frames::TooLong;
pub use frames::{DnsFrames, framed};
pub use lookup::{Edns, Lookup, ServerAnswer};
pub use reply::{DnsAnswer, Transport};
#[cfg(test)]
use request::Query;
pub use request::{DnsRequest, RecordType};

pub use crate::destination::Family;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_SOA: u16 = 6;
const TYPE_AAAA: u16 = 28;
const TYPE_OPT: u16 = 41;
const CLASS_IN: u16 = 1;

/// What we take in one UDP datagram: no fragments on any path (DNS flag day 2020).
const OUR_PAYLOAD: u16 = 1232;

#[cfg(test)]
mod tests;
