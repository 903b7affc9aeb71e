//! SOCKS, both sides: nothing is used beyond what there is, every message has an end, and a
//! target that was read is written and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_net::fuzzing::parsed::Parsed;
use mcp_net::fuzzing::socks;

const LONGEST: usize = 513;

fn check<T>(bytes: &[u8], parsed: &Parsed<T>) {
    match parsed {
        Parsed::NeedMore => assert!(bytes.len() < LONGEST),
        Parsed::Done { used, .. } => assert!(*used <= bytes.len()),
        Parsed::Broken(_) => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes, &socks::read_greeting(bytes, socks::Admits::Anybody));
    check(bytes, &socks::read_greeting(bytes, socks::Admits::Holders));
    check(bytes, &socks::read_credentials(bytes));
    check(bytes, &socks::read_choice(bytes));
    check(bytes, &socks::read_auth_status(bytes));
    check(bytes, &socks::read_reply(bytes));
    let request = socks::read_request(bytes);
    check(bytes, &request);
    if let Parsed::Done { value, .. } = request {
        let again = socks::connect_request(&value.endpoint);
        if value.endpoint.port != 0 {
            let Parsed::Done { value: read, used } = socks::read_request(&again) else {
                panic!("{value:?} does not read back");
            };
            assert_eq!((read.endpoint, used), (value.endpoint, again.len()));
        }
    }
});
