//! Clients that are slow, many or gone, servers that flood, principals that take what they can get.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Gateway, call, eventually};

/// Connections in the crowd; `MCP_SERVE_IDLE=10000` for the long run.
fn crowd() -> usize {
    std::env::var("MCP_SERVE_IDLE").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

#[test]
fn idle_connections_do_not_delay_other_clients() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let hard = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard });
    let count = crowd().min(usize::try_from(hard.unwrap_or(1 << 20)).unwrap() / 2);
    let gateway = Gateway::start("crowd", &[], "");
    let mut idle = Vec::with_capacity(count);
    for number in 0..count {
        let mut stream = TcpStream::connect(gateway.address).unwrap();
        // Half of them have begun to say something.
        if number % 2 == 0 {
            stream.write_all(b"POST /mcp/one HTTP/1.1\r\nHost: loc").unwrap();
        }
        idle.push(stream);
    }
    assert!(eventually(|| gateway.metric("mcp_serve_connections ").unwrap() >= count as u64));
    let client = gateway.client(0).initialize("2025-06-18");
    assert_eq!(client.post(&call(1, "echo", &json!({"me": "a"}))).last()["result"]["me"], "a");
    drop(idle);
    assert!(eventually(|| gateway.metric("mcp_serve_connections ").unwrap() < 100));
}

#[test]
fn a_head_that_comes_byte_by_byte_has_its_time() {
    let gateway = Gateway::start("slowloris", &[], "[limits]\nhead-time = \"500ms\"");
    let mut slow = TcpStream::connect(gateway.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut ended = false;
    for byte in
        std::iter::repeat_n(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ".as_slice(), 1)
            .flatten()
            .chain(std::iter::repeat(&b'x'))
            .take(400)
    {
        if slow.write_all(&[*byte]).is_err() || slow.read(&mut [0; 512]).is_ok() {
            ended = true;
            break;
        }
    }
    assert!(ended, "400 bytes in 20 seconds");
    let mut client = gateway.client(0);
    client.path = "/healthz";
    assert_eq!(client.send("GET", "").status, 200);
}

#[test]
fn a_client_that_does_not_read_loses_its_connection() {
    let gateway = Gateway::start("unread", &[], "[limits]\nwrite-time = \"500ms\"");
    let client = gateway.client(0).initialize("2025-06-18");
    let large = call(1, "large", &json!({"bytes": 12 << 20})).to_string();
    let whole = client.send("POST", &large);
    assert_eq!(
        whole.last()["result"]["text"].as_str().unwrap().len(),
        12 << 20,
        "who reads has it"
    );
    let stream = client.open("POST", &large.replace("\"id\":1", "\"id\":2"));
    let connections = || gateway.metric("mcp_serve_connections ").unwrap();
    assert!(eventually(|| connections() == 1), "but for the one that asks for this figure");
    drop(stream);
    // An answer that was sent as events is kept for a client that comes back, until the session ends.
    assert_eq!(client.send("DELETE", "").status, 204);
    assert!(eventually(|| gateway.metric("mcp_serve_held_bytes ").unwrap() == 0));
}

#[test]
fn bodies_that_are_not_finished_are_bounded_for_each_principal() {
    let limits =
        "[limits]\nmax-message = \"64K\"\nmemory = \"1M\"\nmemory-per-principal = \"256K\"";
    let gateway = Gateway::start("bodies", &["alice", "bob"], limits);
    let alice = gateway.client(0).initialize("2025-06-18");
    let bob = gateway.client(1).initialize("2025-06-18");
    let large = call(1, "echo", &json!({"text": "x".repeat(60 << 10)})).to_string();
    assert_eq!(alice.send("POST", &large).status, 200);
    let unfinished: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(gateway.address).unwrap();
            let head = format!(
                "POST /mcp/one HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n\
                 Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
                gateway.tokens[0],
                large.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&large.as_bytes()[..large.len() - 1]).unwrap();
            stream
        })
        .collect();
    assert!(eventually(|| alice.send("POST", &large).status == 503));
    assert!(gateway.metric("mcp_serve_held_bytes ").unwrap() <= 256 << 10);
    assert_eq!(bob.send("POST", &large).status, 200, "another principal's");
    drop(unfinished);
    assert!(eventually(|| alice.send("POST", &large).status == 200));
}

