use proptest::prelude::*;

use super::*;

fn read(stream: &[u8]) -> HttpProgress {
    HttpReader::default().feed(stream)
}

fn host(stream: &str) -> Option<String> {
    match read(stream.as_bytes()) {
        HttpProgress::Head(head) => head.host.map(|host| host.to_string()),
        other => panic!("{stream:?}: {other:?}"),
    }
}

#[test]
fn the_host_is_found() {
    for (stream, expected) in [
        ("GET / HTTP/1.1\r\nHost: A.example\r\n\r\n", Some("a.example")),
        ("GET / HTTP/1.1\r\nAccept: */*\r\nhOST:a.example:8080\r\n\r\nbody", Some("a.example")),
        ("GET / HTTP/1.1\nHost: a.example\n\n", Some("a.example")),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n", Some("a.example")),
        ("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", Some("[::1]")),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", None),
        ("GET / HTTP/1.0\r\n\r\n", None),
        ("GET http://a.example:80/x HTTP/1.1\r\n\r\n", Some("a.example")),
        ("GET http://a.example/x HTTP/1.1\r\nHost: a.example:80\r\n\r\n", Some("a.example")),
        ("GET http://a.example HTTP/1.1\r\n\r\n", Some("a.example")),
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", Some("a.example")),
        ("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", Some("a.example")),
        ("GET /?u=http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", Some("a.example")),
    ] {
        assert_eq!(host(stream).as_deref(), expected, "{stream:?}");
    }
    let HttpProgress::Head(head) = read(b"POST /a HTTP/1.1\r\nHost: a.example:81\r\n\r\n") else {
        panic!("not read");
    };
    assert_eq!((head.method.as_str(), head.target.as_str(), head.port), ("POST", "/a", Some(81)));
}

#[test]
fn other_languages_are_not_http() {
    for stream in [
        &b"SSH-2.0-OpenSSH\r\n"[..],
        b"\x16\x03\x01",
        b"\0\0\0\x08",
        b" GET / HTTP/1.1\r\n",
        b"EHLO localhost\r\n",
        b"PRI * HTTP/2.0\r\n",
        b"GET /\r\n",
        b"HTTP/1.1\r\n",
        b"A-VERY-LONG-WORD-THAT-IS-NOT-A-METHOD-AT-ALL",
    ] {
        let mut reader = HttpReader::default();
        assert_eq!(reader.feed(stream), HttpProgress::NotHttp, "{stream:?}");
        assert_eq!(reader.feed(b"GET / HTTP/1.1\r\n\r\n"), HttpProgress::NotHttp, "it stays");
    }
    for stream in [&b""[..], b"\r\n", b"G", b"GET", b"GET / HTTP/1.1\r\nHost: a.example\r\n"] {
        assert_eq!(read(stream), HttpProgress::NeedMore, "{stream:?}");
    }
}

#[test]
fn what_two_servers_would_read_differently_is_broken() {
    for stream in [
        "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\nhost: a.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\n b.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a.example\r\n\r\n",
        "GET / HTTP/1.1\r\nX\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\rHost: b.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil\0.a.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: user@a.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n",
        "GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://a.example@b.example/ HTTP/1.1\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "CONNECT /x HTTP/1.1\r\n\r\n",
        "GET /\u{1} HTTP/1.1\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",
        "GET / x HTTP/1.1\r\n\r\n",
        "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "GET HTTP/1.1 \r\n\r\n",
        "GET / HTTP/1.1 \r\n\r\n",
        "\rGET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "\r\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "\r\n\rGET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    ] {
        assert!(
            matches!(read(stream.as_bytes()), HttpProgress::Broken(_)),
            "{stream:?}: {:?}",
            read(stream.as_bytes())
        );
    }
    let not_utf8 = b"GET / HTTP/1.1\r\nHost: \xff.example\r\n\r\n";
    assert!(matches!(read(not_utf8), HttpProgress::Broken(_)));
    let other_field = b"GET / HTTP/1.1\r\nX: \xff\r\nHost: a.example\r\n\r\n";
    assert!(matches!(read(other_field), HttpProgress::Head(_)));
}

#[test]
fn a_head_has_an_end() {
    let mut reader = HttpReader::default();
    assert_eq!(reader.feed(b"GET / HTTP/1.1\r\n"), HttpProgress::NeedMore);
    let line = [b"X: ", &[b'x'; 4080][..], b"\r\n"].concat();
    for _ in 0..16 {
        assert_eq!(reader.feed(&line), HttpProgress::NeedMore);
    }
    assert!(matches!(reader.feed(&line), HttpProgress::Broken(_)));
}

proptest! {
    #[test]
    fn pieces_do_not_matter(
        tail in "[A-Za-z0-9 :./\\r\\n\\x00-]{0,80}", start in 0usize..4, piece in 1usize..20,
    ) {
        let good = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";
        let stream = format!("{}{tail}", &good[..good.len() * start / 4]);
        let mut reader = HttpReader::default();
        let mut last = HttpProgress::NeedMore;
        for bytes in stream.as_bytes().chunks(piece) {
            last = reader.feed(bytes);
        }
        prop_assert_eq!(read(stream.as_bytes()), last);
    }

    #[test]
    fn no_bytes_panic(stream in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&stream);
    }
}

/// What httparse, which hyper and many servers use, makes of the same bytes.
fn by_httparse(stream: &[u8]) -> Option<(String, String, Vec<Vec<u8>>)> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    if !request.parse(stream).ok()?.is_complete() {
        return None;
    }
    let hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let hosts = hosts.map(|field| field.value.trim_ascii().to_vec()).collect();
    Some((request.method?.to_owned(), request.path?.to_owned(), hosts))
}

proptest! {
    /// What is taken here is taken by httparse, with the same method, target and host: no head has two readings.
    #[test]
    fn a_head_is_read_as_httparse_reads_it(
        method in "(GET|POST|CONNECT|OPTIONS|[A-Z!#$%&'*+.^_`|~-]{1,6})",
        target in "(/[a-z?=%:/@]{0,8}|http://a\\.example(:80)?(/x)?|a\\.example:443|\\*|[ -~]{0,6})",
        fields in proptest::collection::vec(
            "((Host|hOST|X-Y|[ -~]{1,4}) ?: ?(a\\.example|a\\.example:80|[ -~\\t\\x00\\x7f\r]{0,8})|[ \\t]?[a-z:]{0,5})", 0..4),
        end in "(\r\n|\n)",
        version in "HTTP/1\\.[012]",
    ) {
        let lines = fields.iter().map(|field| format!("{field}{end}")).collect::<String>();
        let stream = format!("{method} {target} {version}{end}{lines}{end}");
        if let HttpProgress::Head(head) = read(stream.as_bytes()) {
            let Some((method, target, hosts)) = by_httparse(stream.as_bytes()) else {
                return Err(TestCaseError::fail(format!("httparse refuses {stream:?}")));
            };
            prop_assert_eq!((&head.method, &head.target), (&method, &target));
            prop_assert!(hosts.len() <= 1, "{:?} has two hosts", stream);
            if let (Some(host), Some(own)) = (hosts.first().filter(|host| !host.is_empty()), &head.host) {
                let said = endpoint::authority(std::str::from_utf8(host).unwrap()).unwrap().0;
                prop_assert_eq!(own, &said);
            }
        }
    }
}
