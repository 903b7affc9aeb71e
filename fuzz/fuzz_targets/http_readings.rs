//! HTTP heads against httparse: a head that we take has the same method and target there, and one host.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_net::fuzzing::http::{HttpProgress, HttpReader};

/// More fields than fit into the largest head that we take.
const FIELDS: usize = 16 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let HttpProgress::Head(head) = HttpReader::default().feed(bytes) else { return };
    let mut fields = vec![httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let status = request.parse(bytes).expect("httparse takes what we take");
    assert!(status.is_complete());
    assert_eq!(Some(head.method.as_str()), request.method);
    assert_eq!(Some(head.target.as_str()), request.path);
    let hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    assert!(hosts.count() <= 1);
});
