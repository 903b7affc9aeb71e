//! One connection of a client.
//!
//! Most connections wait for their next request most of the time. One of HTTP/1.1 that has waited for a moment gives up what hyper keeps
//! for it (24 KiB of buffers) and has a few hundred bytes until the next byte comes.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::addresses::Counted as CountedAddress;
use crate::flag;
use crate::gateway::Gateway;
use crate::http::{self, Body};
use crate::rewound::Rewound;
use crate::traffic::{Counted, Traffic};
use crate::write_time::WriteTime;

const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
const LARGEST_HEAD: usize = 64 << 10;
/// Bytes of bodies that HTTP/2 takes before they are asked for, of a connection and of each request.
const WINDOW: u32 = 256 << 10;
/// Bytes of an answer that HTTP/2 keeps until the client takes them.
const UNSENT: usize = 64 << 10;
/// A connection without a request for so long is put to rest.
const WAKEFUL: Duration = Duration::from_secs(1);
/// What every connection of HTTP/2 begins with, and no request of HTTP/1.1.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How often it is looked whether the rest of that has come.
const LOOK: Duration = Duration::from_millis(10);

/// What a connection has of the gateway's bounds, and of its end.
type Held = (OwnedSemaphorePermit, CountedAddress, mpsc::Sender<()>);

pub struct Connection {
    gateway: Arc<Gateway>,
    peer: SocketAddr,
    traffic: Arc<Traffic>,
    head_time: Duration,
    _held: Held,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Counted<Body>>, Infallible>> + Send>>;

impl Connection {
    pub fn new(gateway: Arc<Gateway>, peer: SocketAddr, held: Held) -> Connection {
        let head_time = gateway.current().config.limits.head_time;
        Connection { gateway, peer, traffic: Traffic::new(), head_time, _held: held }
    }

    pub async fn run(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let _ = stream.set_nodelay(true);
        let write_time = self.gateway.current().config.limits.write_time;
        detect_gone_peers(&stream, write_time);
        self.gateway.metrics.connections.fetch_add(1, Ordering::Relaxed);
        match tls {
            None => match timeout(self.head_time, is_http2(&stream)).await {
                Ok(is_http2) => {
                    let stream = WriteTime::new(stream, write_time, Arc::clone(&self.traffic));
                    self.speak(stream, is_http2).await;
                }
                Err(_) => {
                    // What is not read when a socket closes makes the kernel send a reset.
                    let _ = stream.try_read(&mut [0; PREFACE.len()]);
                    self.gateway.metrics.refused("silence");
                }
            },
            Some(tls) => {
                let stream = WriteTime::new(stream, write_time, Arc::clone(&self.traffic));
                // In a box, because this future has room for the largest of its parts.
                Box::pin(self.speak_tls(stream, tls)).await;
            }
        }
        self.gateway.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }

    async fn speak_tls(&self, stream: WriteTime<TcpStream>, tls: TlsAcceptor) {
        match timeout(HANDSHAKE_TIME, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                self.speak(stream, is_http2).await;
            }
            _ => self.gateway.metrics.refused("handshake"),
        }
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        is_http2: bool,
    ) {
        if is_http2 {
            return Box::pin(self.http2(stream)).await;
        }
        let (mut stream, mut read, mut head_time) = (stream, Bytes::new(), self.head_time);
        while let Some((at_rest, begun)) = Box::pin(self.http1(stream, read, head_time)).await {
            (stream, read) = (at_rest, begun);
            head_time = self.head_time.saturating_sub(WAKEFUL);
            if read.is_empty() {
                self.gateway.rested.fetch_add(1, Ordering::Relaxed);
                read = self.next(&mut stream, head_time).await;
                head_time = self.head_time;
            }
            if read.is_empty() {
                let _ = stream.shutdown().await;
                return;
            }
        }
    }

    /// The next bytes; none at the end, after too long, and when the gateway ends.
    async fn next(&self, stream: &mut (impl AsyncRead + Unpin), longest: Duration) -> Bytes {
        let mut draining = self.gateway.draining.subscribe();
        tokio::select! {
            next = timeout(longest, next(stream)) => next.ok().flatten().unwrap_or_default(),
            () = flag::is_set(&mut draining) => Bytes::new(),
        }
    }

