//! `mcp serve` with its real sandboxes: what is behind HTTP has the walls of `mcp run`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::{Scratch, mcp_path};

/// Answers `initialize` (id 0) and one call (id 1), which says whether it sees a file.
const SERVER: &str = r#"while read -r line; do case "$line" in
*initialize*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}';;
*tools/call*) if [ -e "$0" ]; then seen=true; else seen=false; fi; echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"seen\":$seen}}";;
esac; done"#;

struct Gateway {
    child: Child,
    address: String,
}

impl Gateway {
    fn start(flags: &[&str], file: &Path) -> Gateway {
        let mut child = Command::new(mcp_path())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(flags)
            .args(["sh", "-c", SERVER])
            .arg(file)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Gateway { child, address }
    }

    fn post(&self, session: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// What a call answers, in a session of its own.
    fn call(&self) -> String {
        let begun = self.post("", r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        let session = begun.lines().find(|line| line.starts_with("mcp-session-id:"));
        let session = session.unwrap_or_else(|| panic!("no session: {begun}"));
        self.post(
            &format!("{session}\r\n"),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
        )
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_behind_http_sees_what_it_was_granted_and_no_more() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("secret.txt", "x");
    let walled = Gateway::start(&[], &file).call();
    assert!(walled.contains(r#""seen":false"#), "{walled}");
    let granted = Gateway::start(&["--read", file.to_str().unwrap()], &file).call();
    assert!(granted.contains(r#""seen":true"#), "{granted}");
}

#[test]
fn beyond_loopback_somebody_is_asked_who_they_are() {
    let scratch = Scratch::new();
    scratch.file("tokens", "");
    let judge = |text: &str| {
        let file = scratch.file("servers.toml", text);
        let output =
            Command::new(mcp_path()).args(["serve", "--check"]).arg(file).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let servers = "[servers.x]\nrun = [\"true\"]\n";
    let open = "listen = \"0.0.0.0:8808\"\n";
    let refused = [
        (open.to_owned(), "nobody would be asked"),
        (format!("{open}hosts = [\"h\"]\n[auth]\ntokens = \"tokens\"\n"), "in the clear"),
        (format!("{open}behind-proxy = true\n[auth]\ntokens = \"tokens\"\n"), "hosts"),
    ];
    for (text, why) in refused {
        let (code, told) = judge(&format!("{text}{servers}"));
        assert!(code == Some(2) && told.contains(why), "{text}: {code:?} {told}");
    }
    let (code, told) = judge(&format!(
        "{open}behind-proxy = true\nhosts = [\"h\"]\n[auth]\ntokens = \"tokens\"\n{servers}"
    ));
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(judge(servers).0, Some(0), "loopback needs nothing");
}
