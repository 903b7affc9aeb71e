//! Copies between the caller's standard handles and the command's pipes, where the command must not have the handle
//! itself or the launcher has to close it.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::windows::sys::handles::{self, Kind};

const CHUNK: usize = 16 << 10;

/// The command's input. A timeout closes it first.
#[derive(Clone)]
pub struct Input(Arc<Mutex<Option<PipeWriter>>>);

impl Input {
    pub fn start(to: PipeWriter) -> Input {
        let shared = Input(Arc::new(Mutex::new(Some(to))));
        let input = shared.clone();
        // A thread that waits for the caller's input cannot be woken, so this one is not joined.
        std::thread::spawn(move || input.copy());
        shared
    }

    fn copy(&self) {
        let mut from: Box<dyn Read> = match handles::kind(0) {
            Kind::Console => Box::new(io::stdin()),
            _ => match handles::duplicate(0) {
                Ok(handle) => Box::new(File::from(handle)),
                Err(_) => Box::new(io::empty()),
            },
        };
        let mut chunk = [0; CHUNK];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            let Ok(mut to) = self.0.lock() else { break };
            let Some(to) = to.as_mut() else { break };
            if chunk.get(..count).is_none_or(|bytes| to.write_all(bytes).is_err()) {
                break;
            }
        }
        self.close();
    }

    /// Does nothing while a write to a command that does not read is under way.
    pub fn close(&self) {
        if let Ok(mut to) = self.0.try_lock() {
            *to = None;
        }
    }
}

/// One of the command's outputs.
pub struct Output(Receiver<()>);

impl Output {
    pub fn start(number: usize, from: PipeReader) -> Output {
        let (done, wait) = channel();
        std::thread::spawn(move || {
            copy_out(number, from);
            let _ = done.send(());
        });
        Output(wait)
    }

    /// Waits until everything was passed on, but not for ever.
    pub fn finish(&self, until: Instant) {
        let _ = self.0.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

fn copy_out(number: usize, mut from: PipeReader) {
    let is_console = handles::kind(number) == Kind::Console;
    let mut to: Box<dyn Write> = match (is_console, number) {
        (true, 1) => Box::new(io::stdout()),
        (true, _) => Box::new(io::stderr()),
        (false, _) => match handles::duplicate(number) {
            Ok(handle) => Box::new(File::from(handle)),
            Err(_) => Box::new(io::sink()),
        },
    };
    let mut pending: Vec<u8> = Vec::new();
    let mut chunk = [0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        pending.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let exclusion = if is_console { unfinished(&pending) } else { 0 };
        let ready = pending.len() - exclusion;
        let text = pending.get(..ready).unwrap_or_default();
        // A console takes text only.
        let written = match is_console {
            true => to.write_all(String::from_utf8_lossy(text).as_bytes()),
            false => to.write_all(text),
        };
        pending.drain(..ready);
        if written.and_then(|()| to.flush()).is_err() {
            // A reader that is gone: the command shall not wait for it.
            let _ = io::copy(&mut from, &mut io::sink());
            return;
        }
    }
}

/// The number of bytes at the end that begin an unfinished UTF-8 character.
fn unfinished(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => bytes.len() - e.valid_up_to(),
        _ => 0,
    }
}

/// How long a reader of relayed output may keep a finished run waiting.
pub const DRAIN: Duration = Duration::from_secs(5);