    /// Answers a request, and more until there is none for a while; then the connection, and what was read of it beyond them.
    async fn http1<S>(&self, stream: S, read: Bytes, head_time: Duration) -> Option<(S, Bytes)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(LARGEST_HEAD);
        let stream = TokioIo::new(Rewound::new(read, stream));
        let mut connection = builder.serve_connection(stream, self.service());
        let mut draining = self.gateway.draining.subscribe();
        let before = self.traffic.requests().begun;
        let begun = tokio::select! {
            done = poll_fn(|context| connection.poll_without_shutdown(context)) => {
                return self.over(done, connection).await;
            }
            () = flag::is_set(&mut draining) => None,
            () = self.traffic.rest(before, WAKEFUL) => Some(self.traffic.requests().begun),
        };
        Pin::new(&mut connection).graceful_shutdown();
        let done = poll_fn(|context| connection.poll_without_shutdown(context)).await;
        // A request that came meanwhile was answered with `Connection: close`.
        if done.is_err() || begun != Some(self.traffic.requests().begun) {
            return self.over(done, connection).await;
        }
        let parts = connection.into_parts();
        let stream = parts.io.into_inner();
        Some((stream.inner, [parts.read_buf, stream.read].concat().into()))
    }

    /// A connection that hyper is done with.
    async fn over<S, V>(
        &self,
        done: hyper::Result<()>,
        connection: http1::Connection<TokioIo<Rewound<S>>, V>,
    ) -> Option<(S, Bytes)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        V: HttpService<Incoming, ResBody = Counted<Body>, Error = Infallible>,
    {
        if done.is_ok() {
            let _ = connection.into_parts().io.into_inner().inner.shutdown().await;
        }
        None
    }

    async fn http2(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(128)
            .initial_connection_window_size(WINDOW)
            .initial_stream_window_size(WINDOW)
            .max_send_buf_size(UNSENT)
            .max_header_list_size(u32::try_from(LARGEST_HEAD).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(Duration::from_secs(30)));
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), self.service()));
        let mut draining = self.gateway.draining.subscribe();
        tokio::select! {
            _ = connection.as_mut() => return,
            () = flag::is_set(&mut draining) => {}
            // hyper waits without end for a request.
            () = self.traffic.silence(self.head_time) => {
                if self.traffic.requests().begun == 0 {
                    return self.gateway.metrics.refused("silence");
                }
            }
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }

    fn service(
        &self,
    ) -> impl HttpService<Incoming, ResBody = Counted<Body>, Error = Infallible, Future = Answer>
    + Unpin
    + use<> {
        let (gateway, peer) = (Arc::clone(&self.gateway), self.peer);
        let traffic = Arc::clone(&self.traffic);
        service_fn(move |request: Request<Incoming>| -> Answer {
            let (gateway, open) = (Arc::clone(&gateway), traffic.begin());
            // hyper keeps room for this future as long as the connection lasts; a box goes with the request.
            Box::pin(async move {
                let response = http::handle(gateway, peer, request).await;
                Ok(response.map(|body| Counted::new(body, open)))
            })
        })
    }
}

/// Whether what comes first is the preface of HTTP/2. It stays where it is.
async fn is_http2(stream: &TcpStream) -> bool {
    let mut begun = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut begun).await {
            Ok(count) if count == begun.len() => return begun == PREFACE,
            Ok(count) if count > 0 && PREFACE.starts_with(&begun[..count]) => {
                tokio::time::sleep(LOOK).await;
            }
            _ => return false,
        }
    }
}

/// What comes next, or none at the end.
async fn next(stream: &mut (impl AsyncRead + Unpin)) -> Option<Bytes> {
    poll_fn(|context| {
        let mut space = [0; 1024];
        let mut buffer = ReadBuf::new(&mut space);
        let read = ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer));
        let is_some = read.is_ok() && !buffer.filled().is_empty();
        Poll::Ready(is_some.then(|| Bytes::copy_from_slice(buffer.filled())))
    })
    .await
}

/// A peer that vanished without a word: the kernel asks whether it is there, and gives it up after `longest`.
#[cfg(target_os = "linux")]
fn detect_gone_peers(stream: &TcpStream, longest: Duration) {
    use rustix::net::sockopt;
    let milliseconds = u32::try_from(longest.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, longest.max(Duration::from_secs(1)));
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15));
    let _ = sockopt::set_tcp_user_timeout(stream, milliseconds);
}

#[cfg(not(target_os = "linux"))]
fn detect_gone_peers(_stream: &TcpStream, _longest: Duration) {}
