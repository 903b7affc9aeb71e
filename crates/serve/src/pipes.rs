//! The pipes of a server. Most sessions are idle, so nothing is kept for bytes that may come.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};

use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin};
use tokio::sync::{Notify, watch};

use crate::flag;
use crate::memory::Held;

/// Messages that wait until the server reads them.
const UNREAD: usize = 64;
const LONGEST_STDERR_LINE: usize = 4096;
/// What one read of a server's output takes.
const CHUNK: usize = 16 << 10;

/// What the server has not read yet.
#[derive(Default)]
pub struct Unread {
    lines: Mutex<Lines>,
    added: Notify,
}

#[derive(Default)]
struct Lines {
    waiting: VecDeque<(Vec<u8>, Held)>,
    /// The server reads no more.
    closed: bool,
}

impl Unread {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error where as many wait as may, and where the server reads no more.
    pub fn push(&self, line: Vec<u8>, held: Held) -> Result<(), ()> {
        let mut lines = self.lines();
        if lines.closed || lines.waiting.len() >= UNREAD {
            return Err(());
        }
        lines.waiting.push_back((line, held));
        drop(lines);
        self.added.notify_one();
        Ok(())
    }

    /// One caller at a time: one notification is kept, not more.
    async fn next(&self) -> (Vec<u8>, Held) {
        loop {
            if let Some(line) = self.pop() {
                return line;
            }
            self.added.notified().await;
        }
    }

    fn pop(&self) -> Option<(Vec<u8>, Held)> {
        let mut lines = self.lines();
        let line = lines.waiting.pop_front();
        if lines.waiting.is_empty() {
            lines.waiting = VecDeque::new();
        }
        line
    }

    fn close(&self) {
        *self.lines() = Lines { closed: true, ..Lines::default() };
    }
}

/// Writes what is to be read, until the flag `ending` is set and nothing waits.
pub async fn write(mut stdin: ChildStdin, lines: Arc<Unread>, mut ending: watch::Receiver<bool>) {
    loop {
        let line = tokio::select! {
            biased;
            line = lines.next() => Some(line),
            () = flag::is_set(&mut ending) => None,
        };
        let Some((line, _held)) = line else { return };
        if stdin.write_all(&line).await.is_err() {
            return lines.close();
        }
    }
}

/// Hands on what comes next; false at the end. The bytes lie on the stack of the thread that reads: a buffer for each
/// pipe would be most of what an idle session takes.
pub async fn chunk(pipe: &mut (impl AsyncRead + Unpin), mut each: impl FnMut(&[u8])) -> bool {
    poll_fn(|context| {
        let mut space = [MaybeUninit::uninit(); CHUNK];
        let mut buffer = ReadBuf::uninit(&mut space);
        let read = ready!(Pin::new(&mut *pipe).poll_read(context, &mut buffer));
        let is_more = read.is_ok() && !buffer.filled().is_empty();
        if is_more {
            each(buffer.filled());
        }
        Poll::Ready(is_more)
    })
    .await
}

/// The server's standard error, with its name before each line, a long line in parts.
pub async fn tell(name: String, mut stderr: ChildStderr) {
    let mut line = Vec::new();
    let print = |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        eprintln!("[{name}] {}", mcp_policy::text::word(text.trim_end()));
    };
    let mut pass_on = |bytes: &[u8]| {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            for part in part.chunks(LONGEST_STDERR_LINE) {
                if line.len() + part.len() > LONGEST_STDERR_LINE {
                    print(&std::mem::take(&mut line));
                }
                line.extend_from_slice(part);
            }
            if line.ends_with(b"\n") {
                print(&std::mem::take(&mut line));
            }
        }
    };
    while chunk(&mut stderr, &mut pass_on).await {}
    if !line.is_empty() {
        print(&line);
    }
}
