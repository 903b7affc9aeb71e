//! Who asked what: brings the answers of one server process back to whoever waits for them.
//!
//! Stops: an answer that reaches anybody but the one who asked, an id used twice at once, more open requests than the bound.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use crate::id::Id;
use crate::message::{Kind, Malformed, Message};
use crate::{edit, error};

const SUBSCRIPTION: [&str; 2] = ["_meta", "io.modelcontextprotocol/subscriptionId"];

const PROGRESS: &str = "notifications/progress";

/// What becomes of the ids of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ids {
    /// They pass as they are: one client alone uses the server.
    Kept,
    /// They are replaced, and put back in the answer: several clients use the server, and may choose the same.
    Assigned,
}

/// The open requests of one server. `T` says who waits.
#[derive(Debug)]
pub struct Exchange<T> {
    ids: Ids,
    most: usize,
    next: u64,
    open: HashMap<Id, Open<T>>,
    /// Progress tokens, as the server knows them.
    tokens: HashMap<Id, Id>,
}

#[derive(Debug)]
struct Open<T> {
    waiting: T,
    /// As its sender spelled them.
    id: Vec<u8>,
    token: Option<(Id, Vec<u8>)>,
    opened: u64,
}

/// Why a request is not passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The same id is open already.
    Duplicate(Id),
    /// As many requests are open as may be.
    TooMany,
    /// It cannot be read in one way only.
    Malformed(Malformed),
}

