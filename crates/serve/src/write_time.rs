//! A connection whose client does not read: it ends when nothing could be written for too long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::traffic::Traffic;

pub struct WriteTime<T> {
    inner: T,
    longest: Duration,
    /// Since the first write that found no room.
    waiting: Option<Pin<Box<Sleep>>>,
    traffic: Arc<Traffic>,
}

impl<T> WriteTime<T> {
    pub fn new(inner: T, longest: Duration, traffic: Arc<Traffic>) -> WriteTime<T> {
        WriteTime { inner, longest, waiting: None, traffic }
    }

    fn timed<R>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.traffic.blocked.store(polled.is_pending(), Ordering::Relaxed);
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let longest = self.longest;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(longest)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTime<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTime<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.timed(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.timed(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        // A flush of a socket is always ready, and says nothing about room.
        if polled.is_ready() { polled } else { self.timed(context, polled) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(context);
        self.timed(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_reader_that_stops_is_given_up_and_a_slow_one_is_not() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut stopped = WriteTime::new(near, Duration::from_millis(20), Traffic::new());
        let failed = stopped.write_all(&[0; 64]).await;
        assert_eq!(failed.map_err(|why| why.kind()), Err(io::ErrorKind::TimedOut));
        let mut buffer = [0; 16];
        assert!(far.read(&mut buffer).await.is_ok());
        let (near, mut far) = tokio::io::duplex(16);
        let mut slow = WriteTime::new(near, Duration::from_secs(600), Traffic::new());
        let reading = async {
            let mut read = 0;
            while read < 64 {
                tokio::task::yield_now().await;
                read += far.read(&mut buffer).await.unwrap_or(64);
            }
        };
        let (written, ()) = tokio::join!(slow.write_all(&[0; 64]), reading);
        assert!(written.is_ok());
    }
}
