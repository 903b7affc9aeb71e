//! The messages that belong to one HTTP response, in order, with a bound. A response that breaks off can be taken up
//! again where the revision has that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use mcp_protocol::{Kind, Message, error};
use tokio::sync::Notify;

use crate::memory::{Budget, Held};
use crate::trace::Span;

/// Notifications of one response that no reader has fetched yet. Beyond it the oldest go, answers never.
const MOST_WAITING: usize = 4 << 20;

/// Whether what was sent is kept, for a client that lost its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Sent,
    Nothing,
}

#[derive(Debug)]
pub struct Stream {
    /// Its number within a session.
    pub number: u64,
    pub started: Instant,
    /// A subscription or a session's own stream has no end of its own.
    pub endless: bool,
    keep: Keep,
    budget: Arc<Budget>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    first: u64,
    bytes: usize,
    due: usize,
    closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Counted against the budget until the last copy is gone.
    pub text: Bytes,
    pub is_answer: bool,
    /// The code of an error answer.
    pub error: Option<i64>,
}

struct Counted {
    text: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// Whoever waits for an answer. Two names of one stream are one waiter.
#[derive(Debug, Clone)]
pub struct Waiter {
    pub stream: Arc<Stream>,
    span: Option<Arc<Span>>,
}

impl Waiter {
    pub fn new(stream: &Arc<Stream>, span: Option<Span>) -> Waiter {
        Waiter { stream: Arc::clone(stream), span: span.map(Arc::new) }
    }

