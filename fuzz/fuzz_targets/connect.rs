//! HTTP proxies, both sides: the verdict does not depend on how the stream was cut, and a
//! head that is sent on is one head, for one host, that reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_net::fuzzing::connect::{ConnectProgress, ConnectRequest, RequestReader, ResponseReader};
use mcp_net::fuzzing::http;

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let _ = ResponseReader::default().feed(bytes);
    let whole = RequestReader::default().feed(bytes);
    let mut reader = RequestReader::default();
    let mut before = 0;
    let mut last = ConnectProgress::NeedMore;
    for piece in bytes.chunks(usize::from(*cut).max(1)) {
        last = reader.feed(piece);
        if last != ConnectProgress::NeedMore {
            break;
        }
        before += piece.len();
    }
    if let ConnectProgress::Done { used, .. } = &mut last {
        *used += before;
    }
    assert_eq!(whole, last);
    if let ConnectProgress::Done { value: ConnectRequest::Forward { endpoint, head }, used } = whole {
        assert!(used <= bytes.len());
        let mut reader = http::HttpReader::default();
        let (all_but_one, one) = head.split_at(head.len() - 1);
        assert_eq!(reader.feed(all_but_one), http::HttpProgress::NeedMore);
        let http::HttpProgress::Head(read) = reader.feed(one) else {
            panic!("{:?} does not read back", String::from_utf8_lossy(&head));
        };
        assert_eq!(read.host, Some(endpoint.target));
    }
});
