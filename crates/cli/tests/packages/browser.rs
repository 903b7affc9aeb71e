//! `--browser`: the machine's Chromium inside, by itself and driven by a server from npm.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::require;
use crate::support::skip;
use crate::user::{Said, User};

/// Serves these pages on loopback: its port.
fn serve(pages: &'static [(&'static str, &'static str)]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(&stream);
                let mut line = String::new();
                let _ = reader.read_line(&mut line);
                let asked = line.split(' ').nth(1).unwrap_or_default().to_owned();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {}
                let body =
                    pages.iter().find(|(path, _)| *path == asked).map_or("", |(_, body)| body);
                let _ = write!(
                    &stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
            });
        }
    });
    port
}

fn has_chromium() -> bool {
    let is_there = ["/usr/lib/chromium/chromium", "/opt/google/chrome/chrome"]
        .iter()
        .any(|path| Path::new(path).exists());
    if !is_there {
        skip("chromium", "is not installed");
    }
    is_there
}

const PAGES: &[(&str, &str)] =
    &[("/", "<!doctype html><title>page</title><h1>The answer is 4711</h1>"), ("/hog", HOG)];

/// Takes memory in pieces of 4 MiB, and says how much it got.
const HOG: &str = r#"<!doctype html><body><script>
let all = [];
try { for (let i = 0; i < 200; i++) all.push(new Uint8Array(4 << 20).fill(7)); } catch (e) {}
document.body.textContent = "got " + all.length * 4 + " of 800 MiB";
</script>"#;

#[test]
fn a_page_of_loopback_is_read_and_one_that_takes_too_much_ends_alone() {
    require!("userns");
    if !has_chromium() {
        return;
    }
    let user = User::new();
    let port = serve(PAGES);
    let rule = format!("127.0.0.1:{port}");
    let run = |flags: &[&str], page: &str| -> Said {
        let script = format!(
            "chrome=$CHROME_PATH; test -x \"$chrome\" || exit 9; \"$chrome\" --dump-dom http://{rule}{page} 2>/dev/null"
        );
        let words = [&["run", "--allow-net", &rule], flags, &["--", "sh", "-c", &script]].concat();
        user.mcp(&words)
    };
    run(&["--browser"], "/").ok().says("The answer is 4711");
    // The control: without the flag there is none.
    assert_eq!(run(&[], "/").code, 9);
    // Half of the memory is for one process; with more a page gets what it wants.
    let small = run(&["--browser", "--max-memory", "1G"], "/hog").ok();
    let got = |said: &Said| -> u64 {
        let rest = said.out.split_once("got ").unwrap_or_else(|| panic!("{}", said.err)).1;
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(got(&small) < 512, "{}", small.out);
    let large = run(&["--browser", "--max-memory", "4G"], "/hog").ok();
    assert_eq!(got(&large), 800);
}

#[test]
fn what_the_flag_gives_is_said() {
    require!("userns");
    if !has_chromium() {
        return;
    }
    let user = User::new();
    let report = user.path("report.json");
    let told = "without its own sandbox";
    user.mcp(&["run", "--explain", "--browser", "true"]).ok().says(told).says("ends");
    // Where it has no place, nothing starts: without a root of its own, and where a grant shows what is there.
    user.mcp(&["run", "--browser", "--read", "/opt", "true"]).fails(125, "cannot be put there");
    user.mcp_without("user", &["run", "--fallback", "warn", "--browser", "true"])
        .fails(125, "cannot be put there");
    for (flags, is_told) in [(&["--browser"][..], true), (&[], false)] {
        let words = [&["run", "--report", crate::user::text(&report)], flags, &["true"]].concat();
        user.mcp(&words).ok();
        let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        assert_eq!(report["browser"].as_str().is_some_and(|text| text.contains(told)), is_told);
    }
}

/// A client that waits for one answer after the other.
struct Client {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    last: u64,
}

impl Client {
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.send(&request);
        loop {
            let mut line = String::new();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "the server ended at {method}");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.last {
                return answer["result"].clone();
            }
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments})).to_string()
    }
}

/// From the registry of npm, where it can be reached.
#[test]
fn a_server_reads_a_page_of_loopback() {
    require!("userns");
    if !has_chromium() {
        return;
    }
    let user = User::new();
    let pulled = user.mcp(&["pull", "npm:@playwright/mcp"]);
    if pulled.code != 0 {
        return skip("npm", pulled.err);
    }
    let rule = format!("127.0.0.1:{}", serve(PAGES));
    let mut command =
        user.command(&["run", "--browser", "--allow-net", &rule, "npm:@playwright/mcp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let answers = BufReader::new(child.stdout.take().unwrap());
    let mut client = Client { child, answers, last: 0 };
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    client.ask("initialize", &hello);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client.call("browser_navigate", &json!({"url": format!("http://{rule}/")}));
    let page = client.call("browser_snapshot", &json!({}));
    assert!(page.contains("The answer is 4711"), "{page}");
    drop(client.child.stdin.take());
    client.child.wait().unwrap();
}
