//! The gateway as a process, with servers that misbehave and clients that leave.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attacks;
mod bounds;
mod isolation;
mod rest;
mod reviewed;
mod support;
mod tools;
mod traces;

use std::io::Read;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Gateway, call, parse, read};

#[test]
fn a_token_is_needed_and_a_wrong_one_does_not_do() {
    let gateway = Gateway::start("auth", &["alice"], "");
    let mut client = gateway.client(0);
    assert_eq!(
        client.clone().initialize("2025-06-18").post(&call(1, "echo", &json!({}))).status,
        200
    );
    client.token = Some("mcp_wrong".to_owned());
    let answer = client.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize"}));
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").unwrap().contains("invalid_token"));
    client.token = None;
    assert_eq!(
        client.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize"})).status,
        401
    );
}

#[test]
fn a_session_is_worth_nothing_to_another() {
    let gateway = Gateway::start("sessions", &["alice", "bob"], "");
    let alice = gateway.client(0).initialize("2025-06-18");
    let mut bob = gateway.client(1);
    bob.session.clone_from(&alice.session);
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(
            bob.send(method, &call(1, "echo", &json!({})).to_string()).status,
            404,
            "{method}"
        );
    }
    let answer = alice.post(&call(1, "echo", &json!({"me": "alice"})));
    assert_eq!(answer.last()["result"]["me"], "alice");
    assert_eq!(alice.send("DELETE", "").status, 204);
    assert_eq!(alice.post(&call(2, "echo", &json!({}))).status, 404);
}

#[test]
fn headers_say_what_the_body_says() {
    let gateway = Gateway::start("headers", &[], "");
    let (client, body) = gateway.client(0).stateless("echo", &json!("a"), &json!({}));
    let answer = client.send("POST", &body);
    assert_eq!((answer.status, answer.last()["id"].clone()), (200, json!("a")), "{}", answer.body);
    for (name, value) in
        [("Mcp-Name", "other"), ("Mcp-Method", "tools/list"), ("Mcp-Name", "=?base64?b3RoZXI=?=")]
    {
        let answer = client.clone().with(name, value).send("POST", &body);
        assert_eq!(
            (answer.status, answer.last()["error"]["code"].clone()),
            (400, json!(-32020)),
            "{name}: {value}"
        );
    }
    let encoded = client.clone().with("Mcp-Name", "=?base64?ZWNobw==?=").send("POST", &body);
    assert_eq!(encoded.status, 200);
    for missing in ["Mcp-Name", "Mcp-Method"] {
        let mut without = client.clone();
        without.headers.retain(|(name, _)| name != missing);
        assert_eq!(without.send("POST", &body).status, 400, "{missing}");
    }
    let twice = body.replace("\"name\":\"echo\"", "\"name\":\"echo\",\"name\":\"crash\"");
    assert_ne!(twice, body);
    assert_eq!(client.send("POST", &twice).status, 400);
    let unknown = body.replace("tools/call", "no/such");
    assert_eq!(client.clone().with("Mcp-Method", "no/such").send("POST", &unknown).status, 404);
    let newer = client
        .with("Mcp-Protocol-Version", "2099-01-01")
        .send("POST", &body.replace("2026-07-28", "2099-01-01"));
    assert_eq!((newer.status, newer.last()["error"]["code"].clone()), (400, json!(-32022)));
}

#[test]
fn a_web_page_is_refused() {
    let gateway = Gateway::start("pages", &[], "");
    let (client, body) = gateway.client(0).stateless("echo", &json!(1), &json!({}));
    assert_eq!(client.send("POST", &body).status, 200);
    assert_eq!(client.clone().with("Host", "evil.example").send("POST", &body).status, 403);
    assert_eq!(client.with("Origin", "https://evil.example").send("POST", &body).status, 403);
}

#[test]
fn a_crash_is_an_error_for_its_own_callers_only() {
    let gateway = Gateway::start("crash", &["alice", "bob"], "");
    let bob = gateway.client(1).initialize("2025-06-18");
    let alice = gateway.client(0).initialize("2025-06-18");
    let waiting = alice.open("POST", &call(7, "echo", &json!({"delay": 20_000})).to_string());
    let answer = alice.post(&call(8, "crash", &json!({})));
    assert_eq!(
        (answer.last()["id"].clone(), answer.last()["error"]["code"].clone()),
        (json!(8), json!(-32603))
    );
    assert_eq!(read(waiting).last()["id"], 7);
    assert_eq!(alice.post(&call(9, "echo", &json!({}))).status, 404, "the session is gone");
    assert_eq!(bob.post(&call(1, "echo", &json!({"me": "bob"}))).last()["result"]["me"], "bob");
    // Without sessions the next call has a new process.
    let (client, body) = gateway.client(0).stateless("crash", &json!(1), &json!({}));
    assert_eq!(client.send("POST", &body).last()["error"]["code"], -32603);
    let (client, body) = gateway.client(0).stateless("echo", &json!(2), &json!({}));
    assert_eq!(client.send("POST", &body).last()["result"]["cancelled"], 0);
}

