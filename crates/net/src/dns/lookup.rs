//! The resolver's side: one question to a real server, and what may count as its answer.

use std::net::IpAddr;

use mcp_policy::HostName;

use super::name::WireName;
use super::{CLASS_IN, OUR_PAYLOAD, TYPE_A, TYPE_AAAA, TYPE_CNAME, TYPE_OPT, TYPE_SOA};
use crate::cursor::Cursor;
use crate::destination::Family;

/// Records looked at in one answer, and aliases followed: more is an attack or a mistake.
const MAX_RECORDS: usize = 256;
const MAX_ALIASES: usize = 16;
/// Addresses kept of one answer.
const MAX_ADDRESSES: usize = 32;

/// Old servers answer FORMERR to EDNS and are then asked without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edns {
    With,
    Without,
}

/// A question that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    id: u16,
    name: WireName,
    family: Family,
}

/// What a server said about the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAnswer {
    /// In the server's order, none twice; empty: the name has none of this family.
    Addresses {
        addresses: Vec<IpAddr>,
        ttl: u32,
    },
    NoSuchName {
        ttl: u32,
    },
    /// Cut short: ask again over TCP.
    Cut,
    /// FORMERR or NOTIMP.
    NotUnderstood,
    /// SERVFAIL, REFUSED and the rest: another server may know.
    Failed,
}

struct Record {
    owner: WireName,
    ttl: u32,
    data: Data,
}

enum Data {
    Address(IpAddr),
    Alias(WireName),
    /// With the life of "there is none".
    Zone(u32),
    Other,
}

impl Lookup {
    /// `id` must be unpredictable: with the source port it is all that keeps a stranger's
    /// answer out.
    pub fn new(id: u16, name: &HostName, family: Family) -> Self {
        Self { id, name: WireName::from_host(name), family }
    }

    fn kind(&self) -> u16 {
        match self.family {
            Family::V4 => TYPE_A,
            Family::V6 => TYPE_AAAA,
        }
    }

    pub fn message(&self, edns: Edns) -> Vec<u8> {
        const RD: u16 = 0x0100;
        let extras = u16::from(edns == Edns::With);
        let mut bytes = Vec::with_capacity(64);
        for field in [self.id, RD, 1, 0, 0, extras] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.extend_from_slice(&self.kind().to_be_bytes());
        bytes.extend_from_slice(&CLASS_IN.to_be_bytes());
        if edns == Edns::With {
            bytes.push(0);
            bytes.extend_from_slice(&TYPE_OPT.to_be_bytes());
            bytes.extend_from_slice(&OUR_PAYLOAD.to_be_bytes());
            bytes.extend_from_slice(&[0; 6]);
        }
        bytes
    }

    /// `None` when this is no answer to this question: to be ignored, for the right one may
    /// still come.
    pub fn read(&self, message: &[u8]) -> Option<ServerAnswer> {
        let mut cursor = Cursor::new(message);
        let id = cursor.u16()?;
        let flags = cursor.u16()?;
        let [questions, answers, authorities, _] =
            [cursor.u16()?, cursor.u16()?, cursor.u16()?, cursor.u16()?];
        let is_reply = flags & 0xf800 == 0x8000;
        if id != self.id || !is_reply {
            return None;
        }
        let rcode = flags & 0xf;
        if questions == 0 && matches!(rcode, 1 | 4) {
            // Servers that could not read the question do not repeat it.
            return Some(ServerAnswer::NotUnderstood);
        }
        if questions != 1 || !self.is_question(&mut cursor)? {
            return None;
        }
        if flags & 0x0200 != 0 {
            return Some(ServerAnswer::Cut);
        }
        match rcode {
            0 | 3 => {}
            1 | 4 => return Some(ServerAnswer::NotUnderstood),
            _ => return Some(ServerAnswer::Failed),
        }
        // From here on it is the server's answer, readable or not.
        let count = usize::from(answers);
        let Some(records) = read_records(message, &mut cursor, count) else {
            return Some(ServerAnswer::Failed);
        };
        let (addresses, ttl) = self.follow(&records);
        if !addresses.is_empty() {
            return Some(ServerAnswer::Addresses { addresses, ttl });
        }
        let ttl = read_records(message, &mut cursor, usize::from(authorities))
            .map_or(0, |records| negative_ttl(&records));
        Some(match rcode {
            3 => ServerAnswer::NoSuchName { ttl },
            _ => ServerAnswer::Addresses { addresses, ttl },
        })
    }

