//! One JSON-RPC message: what it is, and where its parts are.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::id::Id;
use crate::json::{self, Duplicate};

/// A message and the text it was read from.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    text: &'a [u8],
    kind: Kind,
    id_span: Option<Range<usize>>,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Wants an answer.
    Request {
        /// What the answer will carry.
        id: Id,
        /// What is asked for.
        method: String,
    },
    /// Wants none.
    Notification {
        /// What is told.
        method: String,
    },
    /// Answers a request; an error whose request could not be read has no id.
    Response {
        /// Which one.
        id: Option<Id>,
        /// The code of an error; none for a result.
        error: Option<i64>,
    },
    /// Several, as 2025-03-26 allowed: their spans.
    Batch(Vec<Range<usize>>),
}

/// Why text is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// No JSON, from this byte on.
    NotJson(usize),
    /// JSON, but no JSON-RPC 2.0 message.
    NotMessage(&'static str),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::NotJson(at) => write!(f, "not JSON from byte {at} on"),
            Malformed::NotMessage(why) => write!(f, "not a JSON-RPC message: {why}"),
        }
    }
}

impl From<Duplicate> for Malformed {
    fn from(_: Duplicate) -> Malformed {
        Malformed::NotMessage("a key is there twice")
    }
}

impl<'a> Message<'a> {
    /// Reads one message. Every part that anybody routes or judges by may be there once only.
    ///
    /// # Errors
    /// When it is no JSON or no message.
    pub fn read(text: &'a [u8]) -> Result<Message<'a>, Malformed> {
        json::check(text).map_err(|wrong| Malformed::NotJson(wrong.at))?;
        let start = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let whole = start..text.len();
        if text.get(start) == Some(&b'[') {
            let elements: Vec<_> = json::elements(text, whole).collect();
            if elements.is_empty() {
                return Err(Malformed::NotMessage("an empty batch"));
            }
            let kind = Kind::Batch(elements);
            return Ok(Message { text, kind, id_span: None, params: None, result: None });
        }
        if text.get(start) != Some(&b'{') {
            return Err(Malformed::NotMessage("not an object"));
        }
        Parts::find(text, whole)?.message(text)
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The text it was read from.
    #[must_use]
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Where its id is.
    #[must_use]
    pub fn id_span(&self) -> Option<Range<usize>> {
        self.id_span.clone()
    }

    /// Where a member of its parameters is, by the keys on the way.
    ///
    /// # Errors
    /// When a key on the way is there twice.
    pub fn param(&self, keys: &[&str]) -> Result<Option<Range<usize>>, Malformed> {
        self.walk(self.params.clone(), keys)
    }

    /// Where a member of its result is, by the keys on the way.
    ///
    /// # Errors
    /// When a key on the way is there twice.
    pub fn result(&self, keys: &[&str]) -> Result<Option<Range<usize>>, Malformed> {
        self.walk(self.result.clone(), keys)
    }

    /// A text among its parameters.
    ///
    /// # Errors
    /// When a key on the way is there twice.
    pub fn param_text(&self, keys: &[&str]) -> Result<Option<Cow<'a, str>>, Malformed> {
        Ok(self.param(keys)?.and_then(|span| json::string(self.text, span)))
    }

    /// The version that a stateless request says it is of.
    ///
    /// # Errors
    /// When a key on the way is there twice.
    pub fn stated_version(&self) -> Result<Option<Cow<'a, str>>, Malformed> {
        self.param_text(&["_meta", "io.modelcontextprotocol/protocolVersion"])
    }

    /// Where the token is by which a request wants to hear of its progress.
    ///
    /// # Errors
    /// When a key on the way is there twice.
    pub fn progress_token(&self) -> Result<Option<Range<usize>>, Malformed> {
        self.param(&["_meta", "progressToken"])
    }

    fn walk(
        &self,
        start: Option<Range<usize>>,
        keys: &[&str],
    ) -> Result<Option<Range<usize>>, Malformed> {
        let mut at = start;
        for key in keys {
            let Some(object) = at else { return Ok(None) };
            at = json::member(self.text, object, key)?;
        }
        Ok(at)
    }
}

#[derive(Default)]
struct Parts {
    version: Option<Range<usize>>,
    id: Option<Range<usize>>,
    method: Option<Range<usize>>,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
}

impl Parts {
    fn find(text: &[u8], whole: Range<usize>) -> Result<Parts, Malformed> {
        let mut parts = Parts::default();
        for (name, value) in json::members(text, whole) {
            let Some(name) = json::string(text, name) else { continue };
            let part = match &*name {
                "jsonrpc" => &mut parts.version,
                "id" => &mut parts.id,
                "method" => &mut parts.method,
                "params" => &mut parts.params,
                "result" => &mut parts.result,
                "error" => &mut parts.error,
                _ => continue,
            };
            if part.replace(value).is_some() {
                return Err(Duplicate.into());
            }
        }
        Ok(parts)
    }

    fn message(self, text: &[u8]) -> Result<Message<'_>, Malformed> {
        let version = self.version.and_then(|span| json::string(text, span));
        if version.as_deref() != Some("2.0") {
            return Err(Malformed::NotMessage("jsonrpc is not \"2.0\""));
        }
        let id = self.id.clone().and_then(|span| Id::read(text, span));
        let kind = match (self.method, &self.result, &self.error) {
            (Some(method), None, None) => {
                let method = json::string(text, method)
                    .ok_or(Malformed::NotMessage("the method is no string"))?
                    .into_owned();
                match (id, &self.id) {
                    (Some(id), _) => Kind::Request { id, method },
                    (None, None) => Kind::Notification { method },
                    (None, Some(_)) => {
                        return Err(Malformed::NotMessage("the id is no string and no number"));
                    }
                }
            }
            (None, Some(_), None) if id.is_some() => Kind::Response { id, error: None },
            (None, None, Some(error)) => {
                let code = json::member(text, error.clone(), "code")?
                    .and_then(|span| std::str::from_utf8(&text[span]).ok()?.parse().ok());
                Kind::Response { id, error: Some(code.unwrap_or(0)) }
            }
            (None, Some(_), None) => return Err(Malformed::NotMessage("a result without an id")),
            _ => return Err(Malformed::NotMessage("neither a request nor an answer")),
        };
        Ok(Message { text, kind, id_span: self.id, params: self.params, result: self.result })
    }
}
