//! The first request: the verdict does not depend on how the stream was cut, and what the
//! reader of all first bytes takes for HTTP is what this one does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_net::fuzzing::http::{HttpProgress, HttpReader};
use mcp_net::fuzzing::opening::{Opening, Verdict};

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let whole = HttpReader::default().feed(bytes);
    let mut reader = HttpReader::default();
    let mut opening = Opening::default();
    let mut last = HttpProgress::NeedMore;
    let mut verdict = Verdict::NeedMore;
    for piece in bytes.chunks(usize::from(*cut).max(1)) {
        last = reader.feed(piece);
        verdict = opening.feed(piece);
    }
    assert_eq!(whole, last);
    if let Verdict::Http(head) = verdict {
        assert_eq!(whole, HttpProgress::Head(head));
    }
});
