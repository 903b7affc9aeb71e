//! Two threads that wait for pipes, so that no other thread has to.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use mio::Waker;

const CHUNK: usize = 64 << 10;
/// The reader thread waits while this number of chunks has not been taken.
const AHEAD: usize = 2;

/// What comes in.
pub struct PipeReader(Receiver<Vec<u8>>);

pub enum PipeRead {
    Bytes(Vec<u8>),
    Nothing,
    Closed,
}

impl PipeReader {
    pub fn start(
        mut from: impl Read + Send + 'static,
        waker: Arc<Waker>,
    ) -> io::Result<PipeReader> {
        let (to, reader) = sync_channel(AHEAD);
        let read = move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                match from.read(&mut chunk) {
                    Ok(count @ 1..) => {
                        let bytes = chunk.get(..count).unwrap_or_default().to_vec();
                        if to.send(bytes).is_err() {
                            return;
                        }
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(_) | Err(_) => break,
                }
                let _ = waker.wake();
            }
            drop(to);
            let _ = waker.wake();
        };
        std::thread::Builder::new().name("mcp-pipe-in".to_owned()).spawn(read)?;
        Ok(PipeReader(reader))
    }

    pub fn next(&self) -> PipeRead {
        match self.0.try_recv() {
            Ok(bytes) => PipeRead::Bytes(bytes),
            Err(TryRecvError::Empty) => PipeRead::Nothing,
            Err(TryRecvError::Disconnected) => PipeRead::Closed,
        }
    }
}

#[derive(Default)]
struct WriteQueue {
    bytes: Vec<u8>,
    /// Being written this moment.
    written: usize,
    is_closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<WriteQueue>,
    changed: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, WriteQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What goes out. Dropping it ends the thread after what it has.
pub struct PipeWriter(Arc<Shared>);

impl PipeWriter {
    pub fn start(to: impl Write + Send + 'static, waker: Arc<Waker>) -> io::Result<PipeWriter> {
        let shared = Arc::new(Shared::default());
        let writer = PipeWriter(shared.clone());
        let write = move || {
            write_all(to, &shared, &waker);
            shared.queue().is_closed = true;
            let _ = waker.wake();
        };
        std::thread::Builder::new().name("mcp-pipe-out".to_owned()).spawn(write)?;
        Ok(writer)
    }

    /// How much is not written yet.
    pub fn held(&self) -> usize {
        let queue = self.0.queue();
        queue.bytes.len() + queue.written
    }

    /// Takes what is to be written; whether there is still a pipe to write to.
    pub fn put(&self, bytes: &mut Vec<u8>) -> bool {
        let mut queue = self.0.queue();
        if !bytes.is_empty() {
            queue.bytes.append(bytes);
            self.0.changed.notify_one();
        }
        !queue.is_closed
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.0.queue().is_closed = true;
        self.0.changed.notify_one();
    }
}

fn write_all(mut to: impl Write, shared: &Shared, waker: &Waker) {
    loop {
        let mut queue = shared.queue();
        while queue.bytes.is_empty() {
            if queue.is_closed {
                return;
            }
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let bytes = std::mem::take(&mut queue.bytes);
        queue.written = bytes.len();
        drop(queue);
        if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
        shared.queue().written = 0;
        let _ = waker.wake();
    }
}
