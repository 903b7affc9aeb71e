//! The stub's ear: one message from a program that may send anything.

use mcp_policy::HostName;

use super::name::WireName;
use super::reply::{self, Header, Rcode};
use super::{CLASS_IN, TYPE_A, TYPE_AAAA, TYPE_OPT};
use crate::cursor::Cursor;

/// Records after the question of a query: an OPT, perhaps a signature. More is noise.
const MAX_EXTRA: u16 = 4;
const TYPES_ABOUT_ZONES: std::ops::RangeInclusive<u16> = 249..=252;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsRequest {
    Query(Query),
    /// Well formed, but not a question that we take; here is the whole reply.
    Unsupported(Vec<u8>),
}

/// One question of class IN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub(super) header: Header,
    pub(super) question: Question,
    host: Option<HostName>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub name: WireName,
    pub kind: u16,
    pub class: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordType {
    A,
    Aaaa,
    /// HTTPS, SVCB, MX and the like: the stub has none for anybody.
    Other(u16),
}

impl DnsRequest {
    /// `None` for what is malformed or an answer: to be ignored.
    pub fn read(message: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(message);
        let id = cursor.u16()?;
        let flags = cursor.u16()?;
        let [questions, answers, authorities, extras] =
            [cursor.u16()?, cursor.u16()?, cursor.u16()?, cursor.u16()?];
        let is_answer = flags & 0x8000 != 0;
        let is_cut = flags & 0x0200 != 0;
        if is_answer || is_cut {
            return None;
        }
        let mut header = Header::of(id, flags);
        if header.opcode() != 0 {
            return Some(Self::Unsupported(reply::bare(header, Rcode::NotImplemented)));
        }
        if questions != 1 || answers != 0 || authorities != 0 || extras > MAX_EXTRA {
            return None;
        }
        let question = Question {
            name: WireName::read_plain(&mut cursor)?,
            kind: cursor.u16()?,
            class: cursor.u16()?,
        };
        let mut version = 0;
        for _ in 0..extras {
            let name = WireName::read(message, &mut cursor)?;
            let kind = cursor.u16()?;
            let class = cursor.u16()?;
            let ttl = cursor.u32()?;
            cursor.block16()?;
            if kind == TYPE_OPT {
                if header.edns.is_some() || name.as_bytes() != [0] {
                    return None;
                }
                version = ttl.to_be_bytes()[1];
                header.edns = Some(reply::EdnsAsked::of(class, ttl));
            }
        }
        let refusal = if version != 0 {
            Rcode::BadVersion
        } else if question.class != CLASS_IN || TYPES_ABOUT_ZONES.contains(&question.kind) {
            Rcode::Refused
        } else {
            let host = question.name.host();
            return Some(Self::Query(Query { header, question, host }));
        };
        Some(Self::Unsupported(reply::about(header, &question, refusal)))
    }
}

impl Query {
    /// `None` when no host can have this name: the answer is [`super::Answer::NoSuchName`].
    pub fn host(&self) -> Option<&HostName> {
        self.host.as_ref()
    }

    pub fn kind(&self) -> RecordType {
        match self.question.kind {
            TYPE_A => RecordType::A,
            TYPE_AAAA => RecordType::Aaaa,
            other => RecordType::Other(other),
        }
    }
}
