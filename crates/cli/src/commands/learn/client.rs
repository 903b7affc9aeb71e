//! `--client`: between a client and the server for one session. Every byte passes as it is; only the names of calls are noted, so that
//! each proposal can say what asked first.

use std::io::{Read, Write};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_protocol::{Frame, Framer, MAX_MESSAGE};
use serde_json::Value;

use super::drive::Phases;

/// Until the server has ended or closed its output.
pub fn pass_through(child: &mut Child) -> Phases {
    let phases = Arc::new(Mutex::new(Phases::default()));
    let begin = |name: &str| {
        phases.lock().unwrap_or_else(PoisonError::into_inner).begin(name);
    };
    begin("start");
    if let Some(mut input) = child.stdin.take() {
        let phases = phases.clone();
        // Ends with the client's input; where the server ends first, with this process.
        std::thread::spawn(move || {
            let mut framer = Framer::new(MAX_MESSAGE);
            let mut bytes = vec![0; 64 << 10];
            let mut client = std::io::stdin();
            while let Ok(read @ 1..) = client.read(&mut bytes) {
                framer.feed(&bytes[..read], |frame| {
                    if let Frame::Line(line) = frame
                        && let Some(name) = name(line)
                    {
                        phases.lock().unwrap_or_else(PoisonError::into_inner).begin(&name);
                    }
                });
                if input.write_all(&bytes[..read]).and_then(|()| input.flush()).is_err() {
                    return;
                }
            }
        });
    }
    if let Some(mut output) = child.stdout.take() {
        let mut bytes = vec![0; 64 << 10];
        let mut client = std::io::stdout();
        while let Ok(read @ 1..) = output.read(&mut bytes) {
            if client.write_all(&bytes[..read]).and_then(|()| client.flush()).is_err() {
                break;
            }
        }
    }
    let phases = phases.lock().unwrap_or_else(PoisonError::into_inner);
    phases.clone()
}

/// The tool of a call, else the method.
fn name(line: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(line).ok()?;
    let method = message.get("method")?.as_str()?;
    let tool = message.pointer("/params/name").and_then(Value::as_str);
    Some(tool.filter(|_| method == "tools/call").unwrap_or(method).chars().take(80).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_by_their_tool() {
        let named = |text: &str| name(text.as_bytes());
        assert_eq!(named(r#"{"method":"tools/list"}"#).as_deref(), Some("tools/list"));
        assert_eq!(
            named(r#"{"method":"tools/call","params":{"name":"read"}}"#).as_deref(),
            Some("read")
        );
        assert_eq!(named(r#"{"id":1,"result":{}}"#), None);
        assert_eq!(named("no json"), None);
    }
}
