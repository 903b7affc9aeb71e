//! Between the launcher and its helper inside the sandbox: a stream socket, each message after its
//! length. (Packets of a unix socket have no order on macOS.) The end of the stream without a message means that the
//! helper has executed the command.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::report::{Answer, Evidence};
use crate::macos::step::Act;

/// What the helper has to do, by the step's place in the plan.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// And whether standard descriptors are the session's terminal.
    Session {
        has_terminal: bool,
    },
    Refused(Act),
    Limit {
        number: i32,
        value: u64,
    },
    Descriptors,
    /// Already in `env`.
    Environment,
}

/// Never on a command line or in an environment: there are secrets in it.
#[derive(Debug, Serialize, Deserialize)]
pub struct HelperOrder {
    pub tasks: Vec<(usize, Task)>,
    pub launcher: i32,
    /// Where the launcher listens, for the self-check.
    pub port: u16,
    /// The last step.
    pub execute: usize,
    pub program: PathBuf,
    pub cwd: PathBuf,
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
}

/// A step that failed, by its place in the plan.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    pub step: usize,
    pub errno: i32,
    pub why: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// All is done but the exec, which waits for [`Go`].
    Ready(Vec<(usize, Seen)>),
    Failed(Failed),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Go;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Seen {
    Confirmed(String),
    Less(String),
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

/// More than any order; an environment has at most a megabyte.
const LARGEST: u64 = 16 << 20;

pub struct Channel(UnixStream);

impl Channel {
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (a, b) = UnixStream::pair()?;
        Ok((Channel(a), Channel(b)))
    }

    pub fn from_fd(fd: OwnedFd) -> Channel {
        Channel(fd.into())
    }

    pub fn send<M: Serialize>(&mut self, message: &M) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        self.0.write_all(&(bytes.len() as u64).to_le_bytes())?;
        self.0.write_all(&bytes)
    }

    /// The next message, or `None` at the end.
    pub fn receive<M: for<'a> Deserialize<'a>>(&mut self) -> io::Result<Option<M>> {
        let mut length = [0; size_of::<u64>()];
        match self.0.read_exact(&mut length) {
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
                ) =>
            {
                return Ok(None);
            }
            other => other?,
        }
        let length = u64::from_le_bytes(length);
        if length > LARGEST {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let mut bytes = vec![0; length as usize];
        self.0.read_exact(&mut bytes)?;
        Ok(Some(serde_json::from_slice(&bytes)?))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
