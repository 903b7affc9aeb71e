//! One span per call, to a collector that the test is.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Gateway, call};

/// Takes what is posted, and answers 200.
fn collector() -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (sender, spans) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            reader.get_mut().write_all(answer).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let found = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned();
            found.unwrap().into_iter().for_each(|span| drop(sender.send(span)));
        }
    });
    (place, spans)
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|it| it["key"] == key)?;
    found["value"]["stringValue"].as_str()
}

#[test]
fn each_call_is_one_span_and_tells_no_secret() {
    let (place, spans) = collector();
    let mut gateway =
        Gateway::start("traces", &["alice"], &format!("[otlp]\nendpoint = \"{place}\""));
    let client = gateway.client(0).initialize("2025-06-18");
    let session = client.session.clone().unwrap();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let arguments = json!({"me": "a", "text": "a-secret-argument"});
    let traced = client.clone().with("traceparent", parent);
    assert_eq!(traced.post(&call(1, "echo", &arguments)).status, 200);
    client.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "no/such"}));
    // The end sends what waits.
    gateway.signal("-TERM");
    assert!(gateway.ended());
    let mut told = Vec::new();
    while let Ok(span) = spans.recv_timeout(Duration::from_secs(2)) {
        told.push(span);
    }
    let names: Vec<&str> = told.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["initialize", "tools/call echo", "no/such"]);
    let call = &told[1];
    assert_eq!(call["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(call["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(call["status"]["code"], 1);
    assert_eq!(attribute(call, "mcp.server"), Some("one"));
    assert_eq!(attribute(call, "enduser.id"), Some("alice"));
    assert_eq!(attribute(call, "gen_ai.tool.name"), Some("echo"));
    assert_eq!(attribute(&told[2], "error.type"), Some("-32601"));
    assert_eq!(told[2]["status"]["code"], 2);
    let text = json!(told).to_string();
    for secret in [&gateway.tokens[0], &session, "a-secret-argument"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn a_collector_that_is_gone_holds_no_call_up() {
    let gateway =
        Gateway::start("untraced", &[], "[otlp]\nendpoint = \"http://127.0.0.1:1/v1/traces\"");
    let client = gateway.client(0).initialize("2025-06-18");
    assert_eq!(client.post(&call(1, "echo", &json!({}))).status, 200);
    let lost = || gateway.metric("mcp_serve_lost_spans_total").unwrap();
    assert!(super::support::eventually(|| lost() >= 2));
}
