//! Speaks to a server as a client does, in both eras: `initialize`, or `server/discover` with the version in every request.
//!
//! Bounded: every answer has a deadline, and the server's output a size. What the server asks of a client is refused.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_protocol::{Frame, Framer, MAX_MESSAGE, STATELESS};
use serde_json::{Value, json};

use super::calls::Call;

/// The last revision with `initialize`.
const WITH_INITIALIZE: &str = "2025-11-25";
const MOST_PAGES: usize = 20;
/// Lines that wait to be read; a server that writes more waits.
const MOST_WAITING: usize = 256;
const META: &str = "io.modelcontextprotocol";

/// How an answer came out. The order is from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// None came before the deadline, or the server ended.
    Unanswered,
    /// An error of the protocol.
    Refused,
    /// A tool that says that it failed.
    Failed,
    Answered,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// To begin: `initialize` or `server/discover`.
    Greeting,
    /// For its tools.
    List,
    /// What a person named: a call, or the command itself.
    Named,
    /// A tool with arguments that were made up (`--explore`).
    Explored,
}

/// What came of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub asked: Asked,
    /// `read_file`, `tools/list`.
    pub name: String,
    pub status: Status,
    pub text: String,
}

impl Answer {
    /// What callers depend on: of a list the names of the tools, of a greeting nothing but that it came.
    pub fn substance(&self) -> String {
        match self.asked {
            Asked::Greeting => String::new(),
            Asked::List => names(&self.text),
            Asked::Named | Asked::Explored => self.text.clone(),
        }
    }
}

fn names(list: &str) -> String {
    let list: Value = serde_json::from_str(list).unwrap_or_default();
    let tools = list.get("tools").and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<String> = tools.map(|tool| tool["name"].to_string()).collect();
    names.sort();
    names.join(",")
}

pub fn statuses(answers: &[Answer]) -> Vec<Status> {
    answers.iter().map(|answer| answer.status).collect()
}

/// Whether each call came out as well as before.
pub fn are_as_good(answers: &[Answer], before: &[Answer]) -> bool {
    let (now, before) = (statuses(answers), statuses(before));
    now.len() >= before.len() && now.iter().zip(&before).all(|(now, before)| now >= before)
}

/// When what was begun, in seconds since 1970.
#[derive(Debug, Clone, Default)]
pub struct Phases(Vec<(f64, String)>);

impl Phases {
    pub fn begin(&mut self, name: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        self.0.push((now, name.to_owned()));
    }

    /// What was under way at a time.
    pub fn at(&self, time: f64) -> &str {
        let begun = self.0.iter().rev().find(|(since, _)| *since <= time);
        begun.or(self.0.first()).map_or("start", |(_, name)| name)
    }
}

/// One session with a server.
pub struct Driver {
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    next: u64,
    era: Era,
    /// Whether it says that it has tools.
    has_tools: bool,
    patience: Duration,
    pub phases: Phases,
    pub answers: Vec<Answer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    WithInitialize,
    Stateless,
}

impl Driver {
    pub fn new(input: ChildStdin, output: ChildStdout, patience: Duration) -> Driver {
        let mut phases = Phases::default();
        phases.begin("start");
        let (lines, era) = (reader(output), Era::WithInitialize);
        Driver {
            input: Some(input),
            lines,
            next: 1,
            era,
            has_tools: false,
            patience,
            phases,
            answers: Vec::new(),
        }
    }

    /// All of it; false where the command did not speak MCP.
    pub fn session(&mut self, calls: &[Call], explore: Option<usize>) -> bool {
        if !self.greet() {
            return false;
        }
        let tools = self.tools();
        for call in calls {
            self.call(Asked::Named, &call.tool, call.arguments.clone());
        }
        for tool in tools.iter().take(explore.unwrap_or(0)) {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            if calls.iter().any(|call| call.tool == name) {
                continue;
            }
            if let mcp_learn::Explored::With(arguments) = mcp_learn::arguments(tool) {
                self.call(Asked::Explored, name, arguments);
            }
        }
        true
    }

    /// The end of its input tells a server to end.
    pub fn close(&mut self) {
        self.input = None;
    }

    fn greet(&mut self) -> bool {
        let params = json!({
            "protocolVersion": WITH_INITIALIZE,
            "capabilities": {},
            "clientInfo": { "name": "mcp-learn", "version": env!("CARGO_PKG_VERSION") },
        });
        let answer = self.request(Asked::Greeting, "initialize", "initialize", params);
        match answer.status {
            Status::Answered => {
                self.has_tools = has_tools(&answer);
                self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
                true
            }
            // One of the later era knows no such method.
            Status::Refused => {
                self.era = Era::Stateless;
                let discover = "server/discover";
                let answer = self.request(Asked::Greeting, discover, discover, json!({}));
                self.has_tools = has_tools(&answer);
                let is_answered = answer.status == Status::Answered;
                if is_answered {
                    // It was the question, not the server, that was wrong.
                    self.answers.remove(0);
                }
                is_answered
            }
            Status::Unanswered | Status::Failed => false,
        }
    }

