//! A client of Streamable HTTP on one connection, as quick as it can be.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::Result;

pub struct Session {
    stream: BufReader<TcpStream>,
    host: String,
    path: &'static str,
    id: Option<String>,
}

impl Session {
    pub fn begin(address: &str, path: &'static str) -> Result<Session> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let (stream, host) = (BufReader::new(stream), address.to_owned());
        let mut session = Session { stream, host, path, id: None };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        let begun = session
            .post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))?;
        if begun["result"]["protocolVersion"].is_null() {
            return Err(format!("no session: {begun}").into());
        }
        session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(session)
    }

    pub fn call(&mut self, number: usize) -> Result<()> {
        let params = json!({"name": "echo", "arguments": {"number": number}});
        let id = number + 1;
        let answer = self
            .post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))?;
        if answer["id"] != id || answer["result"]["content"].is_null() {
            return Err(format!("not the answer to {id}: {answer}").into());
        }
        Ok(())
    }

    /// The last message of the response.
    fn post(&mut self, message: &Value) -> Result<Value> {
        let body = message.to_string();
        let id = self.id.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {id}MCP-Protocol-Version: 2025-06-18\r\nContent-Length: {}\r\n\r\n{body}",
            self.path,
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (status, length, is_events) = self.head()?;
        if !(200..300).contains(&status) {
            return Err(format!("status {status}").into());
        }
        let text = match length {
            Length::Known(0) => return Ok(Value::Null),
            Length::Known(length) => {
                let mut bytes = vec![0; length];
                self.stream.read_exact(&mut bytes)?;
                String::from_utf8(bytes)?
            }
            Length::Chunked => self.chunks()?,
        };
        if !is_events {
            return Ok(if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? });
        }
        let data = text.lines().rev().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = data.map(str::trim).filter(|data| data.starts_with('{'));
        Ok(serde_json::from_str(messages.next().ok_or("no message")?)?)
    }

    fn head(&mut self) -> Result<(u16, Length, bool)> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).ok_or("no status")?.parse()?;
        let (mut length, mut is_events) = (Length::Known(0), false);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                return Ok((status, length, is_events));
            };
            let value = value.trim();
            match &*name.to_ascii_lowercase() {
                "content-length" => length = Length::Known(value.parse()?),
                "transfer-encoding" => length = Length::Chunked,
                "content-type" => is_events = value.starts_with("text/event-stream"),
                "mcp-session-id" => self.id = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    fn chunks(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16)?;
            let start = bytes.len();
            bytes.resize(start + size, 0);
            self.stream.read_exact(&mut bytes[start..])?;
            self.stream.read_line(&mut line)?;
            if size == 0 {
                return Ok(String::from_utf8(bytes)?);
            }
        }
    }
}

enum Length {
    Known(usize),
    Chunked,
}
