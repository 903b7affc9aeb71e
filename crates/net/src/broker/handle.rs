//! The broker as the supervisor holds it: a thread to be told things and, at the end, asked.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use mcp_policy::HostName;
use mio::{Token, Waker};

use super::slots::{SocketSide, token};
use super::{Broker, NetworkUse, Watcher};

pub enum Command {
    Watch(Box<dyn Watcher>),
    /// What the host says of a name; nothing where it knows none.
    Named(HostName, Vec<IpAddr>),
    Stop,
}

pub type Inbox = Receiver<Command>;

/// Tells the broker something, from any thread.
#[derive(Clone)]
pub struct Caller {
    outbox: Sender<Command>,
    waker: Arc<Waker>,
}

impl Caller {
    /// A thread that has ended early says so when it is joined.
    pub fn send(&self, command: Command) {
        let _ = self.outbox.send(command);
        let _ = self.waker.wake();
    }
}

/// A broker that runs in a thread of its own.
pub struct Handle {
    caller: Caller,
    thread: JoinHandle<NetworkUse>,
}

impl Broker {
    /// Runs in a thread of its own.
    pub fn start(mut self) -> io::Result<Handle> {
        const WAKER: Token = token(0, SocketSide::Inner);
        let waker = Arc::new(Waker::new(self.poll.registry(), WAKER)?);
        let (outbox, inbox) = mpsc::channel();
        let caller = Caller { outbox, waker };
        self.caller = Some(caller.clone());
        let thread = std::thread::Builder::new()
            .name("mcp-network".to_owned())
            .spawn(move || self.run(&inbox))?;
        Ok(Handle { caller, thread })
    }
}

impl Handle {
    /// Adds a watcher to the running loop.
    pub fn watch(&self, watcher: Box<dyn Watcher>) {
        self.caller.send(Command::Watch(watcher));
    }

    /// Ends the thread. What the command had sent gets out first, but nothing waits long.
    pub fn finish(self) -> NetworkUse {
        self.caller.send(Command::Stop);
        self.thread.join().unwrap_or_default()
    }
}
