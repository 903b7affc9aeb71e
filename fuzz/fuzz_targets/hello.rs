//! The ClientHello: the verdict does not depend on how the stream was cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_sandbox::net::hello::{Progress, Reader};

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let whole = Reader::default().feed(bytes);
    let mut reader = Reader::default();
    let mut last = Progress::NeedMore;
    for piece in bytes.chunks(usize::from(*cut).max(1)) {
        last = reader.feed(piece);
    }
    assert_eq!(whole, last);
});