#[test]
fn what_is_too_large_is_an_error_and_nothing_else_is_lost() {
    let gateway = Gateway::start("large", &[], "[limits]\nmax-message = \"64K\"");
    let client = gateway.client(0).initialize("2025-06-18");
    let text = "x".repeat(100 << 10);
    assert_eq!(client.post(&call(1, "echo", &json!({ "text": text }))).status, 413);
    let answer = client.post(&call(2, "large", &json!({"bytes": 100 << 10})));
    assert_eq!(
        (answer.last()["id"].clone(), answer.last()["error"]["code"].clone()),
        (json!(2), json!(-32603))
    );
    let answer = client.post(&call(3, "large", &json!({"bytes": 10 << 10})));
    assert_eq!(answer.last()["result"]["text"].as_str().unwrap().len(), 10 << 10);
}

#[test]
fn who_leaves_cancels_where_there_are_no_sessions() {
    let gateway = Gateway::start("cancel", &[], "");
    for (delay, pause) in [(300, 0), (1_500, 900)] {
        let (client, body) =
            gateway.client(0).stateless("echo", &json!(1), &json!({"delay": delay * 20}));
        let stream = client.open("POST", &body);
        std::thread::sleep(Duration::from_millis(200 + pause));
        drop(stream);
    }
    let (client, body) = gateway.client(0).stateless("echo", &json!(1), &json!({}));
    let mut seen = json!(0);
    for _ in 0..100 {
        seen = client.send("POST", &body).last()["result"]["cancelled"].clone();
        if seen == 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(seen, 2, "once before the response began, once after");
}

#[test]
fn a_stream_that_broke_off_goes_on_where_it_was() {
    let gateway = Gateway::start("resume", &["alice", "bob"], "");
    let client = gateway.client(0).initialize("2025-11-25");
    let mut stream = client.open(
        "POST",
        &call(5, "steps", &json!({"steps": 4, "pause": 300, "me": "alice"})).to_string(),
    );
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("\"progress\":1") {
        let mut piece = [0; 1024];
        let count = match stream.read(&mut piece) {
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.unwrap(),
        };
        assert!(count > 0);
        bytes.extend_from_slice(&piece[..count]);
    }
    drop(stream);
    let seen = parse(&[&bytes[..], b"0\r\n\r\n"].concat()).messages();
    let last = seen.last().and_then(|(id, _)| id.clone()).unwrap();
    let mut stranger = gateway.client(1);
    stranger.session.clone_from(&client.session);
    assert_eq!(stranger.with("Last-Event-ID", &last).send("GET", "").status, 404);
    let rest = client.with("Last-Event-ID", &last).send("GET", "");
    let numbers: Vec<Value> =
        rest.messages().iter().map(|(_, it)| it["params"]["progress"].clone()).collect();
    assert_eq!(numbers, [json!(2), json!(3), Value::Null], "{}", rest.body);
    assert_eq!(rest.last()["result"]["me"], "alice");
}

#[test]
fn beyond_its_bounds_a_principal_waits_and_is_told() {
    let gateway = Gateway::start(
        "bounds",
        &["alice", "bob"],
        "[limits]\nper-principal = 1\nwait = \"200ms\"",
    );
    let first = gateway.client(0).initialize("2025-06-18");
    let refused = gateway
        .client(0)
        .post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}));
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    gateway.client(1).initialize("2025-06-18");
    assert_eq!(first.send("DELETE", "").status, 204);
    let mut status = 0;
    for _ in 0..50 {
        status = gateway.client(0).post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}})).status;
        if status == 200 {
            break;
        }
    }
    assert_eq!(status, 200, "room again");
}

#[test]
fn the_end_loses_no_answer_that_was_due() {
    let mut gateway = Gateway::start("drain", &[], "");
    let client = gateway.client(0).initialize("2025-06-18");
    let quick =
        client.open("POST", &call(1, "echo", &json!({"delay": 1_000, "me": "x"})).to_string());
    let streamed =
        client.open("POST", &call(2, "steps", &json!({"steps": 3, "pause": 400})).to_string());
    let listening = client.open("GET", "");
    std::thread::sleep(Duration::from_millis(300));
    gateway.signal("-TERM");
    assert_eq!(read(quick).last()["result"]["me"], "x");
    assert!(read(streamed).last()["result"].is_object());
    drop(read(listening));
    assert!(gateway.ended());
}

#[test]
fn another_configuration_leaves_what_did_not_change() {
    let gateway = Gateway::start("reload", &["alice"], "");
    let client = gateway.client(0).initialize("2025-06-18");
    let pid = client.post(&call(1, "echo", &json!({}))).last()["result"]["pid"].clone();
    gateway.configure("[servers.two]\nrun = [\"y\"]\n");
    gateway.signal("-HUP");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(client.post(&call(2, "echo", &json!({}))).last()["result"]["pid"], pid);
    let text = std::fs::read_to_string(gateway.directory.join("servers.toml")).unwrap();
    std::fs::write(gateway.directory.join("servers.toml"), text.replace("[\"x\"]", "[\"z\"]"))
        .unwrap();
    gateway.signal("-HUP");
    let mut status = 0;
    for _ in 0..100 {
        status = client.post(&call(3, "echo", &json!({}))).status;
        if status == 404 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(status, 404, "what changed is ended");
}
