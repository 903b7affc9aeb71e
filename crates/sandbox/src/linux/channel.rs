//! The socket between launcher and init: typed messages, one per packet.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::core::report::{Answer, Evidence};
use crate::linux::leftovers::Leftovers;
use crate::linux::sys::{Change, ProcessUsage};

/// A step that failed, by its place in the plan.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    pub step: usize,
    pub errno: i32,
    /// Which part of the step, where it has several.
    pub part: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ToLauncher {
    Failed(Failed),
    /// The kernel's answers to steps, in the order of the plan. Carries the listener of the
    /// system call filter, if it has one.
    Done(Vec<(usize, Seen)>),
    /// Carries the controlling side of the sandbox's terminal.
    Terminal,
    /// Carries the sandbox's table of mounts, and its mount namespace.
    Mounts,
    /// Protected places that were gone when they were to be mounted, by their number in `closer::places`.
    Missing(Vec<usize>),
    /// Every process was told to stop.
    Frozen,
    /// Answers as well, and the command is executed next. Carries the sandbox's /proc.
    Executing(Vec<(usize, Seen)>),
    Stopped,
    Over(LastWords),
}

/// What init says when every other process is dead.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastWords {
    pub ended: CommandEnd,
    /// What the command left where nothing stays.
    pub left: Leftovers,
    /// By all processes together.
    pub used: ProcessUsage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandEnd {
    Exited(i32),
    Signaled(i32),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Seen {
    Confirmed(String),
    Less(String),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum ToInit {
    /// The id maps are written.
    Mapped,
    /// What is to be run was found to be what it was.
    Checked,
    /// To the command alone, as `kill` would.
    Signal(i32),
    /// To the command's process group, as a terminal would.
    SignalGroup(i32),
    /// To every process in the sandbox.
    SignalAll(i32),
    /// Stops every process, and says so.
    Freeze,
    Thaw,
}

impl Seen {
    /// What it can take at most in a message: its number, its words, its text escaped.
    pub fn largest_size(&self) -> usize {
        let (Seen::Confirmed(text) | Seen::Less(text)) = self;
        40 + 6 * text.len()
    }
}

impl CommandEnd {
    pub fn of(change: Change) -> Option<CommandEnd> {
        match change {
            Change::Exited(code) => Some(CommandEnd::Exited(code)),
            Change::Signaled(signal) => Some(CommandEnd::Signaled(signal)),
            Change::Stopped(_) | Change::Continued => None,
        }
    }
}

impl From<(usize, Seen)> for Evidence {
    fn from((step, seen): (usize, Seen)) -> Evidence {
        let answer = match seen {
            Seen::Confirmed(text) => Answer::Confirmed(text),
            Seen::Less(text) => Answer::Less(text),
        };
        Evidence { step, answer }
    }
}

/// One end of the socket.
pub struct Channel(OwnedFd);

/// The largest message: answers are sent in parts, and each text is cut.
pub const PACKET: usize = 16 * 1024;
/// How many descriptors one message can carry.
pub const MOST_DESCRIPTORS: usize = 64;
/// The longest text in a message; escaped, it may be six times as long.
pub const LONGEST_TEXT: usize = 300;

impl Channel {
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (a, b) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(a), Channel(b)))
    }

    pub fn from_fd(fd: OwnedFd) -> Channel {
        Channel(fd)
    }

    pub fn send<M: Serialize>(&self, message: &M) -> io::Result<()> {
        self.send_with(message, &[])
    }

    pub fn send_with<M: Serialize>(&self, message: &M, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next message with the descriptor it carries, or `None` at the end: the other side is
    /// gone.
    pub fn receive<M: for<'a> Deserialize<'a>>(&self) -> io::Result<Option<(M, Option<OwnedFd>)>> {
        Ok(self.receive_all()?.map(|(message, fds)| (message, fds.into_iter().next())))
    }

    pub fn receive_all<M: for<'a> Deserialize<'a>>(&self) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
        let mut bytes = vec![0; PACKET];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                // A peer that died with messages unread resets the socket. The kernel says so once, and
                // before it hands out what the peer had sent: its last words come next.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
                other => break other?,
            }
        };
        if received.bytes == 0 {
            return Ok(None);
        }
        let mut carried = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                carried.extend(fds);
            }
        }
        let message = serde_json::from_slice(&bytes[..received.bytes])?;
        Ok(Some((message, carried)))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An order that crosses the end of the command must not cost its exit code.
    #[test]
    fn last_words_arrive_though_the_peer_read_nothing() {
        let (launcher, init) = Channel::pair().unwrap();
        launcher.send(&ToInit::SignalAll(libc::SIGCONT)).unwrap();
        let ended = CommandEnd::Exited(6);
        let last = LastWords { ended, left: Leftovers::default(), used: ProcessUsage::so_far() };
        init.send(&ToLauncher::Over(last)).unwrap();
        drop(init);
        match launcher.receive::<ToLauncher>().unwrap() {
            Some((ToLauncher::Over(last), None)) => assert_eq!(last.ended, ended),
            heard => panic!("{heard:?}"),
        }
        assert!(launcher.receive::<ToLauncher>().unwrap().is_none());
    }
}
