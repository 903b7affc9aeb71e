//! What a client that can send bytes to the gateway, or a server behind it, may try. Each has its control.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Gateway, call, eventually, parse};

/// What comes back for these bytes, as they are, until the gateway closes the connection.
fn raw(gateway: &Gateway, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut told = Vec::new();
    let _ = stream.read_to_end(&mut told);
    String::from_utf8_lossy(&told).into_owned()
}

/// A request after which the connection is left open, unless `head` says otherwise.
fn request(head: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /mcp/one HTTP/1.1\r\nContent-Type: application/json\r\nAccept: */*\r\n{head}\r\n{body}"
    )
    .into_bytes()
}

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;

#[test]
fn a_header_that_two_readers_take_differently_is_refused() {
    let gateway = Gateway::start("smuggle", &[], "");
    let length = format!("Connection: close\r\nContent-Length: {}\r\n", INITIALIZE.len());
    let good = raw(&gateway, &request(&format!("Host: localhost\r\n{length}"), INITIALIZE));
    assert!(good.starts_with("HTTP/1.1 200"), "{good}");
    for head in [
        format!("Host: localhost\r\nHost: localhost\r\n{length}"),
        format!("Host: localhost\r\nHost: evil.example\r\n{length}"),
        format!("Host: localhost\r\n{length}Content-Length: 5\r\n"),
        format!(
            "Host: localhost\r\n{length}Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"
        ),
        format!("Host: localhost\r\n{length}Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n"),
        format!(
            "Host: localhost\r\n{length}Origin: http://localhost\r\nOrigin: http://localhost\r\n"
        ),
        format!("Host : localhost\r\n{length}"),
        "Host: localhost\r\nConnection: close\r\nContent-Length: +5\r\n".to_owned(),
        "Host: localhost\r\nTransfer-Encoding: chunked, identity\r\n".to_owned(),
        "Host: localhost\r\nTransfer-Encoding: xchunked\r\n".to_owned(),
    ] {
        let told = raw(&gateway, &request(&head, INITIALIZE));
        assert!(told.starts_with("HTTP/1.1 400") || told.is_empty(), "{head}: {told}");
    }
    let other = raw(
        &gateway,
        b"GET http://evil.example/mcp/one HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(other.starts_with("HTTP/1.1 400"), "{other}");
    let same = raw(
        &gateway,
        b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(same.starts_with("HTTP/1.1 200"), "{same}");
}

#[test]
fn no_second_request_hides_in_a_body() {
    let gateway = Gateway::start("hidden", &[], "");
    let hidden = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Two requests after one another are two: the control.
    let last = hidden.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let plain = format!("{hidden}{last}");
    assert_eq!(raw(&gateway, plain.as_bytes()).matches("HTTP/1.1 ").count(), 2);
    // By its length this is one request, by its encoding it ends before the second.
    let body = format!("0\r\n\r\n{hidden}");
    let head = format!(
        "Host: localhost\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n",
        body.len()
    );
    let told = raw(&gateway, &request(&head, &body));
    assert_eq!(told.matches("HTTP/1.1 ").count(), 1, "{told}");
    // By its encoding one request, by its length of 4 two.
    let chunk = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
    let head = "Host: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n";
    let told = raw(&gateway, &request(head, &chunk));
    assert_eq!(told.matches("HTTP/1.1 ").count(), 1, "{told}");
}

#[test]
fn what_is_packed_too_deep_or_too_many_is_refused_and_the_session_stays() {
    let gateway = Gateway::start("packed", &[], "");
    let client = gateway.client(0).initialize("2025-03-26");
    let plain = call(1, "echo", &json!({})).to_string();
    assert_eq!(client.clone().with("Content-Encoding", "gzip").send("POST", &plain).status, 415);
    assert_eq!(
        client.clone().with("Content-Encoding", "identity").send("POST", &plain).status,
        200
    );
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}1{}}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert_eq!(client.send("POST", &deep).status, 400);
    let many: Vec<Value> =
        (0..5_000).map(|id| call(id, "echo", &json!({"delay": 2_000}))).collect();
    assert_eq!(client.post(&json!(many)).status, 503, "more than may be open");
    let twice = json!([call(1, "echo", &json!({})), call(1, "echo", &json!({}))]);
    assert_eq!(client.post(&twice).status, 400, "one id for two");
    // What was begun of it is cancelled, so there is room.
    let two = json!([call(7, "echo", &json!({"me": "a"})), call(8, "echo", &json!({"me": "b"}))]);
    assert!(eventually(|| client.post(&two).status == 200));
}

#[test]
fn ids_that_look_alike_are_two() {
    let gateway = Gateway::start("alike", &[], "");
    let client = gateway.client(0).initialize("2025-06-18");
    let ask = |id: &str, me: &str, delay: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"me":"{me}","delay":{delay}}}}}}}"#
        )
    };
    let number = client.open("POST", &ask("5", "number", 700));
    let text = client.send("POST", &ask("\"5\"", "text", 0)).last();
    assert_eq!((&text["id"], &text["result"]["me"]), (&json!("5"), &json!("text")));
    assert_eq!(client.send("POST", &ask("5.0", "again", 0)).status, 400, "5 is open");
    let number = super::support::read(number).last();
    assert_eq!((&number["id"], &number["result"]["me"]), (&json!(5), &json!("number")));
    for wrong in ["null", "true", "{}", "[1]"] {
        assert_eq!(client.send("POST", &ask(wrong, "x", 0)).status, 400, "{wrong}");
    }
}

#[test]
fn a_server_that_answers_what_it_was_not_asked_reaches_no_client() {
    let gateway = Gateway::start("guess", &["alice", "bob"], "");
    let alice = gateway.client(0).initialize("2025-06-18");
    let bob = gateway.client(1).initialize("2025-06-18");
    let waiting =
        bob.open("POST", &call(20, "echo", &json!({"me": "bob", "delay": 800})).to_string());
    let answer = alice.post(&call(10, "guess", &json!({"me": "alice", "guesses": 100}))).last();
    assert_eq!((&answer["id"], &answer["result"]["me"]), (&json!(10), &json!("alice")));
    assert_eq!(super::support::read(waiting).last()["result"]["me"], "bob");
    // What was answered before it was asked is not kept for the one who asks later.
    let later = alice.post(&call(11, "echo", &json!({"me": "alice"}))).last();
    assert_eq!(later["result"]["me"], "alice", "{later}");
    // Without sessions ids are the gateway's own.
    let (client, body) = gateway.client(0).stateless("guess", &json!(1), &json!({"me": "alice"}));
    assert_eq!(client.send("POST", &body).last()["result"]["me"], "alice");
    let (client, body) = gateway.client(0).stateless("echo", &json!(2), &json!({"me": "alice"}));
    let answer = client.send("POST", &body).last();
    assert_eq!((&answer["id"], &answer["result"]["me"]), (&json!(2), &json!("alice")));
    assert!(gateway.metric("mcp_serve_dropped_messages_total").unwrap() >= 200);
}

#[test]
fn a_line_of_the_log_is_one_line_whatever_is_asked_for() {
    let gateway = Gateway::start_with("lines", &[], |text| format!("access-log = \"log\"\n{text}"));
    let mut client = gateway.client(0);
    client.path = "/mcp/x%0a%7b\"peer\":\"10.0.0.1\"%7d?a=\"\u{1b}";
    client.send("GET", "");
    client.path = "/mcp/one";
    let session = client.clone().initialize("2025-06-18");
    let method = "x\n{\"status\":200}\r\n\u{1b}[2J\u{2028}";
    session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method}));
    let log = || std::fs::read_to_string(gateway.directory.join("log")).unwrap();
    assert!(eventually(|| log().lines().count() >= 2 && log().contains("[2J")));
    let text = log();
    assert!(!text.contains('\u{1b}'), "{text}");
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    }
}

#[test]
fn a_huge_token_is_refused_and_not_looked_at() {
    let gateway = Gateway::start("huge", &["alice"], "");
    let mut client = gateway.client(0);
    let body = INITIALIZE;
    assert_eq!(client.send("POST", body).status, 200);
    client.token = Some("x".repeat(30_000));
    assert_eq!(client.send("POST", body).status, 401);
    let head = format!("Host: localhost\r\nAuthorization: Bearer {}\r\n", "x".repeat(200_000));
    let told = parse(raw(&gateway, &request(&head, "")).as_bytes());
    assert!(matches!(told.status, 431 | 400 | 0), "{}", told.status);
    assert!(!told.body.contains("xxxx"));
}