/// Where a message of the server's goes.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery<'a, T> {
    /// The answer, after which no client waits any more; an error has its code.
    Answer(T, Cow<'a, [u8]>, Option<i64>),
    /// Something that belongs to an open request.
    Related(T, Cow<'a, [u8]>),
    /// A request or notification that names no request of ours.
    Loose(Cow<'a, [u8]>),
    /// Of a request that no client waits for, or no more: dropped.
    Dropped,
}

/// A request that was given up before its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abandoned {
    /// The notification that cancels it.
    pub to_server: Vec<u8>,
    /// The error, for a client that still listens.
    pub to_client: Vec<u8>,
}

impl<T: Clone + PartialEq> Exchange<T> {
    /// At most `most` requests are open at once.
    #[must_use]
    pub fn new(ids: Ids, most: usize) -> Exchange<T> {
        Exchange { ids, most, next: 1, open: HashMap::new(), tokens: HashMap::new() }
    }

    /// How many requests are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no client waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Notes that `waiting` wants the answer; what to send to the server.
    ///
    /// # Errors
    /// When it must not be sent.
    pub fn request<'a>(
        &mut self,
        message: &Message<'a>,
        waiting: T,
    ) -> Result<Cow<'a, [u8]>, Refusal> {
        let Kind::Request { id, .. } = message.kind() else {
            return Err(Refusal::Malformed(Malformed::NotMessage("no request")));
        };
        if self.open.len() >= self.most {
            return Err(Refusal::TooMany);
        }
        let token = message.progress_token().map_err(Refusal::Malformed)?;
        let text = message.text();
        let id_span = message.id_span().unwrap_or(0..0);
        let number = self.next;
        let (key, token_key, sent) = match self.ids {
            Ids::Kept => {
                let key = token.clone().and_then(|span| Id::read(text, span));
                (id.clone(), key, one_line(Cow::Borrowed(text)))
            }
            Ids::Assigned => {
                let spans = [Some(id_span.clone()), token.clone()];
                let new = number.to_string().into_bytes();
                let edits = spans.into_iter().flatten().map(|span| (span, new.clone())).collect();
                let key = Id::number(number);
                let token_key = token.is_some().then(|| key.clone());
                (key, token_key, one_line(Cow::Owned(edit::replace(text, edits))))
            }
        };
        if self.open.contains_key(&key) {
            return Err(Refusal::Duplicate(id.clone()));
        }
        self.next += 1;
        let spelled = |span: Range<usize>| text[span].to_vec();
        let token = token_key.zip(token.map(spelled));
        if let Some((token, _)) = &token {
            self.tokens.insert(token.clone(), key.clone());
        }
        let open = Open { waiting, id: spelled(id_span), token, opened: number };
        self.open.insert(key, open);
        Ok(sent)
    }

    /// A notification or an answer of the client's: what to send, and who waits no more because of it.
    pub fn pass<'a>(&mut self, message: &Message<'a>) -> (Cow<'a, [u8]>, Option<T>) {
        let is_cancelled = matches!(message.kind(), Kind::Notification { method } if method == "notifications/cancelled");
        let cancelled = if is_cancelled && self.ids == Ids::Kept {
            let span = message.param(&["requestId"]).ok().flatten();
            let id = span.and_then(|span| Id::read(message.text(), span));
            id.and_then(|id| self.close(&id)).map(|open| open.waiting)
        } else {
            None
        };
        (one_line(Cow::Borrowed(message.text())), cancelled)
    }

    /// `waiting` has gone or waited too long: forgets its requests.
    pub fn abandon(&mut self, waiting: &T, why: &str) -> Vec<Abandoned> {
        let gone = self.open.iter().filter(|(_, open)| open.waiting == *waiting);
        let ids: Vec<Id> = gone.map(|(id, _)| id.clone()).collect();
        let abandon = |id: Id| {
            let (_, to_client) = self.fail_one(&id, why)?;
            Some(Abandoned { to_server: cancelled(&id), to_client })
        };
        ids.into_iter().filter_map(abandon).collect()
    }

    /// The server has ended: everybody who waited, with the error that each gets.
    pub fn fail(&mut self, why: &str) -> Vec<(T, Vec<u8>)> {
        self.tokens.clear();
        let answer = |open: Open<T>| {
            let id = Id::read(&open.id, 0..open.id.len());
            (open.waiting, error::answer(id.as_ref(), error::INTERNAL, why).into_bytes())
        };
        self.open.drain().map(|(_, open)| answer(open)).collect()
    }

    /// One request is over without an answer of the server's: who waited, with the error it gets.
    pub fn fail_one(&mut self, id: &Id, why: &str) -> Option<(T, Vec<u8>)> {
        let open = self.close(id)?;
        let id = Id::read(&open.id, 0..open.id.len());
        Some((open.waiting, error::answer(id.as_ref(), error::INTERNAL, why).into_bytes()))
    }

    /// Whoever asked last and still waits.
    #[must_use]
    pub fn latest(&self) -> Option<&T> {
        self.open.values().max_by_key(|open| open.opened).map(|open| &open.waiting)
    }

    /// Where a message of the server's goes. A batch is to be taken apart before.
    pub fn deliver<'a>(&mut self, message: &Message<'a>) -> Delivery<'a, T> {
        let text = message.text();
        match message.kind() {
            Kind::Response { id, error } => {
                let Some(open) = id.as_ref().and_then(|id| self.close(id)) else {
                    return Delivery::Dropped;
                };
                let text = match (self.ids, message.id_span()) {
                    (Ids::Assigned, Some(span)) => {
                        Cow::Owned(edit::replace(text, vec![(span, open.id)]))
                    }
                    _ => Cow::Borrowed(text),
                };
                Delivery::Answer(open.waiting, text, *error)
            }
            // What names a request that is over must not reach another one.
            _ if names_a_request(message) => self.related(message).unwrap_or(Delivery::Dropped),
            _ => Delivery::Loose(Cow::Borrowed(text)),
        }
    }

    fn related<'a>(&self, message: &Message<'a>) -> Option<Delivery<'a, T>> {
        let text = message.text();
        let Kind::Notification { method } = message.kind() else { return None };
        let (span, open) = if method == PROGRESS {
            let span = message.param(&["progressToken"]).ok()??;
            let key = self.tokens.get(&Id::read(text, span.clone())?)?;
            (span, self.open.get(key)?)
        } else {
            let span = message.param(&SUBSCRIPTION).ok()??;
            let open = self.open.get(&Id::read(text, span.clone())?)?;
            (span, open)
        };
        let original = match (&open.token, method == PROGRESS) {
            (Some((_, token)), true) => token,
            _ => &open.id,
        };
        let text = match self.ids {
            Ids::Kept => Cow::Borrowed(text),
            Ids::Assigned => Cow::Owned(edit::replace(text, vec![(span, original.clone())])),
        };
        Some(Delivery::Related(open.waiting.clone(), text))
    }

    fn close(&mut self, id: &Id) -> Option<Open<T>> {
        let open = self.open.remove(id)?;
        if let Some((token, _)) = &open.token
            && self.tokens.get(token) == Some(id)
        {
            self.tokens.remove(token);
        }
        Some(open)
    }
}

fn names_a_request(message: &Message<'_>) -> bool {
    let Kind::Notification { method } = message.kind() else { return false };
    method == PROGRESS || !matches!(message.param(&SUBSCRIPTION), Ok(None))
}

fn cancelled(id: &Id) -> Vec<u8> {
    let id = id.to_json();
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id},\"reason\":\"the client has gone\"}}}}"
    )
    .into_bytes()
}

/// A body of HTTP may have line ends between its tokens; on a line of its own each becomes a space.
fn one_line(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let mut text = text.into_owned();
    text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    Cow::Owned(text)
}
