//! Sessions of the revisions 2025-03-26 to 2025-11-25. An id is worth nothing to another principal or server.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::events::{Keep, Stream};
use crate::sandbox::Sandbox;

/// Responses that a client may still take up again after their end.
const MOST_FINISHED: usize = 16;

pub struct Session {
    pub id: String,
    pub principal: Arc<str>,
    pub server: String,
    /// The revision that the server chose.
    pub version: String,
    pub sandbox: Arc<Sandbox>,
    /// What belongs to no request: the stream of GET.
    pub own: Arc<Stream>,
    streams: Mutex<VecDeque<Arc<Stream>>>,
    next: AtomicU64,
}

impl Session {
    pub fn new(
        id: String,
        principal: Arc<str>,
        version: String,
        sandbox: Arc<Sandbox>,
        own: Arc<Stream>,
    ) -> Session {
        let server = sandbox.server.clone();
        Session {
            id,
            principal,
            server,
            version,
            sandbox,
            own,
            streams: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// A response with `due` answers.
    pub fn stream(&self, due: usize) -> Arc<Stream> {
        let stream = Stream::new(self.next.fetch_add(1, Ordering::Relaxed), due, Keep::Sent, false);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.push_back(Arc::clone(&stream));
        let finished = streams.iter().filter(|it| it.is_closed()).count();
        if finished > MOST_FINISHED
            && let Some(oldest) = streams.iter().position(|it| it.is_closed())
        {
            streams.remove(oldest);
        }
        stream
    }

    /// Where an event id points to: the stream, and the number of the event.
    pub fn resume(&self, event_id: &str) -> Option<(Arc<Stream>, u64)> {
        let (stream, event) = event_id.split_once('-')?;
        let (stream, event): (u64, u64) = (stream.parse().ok()?, event.parse().ok()?);
        if stream == self.own.number {
            return Some((Arc::clone(&self.own), event));
        }
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().find(|it| it.number == stream).map(|it| (Arc::clone(it), event))
    }
}

#[derive(Default)]
pub struct Sessions {
    all: Mutex<HashMap<String, Arc<Session>>>,
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(self: &Arc<Sessions>, session: Arc<Session>) {
        self.all().insert(session.id.clone(), Arc::clone(&session));
        let sessions = Arc::clone(self);
        tokio::spawn(async move {
            session.sandbox.wait().await;
            sessions.all().remove(&session.id);
        });
    }

    /// The session of this principal and server with this id.
    pub fn find(&self, id: &str, principal: &str, server: &str) -> Option<Arc<Session>> {
        let session = self.all().get(id).cloned()?;
        let is_own = *session.principal == *principal && session.server == server;
        Some(session).filter(|it| is_own && !it.sandbox.is_ended())
    }

    pub fn remove(&self, id: &str) {
        self.all().remove(id);
    }

    /// Until there are none.
    pub async fn empty(&self) {
        loop {
            let any = self.all().values().next().cloned();
            match any {
                Some(session) => session.sandbox.wait().await,
                None => return,
            }
            tokio::task::yield_now().await;
        }
    }

    /// Ends those of servers that `is_gone` names.
    pub fn end(&self, is_gone: impl Fn(&str) -> bool) {
        self.all().values().filter(|it| is_gone(&it.server)).for_each(|it| it.sandbox.end());
    }
}
