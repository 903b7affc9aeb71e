//! Sessions of the revisions 2025-03-26 to 2025-11-25. An id is worth nothing to another principal or server.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::events::{Keep, Stream};
use crate::sandbox::Sandbox;

/// Responses that a client may still take up again after their end.
const MOST_FINISHED: usize = 16;
/// And the bytes of them, but for the last one.
const MOST_KEPT: usize = 1 << 20;

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
        let stream = Stream::new(
            self.next.fetch_add(1, Ordering::Relaxed),
            due,
            Keep::Sent,
            false,
            self.sandbox.budget(),
        );
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let mut finished: Vec<(u64, usize)> =
            streams.iter().filter(|it| it.is_closed()).map(|it| (it.number, it.bytes())).collect();
        let mut bytes: usize = finished.iter().map(|(_, bytes)| bytes).sum();
        while finished.len() > MOST_FINISHED || (finished.len() > 1 && bytes > MOST_KEPT) {
            let (oldest, freed) = finished.remove(0);
            bytes -= freed;
            streams.retain(|it| it.number != oldest);
        }
        streams.push_back(Arc::clone(&stream));
        stream
    }

    /// A response that was no stream: its client has no event id to come back with.
    pub fn forget(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|it| !Arc::ptr_eq(it, stream));
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

    /// Ends those of principals and servers that `is_gone` names.
    pub fn end(&self, is_gone: impl Fn(&str, &str) -> bool) {
        let all = self.all();
        let gone = all.values().filter(|it| is_gone(&it.principal, &it.server));
        gone.for_each(|it| it.sandbox.end());
    }

    /// The sandboxes of a principal.
    pub fn of(&self, principal: &str) -> Vec<Arc<Sandbox>> {
        let all = self.all();
        let own = all.values().filter(|it| *it.principal == *principal);
        own.map(|it| Arc::clone(&it.sandbox)).collect()
    }
}
