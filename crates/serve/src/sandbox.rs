//! One sandbox: a child process `mcp run …`, the requests that are open in it, and its end.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp_protocol::{Delivery, Exchange, Frame, Framer, Id, Ids, Kind, Message, Refusal, error};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use crate::config::{Limits, Server};
use crate::events::{Stream, Waiter};
use crate::flag;
use crate::memory::{Budget, Held};
use crate::metrics::Metrics;
use crate::pipes::{self, Unread};
use crate::slots::Slot;
use crate::trace::Span;
use crate::usage::Usage;

/// After its input has ended a server has so long to end by itself.
const FAREWELL: Duration = Duration::from_secs(2);

pub struct Sandbox {
    pub server: String,
    /// Messages that belong to no request: the stream of a session; none where there are no sessions.
    own: Option<Arc<Stream>>,
    state: Mutex<State>,
    stdin: Arc<Unread>,
    budget: Arc<Budget>,
    ending: watch::Sender<bool>,
    ended: watch::Sender<bool>,
    attached: AtomicUsize,
    limits: Limits,
    metrics: Arc<Metrics>,
}

struct State {
    exchange: Exchange<Waiter>,
    open: Vec<Arc<Stream>>,
    used: Instant,
    ended: bool,
}

/// What a sandbox is started with.
pub struct Start<'a> {
    pub program: &'a Path,
    pub name: &'a str,
    pub server: &'a Server,
    pub limits: &'a Limits,
    pub metrics: Arc<Metrics>,
    pub usage: Arc<Usage>,
    pub principal: &'a Arc<str>,
    pub budget: Arc<Budget>,
    pub own: Option<Arc<Stream>>,
    pub slot: Slot,
}

impl Sandbox {
    pub fn start(start: Start<'_>) -> io::Result<Arc<Sandbox>> {
        let mut child = Command::new(start.program)
            // Principals share nothing that outlives a sandbox: a HOME that is kept would be one of all of them.
            // What is no message is counted here, and needs no second reader.
            .args(["run", "--ephemeral", "--raw"])
            .args(&start.server.run)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let gone = || io::Error::other("a pipe is missing");
        let stdin = child.stdin.take().ok_or_else(gone)?;
        let stdout = child.stdout.take().ok_or_else(gone)?;
        let stderr = child.stderr.take().ok_or_else(gone)?;
        let ids = if start.own.is_some() { Ids::Kept } else { Ids::Assigned };
        let lines = Arc::<Unread>::default();
        let sandbox = Arc::new(Sandbox {
            server: start.name.to_owned(),
            own: start.own,
            state: Mutex::new(State {
                exchange: Exchange::new(ids, start.limits.calls),
                open: Vec::new(),
                used: Instant::now(),
                ended: false,
            }),
            stdin: Arc::clone(&lines),
            budget: start.budget,
            ending: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            attached: AtomicUsize::new(0),
            limits: start.limits.clone(),
            metrics: start.metrics,
        });
        sandbox.metrics.started(&sandbox.server);
        tokio::spawn(pipes::tell(sandbox.server.clone(), stderr));
        let counted = child.id().map(|process| {
            start.usage.began(process, start.name, start.principal);
            Counted { usage: start.usage, process }
        });
        let pipes = (stdin, stdout, lines);
        tokio::spawn(Sandbox::live(Arc::clone(&sandbox), child, pipes, (start.slot, counted)));
        Ok(sandbox)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a request on; its answer comes to `stream`.
    pub fn ask(
        &self,
        message: &Message<'_>,
        stream: &Arc<Stream>,
        span: Option<Span>,
    ) -> Result<(), Refusal> {
        let mut state = self.state();
        if state.ended {
            return Err(Refusal::TooMany);
        }
        state.used = Instant::now();
        let waiter = Waiter::new(stream, span);
        let line = state.exchange.request(message, waiter.clone())?.into_owned();
        if self.send(line).is_err() {
            // Nothing was sent, so there is nothing to cancel.
            drop(state.exchange.abandon(&waiter, ""));
            return Err(Refusal::TooMany);
        }
        if !state.open.iter().any(|it| Arc::ptr_eq(it, stream)) {
            state.open.push(Arc::clone(stream));
        }
        Ok(())
    }

    /// Passes on a notification or an answer of the client's.
    pub fn pass(&self, message: &Message<'_>) -> Result<(), Refusal> {
        let mut state = self.state();
        state.used = Instant::now();
        let (line, cancelled) = state.exchange.pass(message);
        let sent = self.send(line.into_owned());
        if let Some(waiter) = cancelled {
            state.open.retain(|it| !Arc::ptr_eq(it, &waiter.stream));
            waiter.stream.close();
        }
        sent.map_err(|()| Refusal::TooMany)
    }

    fn send(&self, mut line: Vec<u8>) -> Result<(), ()> {
        line.push(b'\n');
        let held = Held::take(&self.budget, line.len()).ok_or(())?;
        self.stdin.push(line, held)
    }

    /// No client waits for `stream` any more: its calls are cancelled.
    pub fn abandon(&self, stream: &Arc<Stream>, why: &str) {
        let mut state = self.state();
        let waiter = Waiter::new(stream, None);
        for abandoned in state.exchange.abandon(&waiter, why) {
            let _ = self.send(abandoned.to_server);
            stream.push(&abandoned.to_client, true, Some(error::INTERNAL));
        }
        state.open.retain(|it| !Arc::ptr_eq(it, stream));
        stream.close();
    }

    pub fn is_ended(&self) -> bool {
        self.state().ended
    }

    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// For how long no client has used it; none while one does, and when it ends.
    pub fn unused(&self) -> Option<Duration> {
        let state = self.state();
        let is_free = state.exchange.is_empty()
            && self.attached.load(Ordering::Relaxed) == 0
            && !state.ended
            && !*self.ending.borrow();
        is_free.then(|| state.used.elapsed())
    }

    /// Asks the server to end, by the end of its input.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    pub async fn wait(&self) {
        flag::is_set(&mut self.ended.subscribe()).await;
    }

