//! What goes on on a connection: how many requests are open, when the last one began or ended, whether the client takes what is
//! written.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

#[derive(Debug)]
pub struct Traffic {
    requests: Mutex<Requests>,
    /// The last write found no room.
    pub blocked: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
pub struct Requests {
    /// How many began.
    pub begun: u64,
    open: usize,
    last: Instant,
}

impl Traffic {
    pub fn new() -> Arc<Traffic> {
        let requests = Requests { begun: 0, open: 0, last: Instant::now() };
        Arc::new(Traffic { requests: Mutex::new(requests), blocked: AtomicBool::new(false) })
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn requests(&self) -> Requests {
        *self.lock()
    }

    /// A request is open until what this returns is gone.
    pub fn begin(self: &Arc<Traffic>) -> Open {
        let mut requests = self.lock();
        *requests =
            Requests { begun: requests.begun + 1, open: requests.open + 1, last: Instant::now() };
        drop(requests);
        Open(Arc::clone(self))
    }

    /// Ends when more than `before` requests began, none was open for so long, and everything that was written is gone.
    pub async fn rest(&self, before: u64, longest: Duration) {
        loop {
            let requests = self.requests();
            let left = longest.saturating_sub(requests.last.elapsed());
            let is_busy = requests.open > 0 || self.blocked.load(Ordering::Relaxed);
            if requests.begun > before && left.is_zero() && !is_busy {
                return;
            }
            tokio::time::sleep(if left.is_zero() { longest } else { left }).await;
        }
    }

    /// Ends when no request began for so long, however long the last one takes.
    pub async fn silence(&self, longest: Duration) {
        loop {
            let left = longest.saturating_sub(self.requests().last.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

/// See [`Traffic::begin`].
#[derive(Debug)]
pub struct Open(Arc<Traffic>);

impl Drop for Open {
    fn drop(&mut self) {
        let mut requests = self.0.lock();
        requests.open -= 1;
        requests.last = Instant::now();
    }
}

/// The body of an answer; its request is open until hyper has taken it all.
pub struct Counted<B> {
    body: B,
    _open: Open,
}

impl<B> Counted<B> {
    pub fn new(body: B, open: Open) -> Counted<B> {
        Counted { body, _open: open }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Counted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