    fn tools(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params =
                cursor.take().map_or_else(|| json!({}), |at: Value| json!({ "cursor": at }));
            let Answer { status, text, .. } =
                self.request(Asked::List, "tools/list", "tools/list", params);
            if status == Status::Refused && !self.has_tools {
                // It has only prompts or resources.
                self.answers.pop();
            }
            if status != Status::Answered {
                break;
            }
            let page: Value = serde_json::from_str(&text).unwrap_or_default();
            tools.extend(page.get("tools").and_then(Value::as_array).cloned().unwrap_or_default());
            match page.get("nextCursor") {
                Some(next) if !next.is_null() => cursor = Some(next.clone()),
                _ => break,
            }
        }
        tools
    }

    fn call(&mut self, asked: Asked, tool: &str, arguments: Value) {
        self.request(asked, tool, "tools/call", json!({ "name": tool, "arguments": arguments }));
    }

    fn request(&mut self, asked: Asked, name: &str, method: &str, mut params: Value) -> Answer {
        // A server still starts while it is greeted.
        if asked != Asked::Greeting {
            self.phases.begin(name);
        }
        let id = self.next;
        self.next += 1;
        if self.era == Era::Stateless
            && let Some(params) = params.as_object_mut()
        {
            let meta = json!({
                format!("{META}/protocolVersion"): STATELESS,
                format!("{META}/clientInfo"): { "name": "mcp-learn", "version": env!("CARGO_PKG_VERSION") },
                format!("{META}/clientCapabilities"): {},
            });
            params.insert("_meta".to_owned(), meta);
        }
        let sent = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let answer = match self.send(&sent) {
            true => self.answer(id),
            false => None,
        };
        let (status, text) = answer.unwrap_or((Status::Unanswered, String::new()));
        let answer = Answer { asked, name: name.to_owned(), status, text };
        self.answers.push(answer.clone());
        answer
    }

    fn send(&mut self, message: &Value) -> bool {
        let line = format!("{message}\n");
        let sent = self
            .input
            .as_mut()
            .map(|input| input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_ok());
        sent.unwrap_or(false)
    }

    /// The answer with this id, before the deadline.
    fn answer(&mut self, id: u64) -> Option<(Status, String)> {
        let until = Instant::now() + self.patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            };
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
            if message.get("method").is_some() {
                self.refuse(&message);
                continue;
            }
            if message.get("id") != Some(&json!(id)) {
                continue;
            }
            if let Some(error) = message.get("error") {
                return Some((Status::Refused, error.to_string()));
            }
            let result = message.get("result").cloned().unwrap_or_default();
            let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
            let status = if failed { Status::Failed } else { Status::Answered };
            return Some((status, result.to_string()));
        }
    }

    /// What a server asks of its client: whether it is there, and nothing else.
    fn refuse(&mut self, message: &Value) {
        let Some(id) = message.get("id") else { return };
        let answer = match message.get("method").and_then(Value::as_str) {
            Some("ping") => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
            _ => json!({
                "jsonrpc": "2.0", "id": id,
                "error": { "code": -32601, "message": "mcp learn answers no requests" },
            }),
        };
        self.send(&answer);
    }
}

fn has_tools(greeting: &Answer) -> bool {
    let result: Value = serde_json::from_str(&greeting.text).unwrap_or_default();
    result.pointer("/capabilities/tools").is_some()
}

/// The lines of the server, read by a thread so that a deadline can be kept.
fn reader(mut output: ChildStdout) -> Receiver<Vec<u8>> {
    let (send, receive) = sync_channel(MOST_WAITING);
    std::thread::spawn(move || {
        let mut framer = Framer::new(MAX_MESSAGE);
        let mut bytes = vec![0; 64 << 10];
        let mut is_wanted = true;
        while is_wanted {
            let read = match output.read(&mut bytes) {
                Ok(read) if read > 0 => read,
                _ => break,
            };
            framer.feed(&bytes[..read], |frame| {
                if let Frame::Line(line) = frame {
                    is_wanted &= send.send(line.to_vec()).is_ok();
                }
            });
        }
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_depend_on_the_names_of_tools_and_on_what_these_answer() {
        let answer = |asked, text: &str| {
            let (name, text) = (String::new(), text.to_owned());
            Answer { asked, name, status: Status::Answered, text }.substance()
        };
        let list = |text: &str| answer(Asked::List, text);
        let (one, two) = (r#"{"name":"a","description":"in UTC"}"#, r#"{"name":"b"}"#);
        let both = list(&format!(r#"{{"tools":[{one},{two}]}}"#));
        assert_eq!(
            both,
            list(r#"{"tools":[{"name":"b"},{"name":"a","description":"in Etc/UTC"}]}"#)
        );
        assert_ne!(both, list(&format!(r#"{{"tools":[{one}]}}"#)));
        assert_eq!(answer(Asked::Greeting, "one"), answer(Asked::Greeting, "two"));
        for asked in [Asked::Named, Asked::Explored] {
            assert_ne!(answer(asked, "one"), answer(asked, "two"));
        }
    }

    #[test]
    fn a_time_belongs_to_the_phase_that_had_begun() {
        let phases =
            Phases(vec![(1.0, "start".into()), (2.0, "initialize".into()), (5.0, "read".into())]);
        for (time, name) in [
            (0.5, "start"),
            (1.5, "start"),
            (2.0, "initialize"),
            (4.9, "initialize"),
            (9.0, "read"),
        ] {
            assert_eq!(phases.at(time), name, "{time}");
        }
        assert_eq!(Phases::default().at(1.0), "start");
    }
}
