//! The ClientHello: the verdict does not depend on how the stream was cut, and what a server could
//! take for TLS is never "not TLS".
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_net::fuzzing::hello::{HelloProgress, HelloReader};

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let whole = HelloReader::default().feed(bytes);
    let mut reader = HelloReader::default();
    let mut last = HelloProgress::NeedMore;
    for piece in bytes.chunks(usize::from(*cut).max(1)) {
        last = reader.feed(piece);
    }
    assert_eq!(whole, last);
    let is_ssl2 = matches!(bytes, [0x80..=0xff, _, 1, ..]);
    if is_ssl2 || matches!(bytes, [20..=24, ..]) {
        assert_ne!(whole, HelloProgress::NotTls);
    }
    // A hello that passes is one whose records have the version of TLS.
    if let HelloProgress::Hello(_) = whole {
        assert!(matches!(bytes, [22, 3, ..]));
    }
});
