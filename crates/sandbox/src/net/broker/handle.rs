//! The broker as the supervisor holds it: a thread to be told things and, at the end, asked.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use mio::{Token, Waker};

use super::slots::{Side, token};
use super::{Broker, NetworkUse, Watcher};

pub enum Command {
    Watch(Box<dyn Watcher>),
    Stop,
}

pub type Inbox = Receiver<Command>;

pub struct Handle {
    outbox: Sender<Command>,
    waker: Arc<Waker>,
    thread: JoinHandle<NetworkUse>,
}

impl Broker {
    /// Runs in a thread of its own.
    pub fn start(self) -> io::Result<Handle> {
        const WAKER: Token = token(0, Side::Inner);
        let waker = Arc::new(Waker::new(self.poll.registry(), WAKER)?);
        let (outbox, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("mcp-network".to_owned())
            .spawn(move || self.run(&inbox))?;
        Ok(Handle { outbox, waker, thread })
    }
}

impl Handle {
    pub fn watch(&self, watcher: Box<dyn Watcher>) {
        self.send(Command::Watch(watcher));
    }

    /// Ends the thread. What the command had sent gets out first, but nothing waits long.
    pub fn finish(self) -> NetworkUse {
        self.send(Command::Stop);
        self.thread.join().unwrap_or_default()
    }

    /// A thread that has ended early says so when it is joined.
    fn send(&self, command: Command) {
        let _ = self.outbox.send(command);
        let _ = self.waker.wake();
    }
}
