//! The standard descriptors of a run, and the relays for those that the command must not have itself.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio as ChildStdio;

use crate::core::request::{Request, Stdio};
use crate::macos::terminal::{self, Pair};
use crate::unix::relay::{Far, Pipe, Relay, is_same_file, set_nonblocking};
use crate::unix::terminal::{copy_settings, standard};

/// The three standard descriptors of the helper, and what the launcher copies for them.
pub(super) struct Streams {
    pub(super) inside: [ChildStdio; 3],
    pub(super) inputs: Vec<Relay>,
    pub(super) outputs: Vec<Relay>,
}

impl Streams {
    pub(super) fn prepare(request: &Request, terminal: Option<&Pair>) -> io::Result<Streams> {
        if let Some(pair) = terminal {
            copy_settings(&pair.slave, &request.stdio);
        }
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let mut inside = Vec::new();
        let most = request.policy.limits.file_size.value.map(|size| size.0);
        // The end of the pipe for standard output, where errors go to the same file.
        let mut first = None;
        for (fd, kind) in (0..).zip(&request.stdio) {
            inside.push(match (kind, terminal) {
                (Stdio::Terminal, Some(pair)) => ChildStdio::from(pair.slave.try_clone()?),
                (Stdio::Filtered, _) => {
                    let Pipe { read, write } = Pipe::new()?;
                    set_nonblocking(read.as_fd())?;
                    let own = Far::shared(standard(fd).try_clone_to_owned()?);
                    outputs.push(Relay::filtered(read, own, most));
                    write.into()
                }
                (Stdio::Relayed, _) => {
                    let end = match first.take() {
                        Some(end) if fd == 2 && is_same_file(standard(1), standard(2)) => end,
                        _ => relayed(fd, most, &mut inputs, &mut outputs)?,
                    };
                    if fd == 1 {
                        first = Some(end.try_clone()?);
                    }
                    end.into()
                }
                _ => ChildStdio::inherit(),
            });
        }
        let none = || io::Error::other("three descriptors");
        let inside = inside.try_into().map_err(|_| none())?;
        Ok(Streams { inside, inputs, outputs })
    }
}

fn relayed(
    fd: i32,
    most: Option<u64>,
    inputs: &mut Vec<Relay>,
    outputs: &mut Vec<Relay>,
) -> io::Result<OwnedFd> {
    let user = standard(fd);
    let own = match rustix::termios::isatty(user) {
        true => terminal::reopen(user)?,
        false => user.try_clone_to_owned()?,
    };
    let Pipe { read, write } = Pipe::new()?;
    if fd == 0 {
        set_nonblocking(write.as_fd())?;
        inputs.push(Relay::new(own, write));
        Ok(read)
    } else {
        set_nonblocking(read.as_fd())?;
        outputs.push(Relay::output(read, own, most));
        Ok(write)
    }
}