    /// The answer is there; an error has its code.
    pub fn answer(&self, text: &[u8], error: Option<i64>) {
        self.stream.push(text, true, error);
        self.span.iter().for_each(|span| span.end(error));
    }
}

impl PartialEq for Waiter {
    fn eq(&self, other: &Waiter) -> bool {
        Arc::ptr_eq(&self.stream, &other.stream)
    }
}

impl Stream {
    /// A response in which `due` answers are to come.
    pub fn new(
        number: u64,
        due: usize,
        keep: Keep,
        endless: bool,
        budget: &Arc<Budget>,
    ) -> Arc<Stream> {
        let state = Mutex::new(State { due, ..State::default() });
        Arc::new(Stream {
            number,
            started: Instant::now(),
            endless,
            keep,
            budget: Arc::clone(budget),
            state,
            changed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was taken. An answer always is, if need be as an error.
    pub fn push(&self, text: &[u8], is_answer: bool, error: Option<i64>) -> bool {
        let event = match Held::take(&self.budget, text.len()) {
            Some(held) => {
                let counted = Counted { text: text.to_vec(), _held: held };
                Event { text: Bytes::from_owner(counted), is_answer, error }
            }
            None if is_answer => self.no_room(text),
            None => return false,
        };
        let mut state = self.state();
        let length = event.text.len();
        state.bytes += length;
        state.events.push_back(event);
        if is_answer {
            state.due = state.due.saturating_sub(1);
            state.closed |= state.due == 0;
        }
        while state.bytes > MOST_WAITING && state.events.front().is_some_and(|it| !it.is_answer) {
            if let Some(gone) = state.events.pop_front() {
                state.bytes -= gone.text.len();
                state.first += 1;
            }
        }
        // Behind the first answer of a batch nothing can go, so nothing more is taken.
        let refused = state.bytes > MOST_WAITING && !is_answer && state.events.pop_back().is_some();
        if refused {
            state.bytes -= length;
        }
        drop(state);
        self.changed.notify_waiters();
        !refused
    }

    /// What is told instead of an answer that there is no room for.
    fn no_room(&self, text: &[u8]) -> Event {
        let id = match Message::read(text).as_ref().map(Message::kind) {
            Ok(Kind::Response { id, .. }) => id.clone(),
            _ => None,
        };
        let why = "the gateway holds as many bytes of messages as it may (limits: memory)";
        let text = error::answer(id.as_ref(), error::INTERNAL, why).into_bytes();
        let held = Held::take_anyway(&self.budget, text.len());
        let text = Bytes::from_owner(Counted { text, _held: held });
        Event { text, is_answer: true, error: Some(error::INTERNAL) }
    }

    /// The bytes that are held now.
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_waiters();
    }

    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// The event after `number`, which stays; none at the end.
    pub async fn peek(&self, number: u64) -> Option<Event> {
        self.next(number, Keep::Sent).await.map(|(_, event)| event)
    }

    /// The event after `number`, with its own number; none at the end.
    pub async fn after(&self, number: u64) -> Option<(u64, Event)> {
        self.next(number, self.keep).await
    }

    async fn next(&self, number: u64, keep: Keep) -> Option<(u64, Event)> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state();
                let wanted = number.max(state.first);
                let index = usize::try_from(wanted - state.first).ok()?;
                if let Some(event) = state.events.get(index).cloned() {
                    if keep == Keep::Nothing {
                        for _ in 0..=index {
                            if let Some(gone) = state.events.pop_front() {
                                state.bytes -= gone.text.len();
                                state.first += 1;
                            }
                        }
                    }
                    return Some((wanted + 1, event));
                }
                if state.closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    fn stream(due: usize, keep: Keep) -> Arc<Stream> {
        Stream::new(1, due, keep, false, &Budget::new(64 << 20, None))
    }

    #[tokio::test]
    async fn an_answer_without_room_is_an_error_with_its_id() {
        let budget = Budget::new(100, None);
        let stream = Stream::new(1, 1, Keep::Nothing, false, &budget);
        assert!(stream.push(&[b'x'; 60], false, None));
        assert!(!stream.push(&[b'x'; 60], false, None), "a notification is dropped");
        let long = format!(r#"{{"jsonrpc":"2.0","id":"a","result":"{}"}}"#, "x".repeat(200));
        assert!(stream.push(long.as_bytes(), true, None));
        let (at, _) = stream.after(0).await.unwrap_or_else(|| panic!("nothing"));
        let (_, event) = stream.after(at).await.unwrap_or_else(|| panic!("nothing"));
        let text = String::from_utf8_lossy(&event.text);
        assert!(text.contains(r#""id":"a","error""#) && event.is_answer, "{text}");
        drop(event);
        assert_eq!(budget.used(), 0, "what was sent is given back");
    }

    #[tokio::test]
    async fn what_was_sent_is_there_again_where_it_is_kept() {
        let stream = stream(1, Keep::Sent);
        stream.push(b"a", false, None);
        stream.push(b"b", true, None);
        for _ in 0..2 {
            let (at, event) = stream.after(0).await.unwrap_or_else(|| panic!("nothing"));
            assert_eq!((at, &*event.text), (1, &b"a"[..]));
            let (at, event) = stream.after(at).await.unwrap_or_else(|| panic!("nothing"));
            assert_eq!((at, &*event.text, event.is_answer), (2, &b"b"[..], true));
            assert!(stream.after(at).await.is_none());
        }
    }

    #[test]
    fn a_flood_behind_an_answer_is_bounded() {
        let stream = stream(2, Keep::Nothing);
        stream.push(b"answer", true, None);
        let large = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            stream.push(&large, false, None);
        }
        assert!(stream.state().bytes <= MOST_WAITING);
        stream.push(b"answer", true, None);
        assert_eq!(stream.state().events.iter().filter(|it| it.is_answer).count(), 2);
    }

    #[tokio::test]
    async fn a_flood_is_bounded_and_the_answer_stays() {
        let stream = stream(1, Keep::Nothing);
        let large = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            stream.push(&large, false, None);
        }
        stream.push(b"answer", true, None);
        assert!(stream.state().bytes <= MOST_WAITING);
        let mut at = 0;
        let mut last = None;
        while let Some((next, event)) = stream.after(at).await {
            (at, last) = (next, Some(event));
        }
        assert!(last.is_some_and(|event| event.is_answer && &*event.text == b"answer"));
    }
}
