//! Connections that are put to rest between two requests, and come back.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::support::{Gateway, call, parse};

/// Longer than a connection stays awake without a request.
const PAUSE: Duration = Duration::from_millis(2500);

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The head of the next answer, whose body is `ok\n`.
fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\nok\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    text
}

#[test]
fn a_connection_at_rest_answers_again() {
    let gateway = Gateway::start("rest", &[], "");
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for _ in 0..3 {
        stream.write_all(HEALTH.as_bytes()).unwrap();
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200 "));
        std::thread::sleep(PAUSE);
    }
    // A head in two parts, with the rest between them, at first alone and then behind a whole request.
    for before in ["", HEALTH] {
        let (begun, left) = HEALTH.split_at(9);
        stream.write_all(format!("{before}{begun}").as_bytes()).unwrap();
        for _ in 0..before.len().min(1) {
            answer(&mut stream);
        }
        std::thread::sleep(PAUSE);
        stream.write_all(left.as_bytes()).unwrap();
        let head = answer(&mut stream);
        assert!(!head.to_ascii_lowercase().contains("connection: close"), "{head}");
    }
}

#[test]
fn a_connection_at_rest_goes_after_its_time() {
    let gateway = Gateway::start("rested", &[], "[limits]\nhead-time = \"3s\"");
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(HEALTH.as_bytes()).unwrap();
    answer(&mut stream);
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0, "closed, and nothing said");
}

#[test]
fn an_answer_that_is_read_late_is_whole() {
    let gateway = Gateway::start("late", &[], "");
    let client = gateway.client(0).initialize("2025-06-18");
    let large = call(1, "large", &json!({"bytes": 12 << 20})).to_string();
    let mut stream = client.open("POST", &large);
    std::thread::sleep(PAUSE);
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    assert_eq!(parse(&text).last()["result"]["text"].as_str().unwrap().len(), 12 << 20);
}
