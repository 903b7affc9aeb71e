//! The stub's voice: answers to one question.

use std::net::IpAddr;

use super::request::{Query, Question};
use super::{CLASS_IN, OUR_PAYLOAD, TYPE_A, TYPE_AAAA, TYPE_OPT, TYPE_SOA};

const HEADER: usize = 12;
/// Where the question's name is: right behind the header.
const POINTER_TO_NAME: u16 = 0xc000 | HEADER as u16;
const SMALLEST_PAYLOAD: u16 = 512;
/// How long "there is none" may be remembered. Short: rules do not change during a run, but
/// names that could not be resolved just now may be later.
const NEGATIVE_TTL: u32 = 5;

const QR: u16 = 0x8000;
const TC: u16 = 0x0200;
const RD: u16 = 0x0100;
const RA: u16 = 0x0080;
const CD: u16 = 0x0010;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsAnswer<'a> {
    /// Those of the family that was asked for are given; none of them: as `Empty`.
    Addresses {
        addresses: &'a [IpAddr],
        ttl: u32,
    },
    /// The name is there, but nothing of this kind: clients go on to A and AAAA.
    Empty,
    NoSuchName,
    /// Try again: SERVFAIL.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rcode {
    Good,
    Failed,
    NoSuchName,
    NotImplemented,
    Refused,
    BadVersion,
}

impl Rcode {
    /// The number; what is above 15 has its upper part in the OPT record.
    fn number(self) -> u16 {
        match self {
            Self::Good => 0,
            Self::Failed => 2,
            Self::NoSuchName => 3,
            Self::NotImplemented => 4,
            Self::Refused => 5,
            Self::BadVersion => 16,
        }
    }
}

/// What a reply takes over from the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    id: u16,
    flags: u16,
    pub edns: Option<EdnsAsked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EdnsAsked {
    payload: u16,
    dnssec_ok: bool,
}

impl EdnsAsked {
    /// From the class and TTL fields of the OPT record, which mean other things there.
    pub fn of(class: u16, ttl: u32) -> Self {
        Self { payload: class, dnssec_ok: ttl & 0x8000 != 0 }
    }
}

impl Header {
    pub fn of(id: u16, flags: u16) -> Self {
        Self { id, flags, edns: None }
    }

    pub fn opcode(&self) -> u16 {
        self.flags >> 11 & 0xf
    }

    fn write(&self, rcode: Rcode, cut: u16, counts: [u16; 4]) -> Vec<u8> {
        let flags = QR
            | (self.opcode() << 11)
            | cut
            | (self.flags & (RD | CD))
            | RA
            | (rcode.number() & 0xf);
        let mut bytes = Vec::with_capacity(128);
        for field in [self.id, flags].into_iter().chain(counts) {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    fn limit(&self, transport: Transport) -> usize {
        match transport {
            Transport::Tcp => usize::from(u16::MAX),
            Transport::Udp => usize::from(match self.edns {
                None => SMALLEST_PAYLOAD,
                Some(edns) => edns.payload.clamp(SMALLEST_PAYLOAD, OUR_PAYLOAD),
            }),
        }
    }

    fn write_opt(&self, bytes: &mut Vec<u8>, rcode: Rcode) {
        if let Some(edns) = self.edns {
            let flags = if edns.dnssec_ok { 0x8000 } else { 0 };
            let upper = (rcode.number() >> 4).to_be_bytes()[1];
            bytes.push(0);
            bytes.extend_from_slice(&TYPE_OPT.to_be_bytes());
            bytes.extend_from_slice(&OUR_PAYLOAD.to_be_bytes());
            bytes.extend_from_slice(&[upper, 0]);
            bytes.extend_from_slice(&u16::to_be_bytes(flags));
            bytes.extend_from_slice(&[0, 0]);
        }
    }
}

impl Query {
    /// The whole reply. On UDP, records that do not fit are left out and TC says so.
    pub fn reply(&self, answer: &DnsAnswer<'_>, transport: Transport) -> Vec<u8> {
        let (rcode, addresses, ttl) = match *answer {
            DnsAnswer::Addresses { addresses, ttl } => (Rcode::Good, addresses, ttl),
            DnsAnswer::Empty => (Rcode::Good, &[][..], 0),
            DnsAnswer::NoSuchName => (Rcode::NoSuchName, &[][..], 0),
            DnsAnswer::Failed => (Rcode::Failed, &[][..], 0),
        };
        let records: Vec<Vec<u8>> =
            addresses.iter().filter_map(|ip| self.address_record(*ip, ttl)).collect();
        // RFC 2308: without a SOA no resolver remembers that there is nothing.
        let soa = match rcode {
            Rcode::Good | Rcode::NoSuchName if records.is_empty() => Some(soa_record()),
            _ => None,
        };
        let extras = self.header.edns.iter().len() as u16;
        let tail: usize = records.iter().map(Vec::len).sum();
        let fixed = HEADER + self.question.name.as_bytes().len() + 4 + 11 * usize::from(extras);
        let fits =
            records.len() <= usize::from(u16::MAX) && fixed + tail <= self.header.limit(transport);
        let (records, cut) = if fits { (records, 0) } else { (Vec::new(), TC) };
        let counts = [1, records.len() as u16, soa.iter().len() as u16, extras];
        let mut bytes = self.header.write(rcode, cut, counts);
        self.question.write(&mut bytes);
        for record in records.iter().chain(&soa) {
            bytes.extend_from_slice(record);
        }
        self.header.write_opt(&mut bytes, rcode);
        bytes
    }

    /// `None` when the address is not of the family that was asked for.
    fn address_record(&self, ip: IpAddr, ttl: u32) -> Option<Vec<u8>> {
        let (kind, octets) = match ip {
            IpAddr::V4(ip) => (TYPE_A, ip.octets().to_vec()),
            IpAddr::V6(ip) => (TYPE_AAAA, ip.octets().to_vec()),
        };
        (kind == self.question.kind)
            .then(|| record(&POINTER_TO_NAME.to_be_bytes(), kind, ttl, &octets))
    }
}

impl Question {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.extend_from_slice(&self.kind.to_be_bytes());
        bytes.extend_from_slice(&self.class.to_be_bytes());
    }
}

fn record(owner: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = owner.to_vec();
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&CLASS_IN.to_be_bytes());
    bytes.extend_from_slice(&ttl.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// The stub speaks for the whole tree, so the root is its zone.
fn soa_record() -> Vec<u8> {
    const ROOT: u8 = 0;
    let mut data = vec![ROOT, ROOT];
    for field in [1, 3600, 600, 86400, NEGATIVE_TTL] {
        data.extend_from_slice(&field.to_be_bytes());
    }
    record(&[ROOT], TYPE_SOA, NEGATIVE_TTL, &data)
}

/// A reply without the question: there may have been none.
pub(super) fn bare(header: Header, rcode: Rcode) -> Vec<u8> {
    header.write(rcode, 0, [0; 4])
}

/// A reply that has nothing but the question.
pub(super) fn about(header: Header, question: &Question, rcode: Rcode) -> Vec<u8> {
    let mut bytes = header.write(rcode, 0, [1, 0, 0, header.edns.iter().len() as u16]);
    question.write(&mut bytes);
    header.write_opt(&mut bytes, rcode);
    bytes
}
