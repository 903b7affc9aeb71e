//! The messages that belong to one HTTP response, in order, with a bound. A response that breaks off can be taken up
//! again where the revision has that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

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
    pub text: Arc<[u8]>,
    pub is_answer: bool,
    /// The code of an error answer.
    pub error: Option<i64>,
}

/// Two names of one stream are one waiter.
#[derive(Debug, Clone)]
pub struct Waiter(pub Arc<Stream>);

impl PartialEq for Waiter {
    fn eq(&self, other: &Waiter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Stream {
    /// A response in which `due` answers are to come.
    pub fn new(number: u64, due: usize, keep: Keep, endless: bool) -> Arc<Stream> {
        let state = Mutex::new(State { due, ..State::default() });
        Arc::new(Stream {
            number,
            started: Instant::now(),
            endless,
            keep,
            state,
            changed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, text: &[u8], is_answer: bool, error: Option<i64>) {
        let mut state = self.state();
        state.bytes += text.len();
        state.events.push_back(Event { text: text.into(), is_answer, error });
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
        if state.bytes > MOST_WAITING && !is_answer && state.events.pop_back().is_some() {
            state.bytes -= text.len();
        }
        drop(state);
        self.changed.notify_waiters();
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

    #[tokio::test]
    async fn what_was_sent_is_there_again_where_it_is_kept() {
        let stream = Stream::new(1, 1, Keep::Sent, false);
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
        let stream = Stream::new(1, 2, Keep::Nothing, false);
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
        let stream = Stream::new(1, 1, Keep::Nothing, false);
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