    fn is_question(&self, cursor: &mut Cursor<'_>) -> Option<bool> {
        let name = WireName::read_plain(cursor)?;
        let kind = cursor.u16()?;
        let class = cursor.u16()?;
        Some(name.is_same(&self.name) && kind == self.kind() && class == CLASS_IN)
    }

    /// From the name asked for through its aliases to addresses, in whatever order the
    /// records are; with the shortest life of all that was used.
    fn follow(&self, records: &[Record]) -> (Vec<IpAddr>, u32) {
        let mut name = &self.name;
        let mut life = u32::MAX;
        for _ in 0..=MAX_ALIASES {
            let mut addresses = Vec::new();
            let mut alias = None;
            for record in records.iter().filter(|record| record.owner.is_same(name)) {
                match &record.data {
                    Data::Address(ip)
                        if self.family.has(*ip)
                            && !addresses.contains(ip)
                            && addresses.len() < MAX_ADDRESSES =>
                    {
                        addresses.push(*ip);
                        life = life.min(record.ttl);
                    }
                    Data::Alias(target) if alias.is_none() => alias = Some((target, record.ttl)),
                    _ => {}
                }
            }
            match alias {
                None => return (addresses, life),
                Some(_) if !addresses.is_empty() => return (addresses, life),
                Some((target, ttl)) => {
                    name = target;
                    life = life.min(ttl);
                }
            }
        }
        (Vec::new(), 0)
    }
}

/// Reads a section; `None` when it is malformed or has more than anybody needs.
fn read_records<'a>(
    message: &'a [u8],
    cursor: &mut Cursor<'a>,
    count: usize,
) -> Option<Vec<Record>> {
    if count > MAX_RECORDS {
        return None;
    }
    let mut records = Vec::new();
    for _ in 0..count {
        let owner = WireName::read(message, cursor)?;
        let kind = cursor.u16()?;
        let class = cursor.u16()?;
        // RFC 2181: with the top bit set it is as good as zero.
        let ttl = cursor.u32().map(|ttl| if ttl > i32::MAX as u32 { 0 } else { ttl })?;
        let mut after = *cursor;
        let length = after.block16()?.len();
        // Not cut to its length: names inside may point back into the whole message.
        let mut field = *cursor;
        field.u16()?;
        let data = match (class, kind) {
            (CLASS_IN, TYPE_A) if length == 4 => Data::Address(field.array::<4>()?.into()),
            (CLASS_IN, TYPE_AAAA) if length == 16 => Data::Address(field.array::<16>()?.into()),
            (CLASS_IN, TYPE_A | TYPE_AAAA) => return None,
            (CLASS_IN, TYPE_CNAME) => {
                let target = WireName::read(message, &mut field)?;
                if field.rest().len() != after.rest().len() {
                    return None;
                }
                Data::Alias(target)
            }
            (CLASS_IN, TYPE_SOA) => Data::Zone(zone_minimum(message, &mut field)?.min(ttl)),
            _ => Data::Other,
        };
        *cursor = after;
        records.push(Record { owner, ttl, data });
    }
    Some(records)
}

/// The last of a SOA's fields: how long "there is none" holds (RFC 2308).
fn zone_minimum<'a>(message: &'a [u8], field: &mut Cursor<'a>) -> Option<u32> {
    WireName::read(message, field)?;
    WireName::read(message, field)?;
    field.take(16)?;
    field.u32()
}

fn negative_ttl(records: &[Record]) -> u32 {
    let zones = records.iter().filter_map(|record| match record.data {
        Data::Zone(ttl) => Some(ttl),
        _ => None,
    });
    zones.min().unwrap_or(0)
}
