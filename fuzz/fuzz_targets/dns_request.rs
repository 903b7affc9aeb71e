//! The stub: whatever a program sends, the answer is a well-formed message of allowed size.
#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use mcp_net::fuzzing::dns::{DnsAnswer, DnsFrames, DnsRequest, Transport};

fuzz_target!(|bytes: &[u8]| {
    let addresses: Vec<IpAddr> = (0..40).map(|n| IpAddr::from([198, 18, 1, n])).collect();
    match DnsRequest::read(bytes) {
        None => {}
        Some(DnsRequest::Unsupported(reply)) => {
            assert!(reply.len() <= 512 && reply[..2] == bytes[..2] && reply[2] & 0x80 != 0);
        }
        Some(DnsRequest::Query(query)) => {
            let answers = [
                DnsAnswer::Empty,
                DnsAnswer::NoSuchName,
                DnsAnswer::Failed,
                DnsAnswer::Addresses { addresses: &addresses, ttl: 1 },
            ];
            for answer in &answers {
                let reply = query.reply(answer, Transport::Udp);
                assert!(reply.len() <= 1232 && reply[..2] == bytes[..2]);
                assert!(DnsRequest::read(&reply).is_none(), "a reply must never be answered");
                query.reply(answer, Transport::Tcp);
            }
        }
    }
    // The framing gives the same messages however the stream is cut.
    let whole = DnsFrames::new(4096).feed(bytes);
    let mut frames = DnsFrames::new(4096);
    let mut pieces = Ok(Vec::new());
    for byte in bytes {
        match (&mut pieces, frames.feed(&[*byte])) {
            (Ok(seen), Ok(more)) => seen.extend(more),
            (pieces, Err(error)) => {
                *pieces = Err(error);
                break;
            }
            (Err(_), _) => break,
        }
    }
    assert_eq!(whole, pieces);
});
