//! What an attacker tried: each of these got through once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::json;

use super::support::{Gateway, call, eventually, read};

#[test]
fn no_sandbox_keeps_a_home_that_another_principal_gets() {
    let gateway = Gateway::start("ephemeral", &["alice"], "");
    let client = gateway.client(0).initialize("2025-06-18");
    let answer = client.post(&call(1, "echo", &json!({}))).last();
    assert_eq!(answer["result"]["arguments"], json!(["run", "--ephemeral", "--raw", "x"]));
    let (client, body) = gateway.client(0).stateless("echo", &json!(1), &json!({}));
    let answer = client.send("POST", &body).last();
    assert_eq!(answer["result"]["arguments"], json!(["run", "--ephemeral", "--raw", "x"]));
}

#[test]
fn a_reload_is_judged_by_the_socket_that_is_open() {
    let gateway = Gateway::start_with("public", &["alice"], |text| {
        let public = "listen = \"0.0.0.0:0\"\nbehind-proxy = true\nhosts = [\"localhost\"]";
        text.replace("listen = \"127.0.0.1:0\"", public)
    });
    let file = gateway.directory.join("servers.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let mut nobody = gateway.client(0);
    nobody.token = None;
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    // For a gateway on loopback this would do.
    std::fs::write(
        &file,
        "listen = \"127.0.0.1:0\"\nhosts = [\"localhost\"]\n[servers.one]\nrun = [\"x\"]\n",
    )
    .unwrap();
    gateway.signal("-HUP");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(nobody.post(&message).status, 401);
    gateway.client(0).initialize("2025-06-18");
    // One that keeps who is asked is taken.
    std::fs::write(&file, before.replace("[servers.one]", "[servers.two]")).unwrap();
    gateway.signal("-HUP");
    assert!(eventually(|| gateway.client(0).post(&message).status == 404));
}

#[test]
fn a_connection_that_says_nothing_ends() {
    let gateway = Gateway::start("silent", &[], "[limits]\nconnections = 1\nhead-time = \"500ms\"");
    // The second one is as far as HTTP/2 and HTTP/1 cannot be told apart.
    for said in [&b""[..], b"PRI * HT"] {
        let mut silent = TcpStream::connect(gateway.address).unwrap();
        silent.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        silent.write_all(said).unwrap();
        assert_eq!(silent.read_to_end(&mut Vec::new()).unwrap(), 0, "closed");
    }
    let client = gateway.client(0).initialize("2025-06-18");
    let answer = client.post(&call(1, "echo", &json!({"delay": 1_500, "me": "a"})));
    assert_eq!(answer.last()["result"]["me"], "a", "who has asked may wait");
}

#[test]
fn signals_are_heard_while_all_connections_are_taken() {
    let mut gateway = Gateway::start("taken", &[], "[limits]\nconnections = 1\ndrain = \"1s\"");
    let _silent = TcpStream::connect(gateway.address).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    gateway.signal("-TERM");
    assert!(gateway.ended());
}

#[test]
fn who_leaves_before_a_session_begins_leaves_no_sandbox() {
    let gateway =
        Gateway::start("left", &["alice"], "[limits]\nper-principal = 1\nwait = \"100ms\"");
    let slow = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "delay": 1_000}});
    let stream = gateway.client(0).open("POST", &slow.to_string());
    std::thread::sleep(Duration::from_millis(300));
    drop(stream);
    let quick = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    assert!(eventually(|| gateway.client(0).post(&quick).status == 200));
}

#[test]
fn a_session_that_begins_during_a_reload_is_not_of_the_old_lines() {
    let gateway = Gateway::start("during", &["alice"], "");
    let slow = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "delay": 1_500}});
    assert_eq!(gateway.client(0).post(&slow).status, 200);
    let stream = gateway.client(0).open("POST", &slow.to_string());
    std::thread::sleep(Duration::from_millis(300));
    let file = gateway.directory.join("servers.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[\"x\"]", "[\"z\"]")).unwrap();
    gateway.signal("-HUP");
    assert_eq!(read(stream).status, 503);
}

#[test]
fn the_log_is_short_and_for_its_owner() {
    let gateway = Gateway::start_with("log", &[], |text| format!("access-log = \"log\"\n{text}"));
    let client = gateway.client(0).initialize("2025-06-18");
    let method = "m".repeat(100_000);
    client.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method}));
    let file = gateway.directory.join("log");
    let lines = || std::fs::read_to_string(&file).unwrap();
    assert!(eventually(|| lines().contains("mmmm")));
    assert!(lines().len() < 2_000, "{}", lines().len());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_terminal_obeys_no_server() {
    let gateway = Gateway::start("terminal", &[], "");
    let client = gateway.client(0).initialize("2025-06-18");
    client.post(&call(1, "complain", &json!({})));
    let told = || std::fs::read_to_string(gateway.directory.join("stderr")).unwrap();
    assert!(eventually(|| told().contains("[one] red ")));
    assert!(eventually(|| told().contains("text")));
    assert!(!told().contains(['\u{1b}', '\u{202e}']), "{}", told());
}