#[test]
fn a_server_that_floods_is_bounded_and_others_go_on() {
    let limits = "[limits]\nmax-message = \"128K\"\nmemory = \"8M\"\nmemory-per-principal = \"2M\"";
    let gateway = Gateway::start("flood", &["alice", "bob"], limits);
    let alice = gateway.client(0).initialize("2025-06-18");
    let bob = gateway.client(1).initialize("2025-06-18");
    // The client never reads this one.
    let flooded = alice.open("POST", &call(1, "flood", &json!({"count": 2_000})).to_string());
    assert!(eventually(|| gateway.metric("mcp_serve_dropped_messages_total").unwrap() > 100));
    assert!(gateway.metric("mcp_serve_held_bytes ").unwrap() <= 3 << 20);
    let answer = bob.post(&call(1, "echo", &json!({"me": "bob"}))).last();
    assert_eq!(answer["result"]["me"], "bob");
    drop(flooded);
    let told = |me: &str| alice.post(&call(2, "echo", &json!({ "me": me }))).last();
    assert!(eventually(|| told("a")["result"]["me"] == "a"), "{}", told("a"));
}

#[test]
fn a_session_that_no_client_uses_makes_room_for_another_of_its_principal() {
    let limits = "[limits]\nper-principal = 1\nwait = \"20s\"";
    let gateway = Gateway::start("room", &["alice", "bob"], limits);
    let bob = gateway.client(1).initialize("2025-06-18");
    let first = gateway.client(0).initialize("2025-06-18");
    // As clients do that end without DELETE.
    let second = gateway.client(0).initialize("2025-06-18");
    assert_eq!(first.post(&call(1, "echo", &json!({}))).status, 404, "begin anew");
    assert_eq!(second.post(&call(1, "echo", &json!({}))).status, 200);
    assert_eq!(bob.post(&call(1, "echo", &json!({}))).status, 200, "another principal's stays");
    assert_eq!(gateway.metric("mcp_serve_yielded_sandboxes_total"), Some(1));
}

#[test]
fn no_server_starts_while_the_others_use_what_they_may() {
    let limits = "[limits]\nserver-memory-per-principal = \"4K\"";
    let gateway = Gateway::start("memory", &["alice", "bob"], limits);
    let first = gateway.client(0).initialize("2025-06-18");
    let again: Value = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    assert!(eventually(|| gateway.client(0).post(&again).status == 503));
    gateway.client(1).initialize("2025-06-18");
    assert_eq!(first.post(&call(1, "echo", &json!({}))).status, 200, "what runs goes on");
    let told = gateway.metric("mcp_serve_server_memory_bytes{server=\"one\"}").unwrap();
    assert!(told > 64 << 10, "{told}");
}

#[test]
fn who_is_no_longer_in_the_file_of_tokens_loses_what_runs() {
    let gateway = Gateway::start("revoked", &["alice", "bob"], "");
    let alice = gateway.client(0).initialize("2025-06-18");
    let bob = gateway.client(1).initialize("2025-06-18");
    let stream = alice.open("POST", &call(1, "echo", &json!({"delay": 600_000})).to_string());
    // A call of the same session that was sent after it is answered, so the first one is at work.
    assert_eq!(alice.post(&call(3, "echo", &json!({}))).status, 200);
    let file = gateway.directory.join("tokens");
    let lines = std::fs::read_to_string(&file).unwrap();
    let rest: Vec<&str> = lines.lines().filter(|line| !line.starts_with("alice ")).collect();
    std::fs::write(&file, rest.join("\n")).unwrap();
    gateway.signal("-HUP");
    assert_eq!(super::support::read(stream).last()["error"]["code"], -32603, "what was open ends");
    assert!(eventually(|| alice.post(&call(2, "echo", &json!({}))).status == 401));
    assert_eq!(bob.post(&call(1, "echo", &json!({}))).status, 200);
}
