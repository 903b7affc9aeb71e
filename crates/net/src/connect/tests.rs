use proptest::prelude::*;

use super::*;

fn request(head: &str) -> ConnectProgress<ConnectRequest> {
    RequestReader::default().feed(head.as_bytes())
}

fn answer(head: &str) -> ConnectProgress<ConnectAnswer> {
    ResponseReader::default().feed(head.as_bytes())
}

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap()
}

#[test]
fn tunnels() {
    let head = "CONNECT A.example:443 HTTP/1.1\r\nHost: whatever\r\n\r\n";
    let value = ConnectRequest::Tunnel(endpoint("a.example:443"));
    assert_eq!(request(&format!("{head}hello")), ConnectProgress::Done { value, used: head.len() });
    for target in [
        "a.example",
        "a.example:0",
        "http://a.example:80",
        "evil\0.example:80",
        "127.1:80",
        "a.example:443/",
    ] {
        let progress = request(&format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(matches!(progress, ConnectProgress::Broken(_)), "{target:?}: {progress:?}");
    }
}

#[test]
fn plain_requests_are_rewritten() {
    let head = "GET http://a.example:8080/x?y HTTP/1.1\r\nHost: a.example:8080\r\nAccept: */*\r\n\
                Proxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\n\r\n";
    let ConnectProgress::Done { value: ConnectRequest::Forward { endpoint: place, head }, .. } =
        request(head)
    else {
        panic!("not forwarded");
    };
    assert_eq!(place, endpoint("a.example:8080"));
    let expected =
        "GET /x?y HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), expected);

    let ConnectProgress::Done { value: ConnectRequest::Forward { endpoint: place, head }, .. } =
        request("GET http://a.example?q HTTP/1.0\r\n\r\n")
    else {
        panic!("not forwarded");
    };
    assert_eq!(place, endpoint("a.example:80"));
    assert!(head.starts_with(b"GET /?q HTTP/1.1\r\nHost: a.example\r\n"));
}

#[test]
fn what_is_no_proxy_request_is_broken() {
    for head in [
        "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET https://a.example/ HTTP/1.1\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
        "GET http://a@b.example/ HTTP/1.1\r\n\r\n",
        "GET http://a.example\\@b.example/ HTTP/2\r\n\r\n",
        "nonsense\r\n\r\n",
        "G]ET http://a.example/ HTTP/1.1\r\n\r\n",
        " http://a.example/ HTTP/1.1\r\n\r\n",
    ] {
        assert!(
            matches!(request(head), ConnectProgress::Broken(_)),
            "{head:?}: {:?}",
            request(head)
        );
    }
}

#[test]
fn answers() {
    let connected = "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n";
    assert_eq!(
        answer(&format!("{connected}ssh")),
        ConnectProgress::Done { value: ConnectAnswer::Connected, used: connected.len() }
    );
    for (head, expected) in [
        ("HTTP/1.0 200 OK\r\n\r\n", ConnectAnswer::Connected),
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", ConnectAnswer::NeedsLogin),
        ("HTTP/1.1 503\r\n\r\n", ConnectAnswer::Refused { status: 503 }),
        ("HTTP/1.1 302 Found\r\n\r\n", ConnectAnswer::Refused { status: 302 }),
    ] {
        assert_eq!(
            answer(head),
            ConnectProgress::Done { value: expected, used: head.len() },
            "{head:?}"
        );
    }
    for head in [
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 20 \r\n\r\n",
        "HTTP/1.1 +20 x\r\n\r\n",
        "SSH-2.0\r\n\r\n",
        "HTTP/1.1 100 x\r\n\r\n",
    ] {
        assert!(matches!(answer(head), ConnectProgress::Broken(_)), "{head:?}");
    }
    assert_eq!(answer("HTTP/1.1 200 OK\r\n"), ConnectProgress::NeedMore);
}

#[test]
fn what_we_ask_reads_back() {
    let credentials = Credentials::basic(b"Aladdin", b"open sesame");
    let asked = connect_request(&endpoint("[2001:db8::1]:443"), Some(&credentials));
    let text = String::from_utf8(asked.clone()).unwrap();
    assert!(text.contains("Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"), "{text}");
    let value = ConnectRequest::Tunnel(endpoint("[2001:db8::1]:443"));
    assert_eq!(
        RequestReader::default().feed(&asked),
        ConnectProgress::Done { value, used: asked.len() }
    );
    assert!(!format!("{credentials:?}").contains("QWxh"));
}

#[test]
fn replies_are_whole_responses() {
    let text = String::from_utf8(Reply::Blocked("blocked a.example:443").bytes()).unwrap();
    assert!(text.starts_with("HTTP/1.1 403 Forbidden\r\n"));
    assert!(text.ends_with("\r\n\r\nmcp: blocked a.example:443\n"));
    assert_eq!(
        ResponseReader::default().feed(&Reply::Connected.bytes()),
        ConnectProgress::Done { value: ConnectAnswer::Connected, used: 39 }
    );
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = RequestReader::default().feed(&bytes);
        let _ = ResponseReader::default().feed(&bytes);
    }

    /// Whatever a program writes, the server behind gets one head without our fields.
    #[test]
    fn a_forwarded_head_is_one_head(
        path in "[ -~]{0,20}", name in "[a-zA-Z-]{1,12}", value in "[ -~]{0,20}",
    ) {
        let head = format!("GET http://a.example/{path} HTTP/1.1\r\n{name}: {value}\r\n\r\n");
        if let ConnectProgress::Done { value: ConnectRequest::Forward { endpoint: place, head }, .. } = request(&head) {
            prop_assert_eq!(place, endpoint("a.example:80"));
            let mut collector = Collector::default();
            prop_assert_eq!(collector.feed(&head), Collected::Whole { used: head.len() });
            let lines = Lines::read(&head).unwrap();
            prop_assert_eq!(lines.only("host"), Ok(Some(&b"a.example"[..])));
        }
    }
}
