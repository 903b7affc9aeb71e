//! A gateway process, and an HTTP client that does only what it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

pub struct Gateway {
    child: Child,
    pub address: SocketAddr,
    pub directory: PathBuf,
    pub tokens: Vec<String>,
}

fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    built.with_extension(std::env::consts::EXE_EXTENSION)
}

impl Gateway {
    /// With a token for each principal, and more lines of configuration.
    pub fn start(name: &str, principals: &[&str], more: &str) -> Gateway {
        Self::prepare(name, principals, more).run()
    }

    /// With a configuration that is changed before the start.
    pub fn start_with(name: &str, principals: &[&str], change: impl Fn(&str) -> String) -> Gateway {
        let gateway = Self::prepare(name, principals, "");
        let file = gateway.directory.join("servers.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, change(&text)).unwrap();
        gateway.run()
    }

    fn prepare(name: &str, principals: &[&str], more: &str) -> Gateway {
        let directory =
            std::env::temp_dir().join(format!("mcp-serve-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let mut lines = String::new();
        let mut tokens = Vec::new();
        for principal in principals {
            let (token, line) = mcp_serve::token_line(principal, "*").unwrap();
            tokens.push(token);
            lines.push_str(&(line + "\n"));
        }
        std::fs::write(directory.join("tokens"), lines).unwrap();
        let gateway = Gateway {
            child: Self::spawn_nothing(),
            address: ([127, 0, 0, 1], 0).into(),
            directory,
            tokens,
        };
        gateway.configure(more);
        gateway
    }

    fn spawn_nothing() -> Child {
        Command::new("true").spawn().unwrap()
    }

    pub fn configure(&self, more: &str) {
        let auth = if self.tokens.is_empty() { "" } else { "[auth]\ntokens = \"tokens\"\n" };
        let text =
            format!("listen = \"127.0.0.1:0\"\n{auth}{more}\n[servers.one]\nrun = [\"x\"]\n");
        std::fs::write(self.directory.join("servers.toml"), text).unwrap();
    }

    fn run(mut self) -> Gateway {
        let _ = self.child.wait();
        self.child = Command::new(example("gateway"))
            .arg(example("stdio_server"))
            .arg(self.directory.join("servers.toml"))
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(self.directory.join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(self.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse::<SocketAddr>().unwrap().port();
        self.address = ([127, 0, 0, 1], port).into();
        self
    }

    /// A figure of `/metrics`, by the beginning of its line.
    pub fn metric(&self, name: &str) -> Option<u64> {
        let mut client = self.client(0);
        client.path = "/metrics";
        let text = client.send("GET", "").body;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    pub fn ended(&mut self) -> bool {
        for _ in 0..200 {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    pub fn client(&self, principal: usize) -> Client {
        Client {
            address: self.address,
            token: self.tokens.get(principal).cloned(),
            session: None,
            path: "/mcp/one",
            headers: Vec::new(),
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    pub token: Option<String>,
    pub session: Option<String>,
    pub path: &'static str,
    pub headers: Vec<(String, String)>,
}

pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The messages of a JSON or event-stream body, with the ids of their events.
    pub fn messages(&self) -> Vec<(Option<String>, Value)> {
        if self.header("content-type") == Some("application/json") {
            return vec![(None, serde_json::from_str(&self.body).unwrap())];
        }
        let events = self.body.split("\n\n").filter_map(|event| {
            let field = |name: &str| {
                event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
            };
            let message = serde_json::from_str(&field("data: ")?).ok()?;
            Some((field("id: "), message))
        });
        events.collect()
    }

    pub fn last(&self) -> Value {
        self.messages()
            .pop()
            .unwrap_or_else(|| panic!("no message in {}: {}", self.status, self.body))
            .1
    }
}

impl Client {
    pub fn with(mut self, name: &str, value: &str) -> Client {
        self.headers.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends, and leaves the reading to the caller.
    pub fn open(&self, method: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.path,
            body.len()
        );
        let standard = [
            ("Host", Some("localhost".to_owned())),
            ("Content-Type", Some("application/json".to_owned())),
            ("Accept", Some("application/json, text/event-stream".to_owned())),
            ("Authorization", self.token.as_ref().map(|token| format!("Bearer {token}"))),
            ("Mcp-Session-Id", self.session.clone()),
        ];
        for (name, value) in standard {
            if let Some(value) = value
                && !self.headers.iter().any(|(found, _)| found.eq_ignore_ascii_case(name))
            {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        stream
    }

    pub fn send(&self, method: &str, body: &str) -> Answer {
        read(self.open(method, body))
    }

    pub fn post(&self, message: &Value) -> Answer {
        self.send("POST", &message.to_string())
    }

    /// Begins a session of this revision.
    pub fn initialize(mut self, version: &str) -> Client {
        let answer = self.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
        assert_eq!(answer.status, 200, "{}", answer.body);
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        assert!(self.session.is_some());
        self
    }

    /// A call without a session, with the headers it needs.
    pub fn stateless(&self, tool: &str, id: &Value, arguments: &Value) -> (Client, String) {
        let client = self
            .clone()
            .with("Mcp-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", tool);
        let meta =
            json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": "p"});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}});
        (client, body.to_string())
    }
}

pub fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}})
}

pub fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

pub fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut answer = Answer { status, headers: head.to_owned(), body: String::new() };
    answer.body = if answer.header("transfer-encoding") == Some("chunked") {
        unchunked(rest)
    } else {
        rest.to_owned()
    };
    answer
}

fn unchunked(mut rest: &str) -> String {
    let mut out = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        out.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap_or("");
    }
    out
}

pub fn eventually(done: impl Fn() -> bool) -> bool {
    for _ in 0..400 {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}
