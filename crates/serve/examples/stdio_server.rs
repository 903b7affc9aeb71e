//! An MCP server for tests, of both eras: it delays, crashes, floods and remembers on request. It answers in whatever
//! order its delays end.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

fn say(value: &Value) {
    let mut line = value.to_string();
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

fn progress(token: &Value, number: u64) {
    say(
        &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": number}}),
    );
}

fn main() {
    // Whoever calls first says who they are; anybody else in this process has crossed over.
    let owner: Arc<Mutex<Option<Value>>> = Arc::default();
    let cancelled: Arc<Mutex<Vec<Value>>> = Arc::default();
    println!("ready (this line is no message)");
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (params, id) = (message["params"].clone(), message["id"].clone());
        match message["method"].as_str() {
            Some("initialize") => {
                std::thread::sleep(Duration::from_millis(params["delay"].as_u64().unwrap_or(0)));
                say(&json!({"jsonrpc": "2.0", "id": id, "result": {
                    "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}}));
            }
            Some("notifications/cancelled") => {
                cancelled.lock().unwrap().push(params["requestId"].clone())
            }
            Some("tools/call") => {
                let (owner, cancelled) = (Arc::clone(&owner), Arc::clone(&cancelled));
                std::thread::spawn(move || call(&id, &params, &owner, &cancelled));
            }
            Some(_) if !id.is_null() => say(
                &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}),
            ),
            _ => {}
        }
    }
}

fn call(id: &Value, params: &Value, owner: &Mutex<Option<Value>>, cancelled: &Mutex<Vec<Value>>) {
    let arguments = &params["arguments"];
    let me = arguments["me"].clone();
    let first = owner.lock().unwrap().get_or_insert_with(|| me.clone()).clone();
    std::thread::sleep(Duration::from_millis(arguments["delay"].as_u64().unwrap_or(0)));
    match params["name"].as_str() {
        Some("complain") => eprintln!("red \u{1b}[31m\u{202e}text"),
        Some("crash") => std::process::exit(3),
        // Answers to requests that no client sent, before its own.
        Some("guess") => {
            for other in 0..arguments["guesses"].as_u64().unwrap_or(100) {
                let number = id.as_u64().unwrap_or(0) + 1 + other;
                say(&json!({"jsonrpc": "2.0", "id": number, "result": {"guessed": true}}));
                say(
                    &json!({"jsonrpc": "2.0", "id": number.to_string(), "result": {"guessed": true}}),
                );
            }
        }
        Some("flood") => {
            let text = "x".repeat(64 << 10);
            for number in 0..arguments["count"].as_u64().unwrap_or(1_000) {
                say(
                    &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"number": number, "data": text}}),
                );
            }
        }
        Some("large") => {
            let text = "x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap());
            return say(&json!({"result": {"text": text}, "jsonrpc": "2.0", "id": id}));
        }
        Some("steps") => {
            for number in 0..arguments["steps"].as_u64().unwrap_or(3) {
                progress(&params["_meta"]["progressToken"], number);
                std::thread::sleep(Duration::from_millis(arguments["pause"].as_u64().unwrap_or(0)));
            }
        }
        _ => {}
    }
    let cancelled = cancelled.lock().unwrap().len();
    say(&json!({"jsonrpc": "2.0", "id": id, "result": {
        "me": me, "owner": first, "call": arguments["call"], "cancelled": cancelled, "pid": std::process::id(),
        "arguments": std::env::args().skip(1).collect::<Vec<_>>()}}));
}
