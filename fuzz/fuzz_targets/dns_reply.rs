//! The resolver: whatever a server answers, what is taken from it is bounded, of the family
//! that was asked for, and none of it comes twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_net::fuzzing::dns::{Edns, Family, ServerAnswer, Lookup};

fuzz_target!(|bytes: &[u8]| {
    let Ok(name) = "a.example".parse() else { return };
    for family in [Family::V4, Family::V6] {
        let lookup = Lookup::new(0x1234, &name, family);
        // The id and the question are given, or nothing would ever get past them.
        let mut message = lookup.message(Edns::Without);
        if let Some((head, tail)) = bytes.split_at_checked(10) {
            message[2..12].copy_from_slice(head);
            message[4..6].copy_from_slice(&[0, 1]);
            message.extend_from_slice(tail);
        }
        for message in [&message[..], bytes] {
            if let Some(ServerAnswer::Addresses { addresses, .. }) = lookup.read(message) {
                assert!(addresses.len() <= 32 && addresses.iter().all(|ip| family.has(*ip)));
                for (at, ip) in addresses.iter().enumerate() {
                    assert!(!addresses[..at].contains(ip));
                }
            }
        }
    }
});
