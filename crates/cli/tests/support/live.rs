//! A run that still goes on. Dropping it kills the launcher, and only that.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Finished, Scratch, eventually, soon, sys};

type Buffer = Arc<Mutex<Vec<u8>>>;

/// One stream of the child, drained in the background so that it never blocks.
struct Stream {
    buffer: Buffer,
    ended: Arc<Mutex<bool>>,
}

impl Stream {
    fn drain(source: Option<impl Read + Send + 'static>) -> Stream {
        let stream =
            Stream { buffer: Buffer::default(), ended: Arc::new(Mutex::new(source.is_none())) };
        let (buffer, ended) = (stream.buffer.clone(), stream.ended.clone());
        if let Some(mut source) = source {
            std::thread::spawn(move || {
                let mut chunk = [0; 8192];
                while let Ok(count @ 1..) = source.read(&mut chunk) {
                    buffer.lock().unwrap().extend_from_slice(&chunk[..count]);
                }
                *ended.lock().unwrap() = true;
            });
        }
        stream
    }

    fn bytes(&self) -> Vec<u8> {
        self.buffer.lock().unwrap().clone()
    }
}

pub struct Live {
    child: Child,
    status: Option<ExitStatus>,
    stdout: Stream,
    stderr: Stream,
    limit: Duration,
    shown: String,
    /// The home directory lives as long as the run.
    _home: Option<Scratch>,
}

impl Live {
    pub fn new(
        mut child: Child,
        input: Option<Vec<u8>>,
        limit: Duration,
        shown: String,
        home: Option<Scratch>,
    ) -> Live {
        if let Some(bytes) = input {
            let mut stdin = child.stdin.take().unwrap();
            std::thread::spawn(move || {
                let _ = stdin.write_all(&bytes);
            });
        }
        let stdout = Stream::drain(child.stdout.take());
        let stderr = Stream::drain(child.stderr.take());
        Live { child, status: None, stdout, stderr, limit, shown, _home: home }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The write end of stdin, when the run was asked to keep it.
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub fn signal(&self, signal: i32) {
        sys::kill(self.pid(), signal);
    }

    /// Waits until the launcher has taken the signal, and for as long as it takes a second one for the same.
    #[cfg(target_os = "linux")]
    #[track_caller]
    pub fn await_taken(&self, signal: i32) {
        let status = format!("/proc/{}/status", self.pid());
        let is_taken = || {
            let status = std::fs::read_to_string(&status).unwrap();
            let waiting = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
            u64::from_str_radix(waiting.trim(), 16).unwrap() & (1 << (signal - 1)) == 0
        };
        assert!(eventually(self.limit, is_taken), "the launcher does not take signal {signal}");
        std::thread::sleep(Duration::from_millis(200));
    }

    /// The processes below the launcher, the nearest first.
    #[cfg(target_os = "linux")]
    pub fn descendants(&self) -> Vec<u32> {
        descendants(self.pid())
    }

    /// Signals the processes that the run's own process started.
    pub fn signal_children(&self, signal: i32) {
        let list = format!("/proc/{0}/task/{0}/children", self.pid());
        let children = std::fs::read_to_string(list).unwrap();
        assert!(!children.trim().is_empty(), "no children of {}", self.shown);
        for child in children.split_whitespace() {
            sys::kill(child.parse().unwrap(), signal);
        }
    }

    /// Waits until stdout holds the text.
    #[track_caller]
    pub fn await_output(&self, text: &str) {
        let holds = || String::from_utf8_lossy(&self.stdout.bytes()).contains(text);
        // What has ended says nothing more.
        eventually(self.limit, || *self.stdout.ended.lock().unwrap() || holds());
        assert!(holds(), "never said {text:?}: {}\n{}", self.shown, self.so_far());
    }

    /// What it has said.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout.bytes()).into_owned()
    }

    fn so_far(&self) -> Finished {
        Finished::new(-1, self.stdout.bytes(), &self.stderr.bytes())
    }

    /// Waits for the end of the launcher and of its output.
    #[track_caller]
    pub fn wait(mut self) -> Finished {
        let end = Instant::now() + self.limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "does not end: {}\n{}", self.shown, self.so_far());
            std::thread::sleep(Duration::from_millis(3));
        };
        self.status = Some(status);
        let closed = eventually(soon(), || {
            *self.stdout.ended.lock().unwrap() && *self.stderr.ended.lock().unwrap()
        });
        assert!(closed, "something still holds the output of {}\n{}", self.shown, self.so_far());
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Finished::new(code, self.stdout.bytes(), &self.stderr.bytes())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The processes below one, the nearest first.
#[cfg(target_os = "linux")]
pub fn descendants(ancestor: u32) -> Vec<u32> {
    let mut found = vec![ancestor];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        let list = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(list).unwrap_or_default();
        found.extend(children.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
        at += 1;
    }
    found.split_off(1)
}
