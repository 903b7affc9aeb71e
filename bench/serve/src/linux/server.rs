//! An MCP server over pipes that does next to nothing, so that what is measured is what is in front of it.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

use super::Result;

/// With `{"size": N}` an answer has N bytes more.
pub fn run() -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let params = &message["params"];
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }),
            Some("tools/call") => {
                let size = params["arguments"]["size"].as_u64().unwrap_or(0);
                let text = "x".repeat(usize::try_from(size)?);
                json!({"content": [{"type": "text", "text": text}]})
            }
            _ => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        answer.push('\n');
        out.write_all(answer.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}
