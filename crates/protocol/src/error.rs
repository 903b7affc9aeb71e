//! Error answers of our own, with the codes of JSON-RPC and MCP.

use crate::id::Id;
use crate::json;

/// The text is no JSON.
pub const PARSE: i64 = -32700;
/// JSON, but no message that may be sent now.
pub const INVALID_REQUEST: i64 = -32600;
/// The server does not know the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The server did not answer.
pub const INTERNAL: i64 = -32603;
/// Headers of HTTP say something else than the message (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The client lacks what the server would ask of it (2026-07-28).
pub const MISSING_CAPABILITY: i64 = -32021;
/// The revision is none that is spoken here (2026-07-28).
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// An error answer, without a line end.
///
/// ```
/// assert_eq!(
///     mcp_protocol::error::answer(None, -32700, "not JSON"),
///     r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}"#
/// );
/// ```
#[must_use]
pub fn answer(id: Option<&Id>, code: i64, message: &str) -> String {
    answer_with(id, code, message, None)
}

/// An error answer with data, which is JSON.
pub fn answer_with(id: Option<&Id>, code: i64, message: &str, data: Option<&str>) -> String {
    let id = id.map_or_else(|| "null".to_owned(), Id::to_json);
    let message = json::quoted(message);
    let data = data.map_or_else(String::new, |data| format!(",\"data\":{data}"));
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}{data}}}}}"
    )
}
