//! Answers: one JSON text, or a stream of server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use mcp_protocol::error;
use tokio::sync::{mpsc, watch};

use crate::events::{Event, Stream};
use crate::flag;
use crate::sandbox::{Attached, Sandbox};

/// A call that has not answered after this becomes a stream, so that proxies see bytes.
const PATIENCE: Duration = Duration::from_millis(500);
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Bytes that are there, or come.
pub enum Body {
    Whole(Option<Bytes>),
    Coming(mpsc::Receiver<Bytes>),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Coming(incoming) => {
                incoming.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::Coming(_) => SizeHint::default(),
        }
    }
}

fn whole(status: StatusCode, kind: &'static str, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub fn text(status: StatusCode, text: &str) -> Response<Body> {
    whole(status, "text/plain; charset=utf-8", Bytes::copy_from_slice(text.as_bytes()))
}

pub fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    whole(status, "application/json", text.into())
}

pub fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = status;
    response
}

pub fn failed(
    status: StatusCode,
    id: Option<&mcp_protocol::Id>,
    code: i64,
    message: &str,
) -> Response<Body> {
    json(status, error::answer(id, code, message).into_bytes())
}

pub fn challenged(status: StatusCode, challenge: &str) -> Response<Body> {
    let mut response = text(status, "a token is needed that may do this\n");
    if let Ok(challenge) = HeaderValue::from_str(challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

pub fn busy() -> Response<Body> {
    let mut response = failed(
        StatusCode::SERVICE_UNAVAILABLE,
        None,
        error::INTERNAL,
        "no sandbox is free: try again",
    );
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
    response
}

/// What happens to the calls of a response whose client goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Events have ids, and the calls go on; with `true` the first event is there only to give the client an id.
    ById { primed: bool },
    /// The calls are cancelled.
    Never,
}

/// Cancels the calls of a response that no client waits for.
pub struct Waiting {
    sandbox: Arc<Sandbox>,
    stream: Arc<Stream>,
    armed: bool,
}

impl Waiting {
    pub fn new(sandbox: &Arc<Sandbox>, stream: &Arc<Stream>) -> Waiting {
        Waiting { sandbox: Arc::clone(sandbox), stream: Arc::clone(stream), armed: true }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.armed && !self.stream.is_closed() {
            self.sandbox.abandon(&self.stream, "the client has gone");
        }
    }
}

/// The first thing that comes of a call.
pub enum First {
    /// The only answer: one JSON text will do.
    Answer(Event),
    /// Something before the answer, or nothing for a while.
    More(Waiting),
}

/// Waits for the first event. Whoever drops this future meanwhile cancels the calls.
pub async fn first(waiting: Waiting, due: usize) -> First {
    let first = tokio::time::timeout(PATIENCE, waiting.stream.peek(0)).await;
    match first {
        Ok(Some(event)) if event.is_answer && due == 1 => First::Answer(event),
        _ => First::More(waiting),
    }
}

/// A response of server-sent events, from after event `at` on.
pub fn events(
    mut waiting: Waiting,
    at: u64,
    resume: Resume,
    attached: Option<Attached>,
    draining: watch::Receiver<bool>,
) -> Response<Body> {
    let (sender, incoming) = mpsc::channel(4);
    waiting.armed = resume == Resume::Never;
    tokio::spawn(pump(waiting, at, resume, sender, attached, draining));
    let mut response = Response::new(Body::Coming(incoming));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

async fn pump(
    waiting: Waiting,
    mut at: u64,
    resume: Resume,
    sender: mpsc::Sender<Bytes>,
    _attached: Option<Attached>,
    mut draining: watch::Receiver<bool>,
) {
    let stream = &waiting.stream;
    if resume == (Resume::ById { primed: true }) {
        let prime = format!("id: {}-{at}\ndata: \n\n", stream.number);
        if sender.send(prime.into()).await.is_err() {
            return;
        }
    }
    loop {
        let next = tokio::select! {
            next = stream.after(at) => next,
            () = sender.closed() => return,
            // Answers that are due are waited for; a stream without an end is not.
            () = flag::is_set(&mut draining), if stream.endless => None,
            () = tokio::time::sleep(KEEP_ALIVE) => {
                if sender.send(Bytes::from_static(b": still here\n\n")).await.is_err() {
                    return;
                }
                continue;
            }
        };
        let Some((number, event)) = next else { return };
        at = number;
        for piece in sent_event(stream.number, at, event.text, resume) {
            if sender.send(piece).await.is_err() {
                return;
            }
        }
    }
}

/// The pieces of an event. A message has no line ends of its own but in white space, and each line of an event needs its
/// field name.
fn sent_event(stream: u64, number: u64, text: Bytes, resume: Resume) -> [Bytes; 3] {
    let id = match resume {
        Resume::Never => String::new(),
        Resume::ById { .. } => format!("id: {stream}-{number}\n"),
    };
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let line = if text.iter().any(is_end) {
        text.iter().map(|byte| if is_end(byte) { b' ' } else { *byte }).collect()
    } else {
        text
    };
    [format!("event: message\n{id}data: ").into(), line, Bytes::from_static(b"\n\n")]
}