    /// While a client listens, the sandbox is in use.
    pub fn attach(self: &Arc<Sandbox>) -> Attached {
        self.attached.fetch_add(1, Ordering::Relaxed);
        Attached(Arc::clone(self))
    }

    async fn live(
        self: Arc<Sandbox>,
        mut child: Child,
        (stdin, stdout, lines): (ChildStdin, ChildStdout, Arc<Unread>),
        counted: (Slot, Option<Counted>),
    ) {
        let writing = tokio::spawn(pipes::write(stdin, lines, self.ending.subscribe()));
        let mut ending = self.ending.subscribe();
        {
            let reading = self.read(stdout);
            tokio::pin!(reading);
            let mut tick = tokio::time::interval(Duration::from_secs(1));
            loop {
                tokio::select! {
                    () = &mut reading => break,
                    () = flag::is_set(&mut ending) => {
                        // What the server still says before it ends is heard.
                        let _ = tokio::time::timeout(FAREWELL, &mut reading).await;
                        break;
                    }
                    _ = tick.tick() => self.look_at_the_clock(),
                }
            }
        }
        self.ending.send_replace(true);
        let status = match tokio::time::timeout(FAREWELL, child.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                let _ = child.kill().await;
                child.wait().await.ok()
            }
        };
        writing.abort();
        self.fail(&status.map_or_else(
            || "the server ended".to_owned(),
            |it| format!("the server ended ({it})"),
        ));
        self.metrics.ended(&self.server);
        drop(counted);
        self.ended.send_replace(true);
    }

    fn fail(&self, why: &str) {
        let mut state = self.state();
        state.ended = true;
        for (waiter, answer) in state.exchange.fail(why) {
            waiter.answer(&answer, Some(error::INTERNAL));
            waiter.stream.close();
        }
        state.open.clear();
        self.own.iter().for_each(|own| own.close());
    }

    /// Calls that take too long are cancelled, and a sandbox that no client uses ends.
    fn look_at_the_clock(&self) {
        let late: Vec<Arc<Stream>> = {
            let mut state = self.state();
            state.open.retain(|stream| !stream.is_closed());
            let is_late = |stream: &&Arc<Stream>| {
                !stream.endless && stream.started.elapsed() > self.limits.call_time
            };
            state.open.iter().filter(is_late).map(Arc::clone).collect()
        };
        if self.unused().is_some_and(|unused| unused > self.limits.idle) {
            self.end();
        }
        late.iter().for_each(|stream| self.abandon(stream, "the call took too long"));
    }

    async fn read(&self, mut stdout: ChildStdout) {
        let mut framer = Framer::new(self.limits.max_message);
        let mut held = Held::none(&self.budget);
        while pipes::chunk(&mut stdout, |bytes| framer.feed(bytes, |frame| self.frame(frame))).await
        {
            if !held.set(framer.held()) {
                framer.give_up();
                held.set(0);
            }
        }
        framer.end(|_| self.metrics.dropped(&self.server));
    }

    fn frame(&self, frame: Frame<'_>) {
        match frame {
            Frame::Line(line) => self.line(line),
            Frame::TooLong { bytes, id, has_method } => self.too_long(bytes, id, has_method),
            _ => self.metrics.dropped(&self.server),
        }
    }

    fn line(&self, line: &[u8]) {
        let Ok(message) = Message::read(line) else {
            if !line.iter().all(u8::is_ascii_whitespace) {
                self.metrics.noise(&self.server);
            }
            return;
        };
        match message.kind() {
            Kind::Batch(spans) => spans.iter().for_each(|span| self.line(&line[span.clone()])),
            _ => self.deliver(&message),
        }
    }

    fn deliver(&self, message: &Message<'_>) {
        let mut state = self.state();
        match state.exchange.deliver(message) {
            Delivery::Answer(waiter, text, error) => {
                let took = waiter.stream.started.elapsed();
                self.metrics.answered(&self.server, took, error.is_some());
                waiter.answer(&text, error);
            }
            Delivery::Related(waiter, text) => self.tell(&waiter.stream, &text),
            Delivery::Loose(text) => self.loose(&state, message, &text),
            _ => self.metrics.dropped(&self.server),
        }
    }

    fn tell(&self, stream: &Stream, text: &[u8]) {
        if !stream.push(text, false, None) {
            self.metrics.dropped(&self.server);
        }
    }

    /// What names no request of ours: to the call that is at work, else to the session's own stream.
    fn loose(&self, state: &State, message: &Message<'_>, text: &[u8]) {
        match (&self.own, message.kind()) {
            (Some(own), _) => {
                let to = state.exchange.latest().map_or(own, |waiter| &waiter.stream);
                self.tell(to, text);
            }
            // Without sessions a server cannot ask its client (it answers `input_required` instead).
            (None, Kind::Request { id, .. }) => {
                let _ = self.send(
                    error::answer(Some(id), error::METHOD_NOT_FOUND, "no client can be asked here")
                        .into_bytes(),
                );
            }
            (None, _) => match state.exchange.latest().filter(|_| state.exchange.len() == 1) {
                Some(waiter) => self.tell(&waiter.stream, text),
                None => self.metrics.dropped(&self.server),
            },
        }
    }

    fn too_long(&self, bytes: u64, id: Option<Id>, has_method: bool) {
        self.metrics.dropped(&self.server);
        let most = self.limits.max_message;
        let why = if bytes > most as u64 {
            format!("a message of {bytes} bytes is larger than {most}")
        } else {
            format!("there is no room for a message of {bytes} bytes (limits: memory)")
        };
        if has_method {
            let _ =
                self.send(error::answer(id.as_ref(), error::INVALID_REQUEST, &why).into_bytes());
        } else if let Some(id) = id
            && let Some((waiter, answer)) = self.state().exchange.fail_one(&id, &why)
        {
            waiter.answer(&answer, Some(error::INTERNAL));
        }
    }
}

/// A sandbox whose memory is looked at.
struct Counted {
    usage: Arc<Usage>,
    process: u32,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.usage.ended(self.process);
    }
}

/// See [`Sandbox::attach`].
pub struct Attached(Arc<Sandbox>);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.attached.fetch_sub(1, Ordering::Relaxed);
        self.0.state().used = Instant::now();
    }
}
