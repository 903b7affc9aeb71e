//! The launcher's side of a relay: the relay's process in the command's container, and its pipes.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::windows::confinement::Confinement;
use crate::windows::own_program::{OwnProgram, Pipes};
use crate::windows::sys::job::Job;
use crate::windows::sys::process::Children;
use mcp_net::mux::{Frame, FrameReader};
use mcp_net::mux_endpoint::{Door, Ended, Farewell, MuxEndpoint, Over};

/// A relay that sends nothing for this long hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the relay may take to send the rest after the command's end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What the relay needs at most: its windows, twice, and itself.
const MEMORY: u64 = 128 << 20;

/// A relay at work. It dies when this is dropped.
pub struct Relay {
    job: Option<Job>,
    /// The port that the relay said it serves.
    pub port: u16,
    farewell: Farewell,
    far_end: Receiver<io::Result<Ended>>,
}

impl Relay {
    /// Starts it in the container, and connects its pipes to this door.
    pub fn start(
        confinement: &Confinement,
        arguments: &[OsString],
        door: Door,
    ) -> io::Result<Relay> {
        let Process { job, port, from, to } = Process::start(confinement, arguments)?;
        let mux_endpoint = MuxEndpoint::new(door, from, to)?;
        let farewell = mux_endpoint.farewell();
        let (done, far_end) = channel();
        std::thread::Builder::new()
            .name("mcp-relay".to_owned())
            .spawn(move || done.send(mux_endpoint.run()))?;
        Ok(Relay { job: Some(job), port, farewell, far_end })
    }

    /// Ends it after it has sent the rest. The first call returns why it is over.
    pub fn stop(&mut self) -> Option<Over> {
        let job = self.job.take()?;
        self.farewell.say();
        let mut ended = self.far_end.recv_timeout(LAST_WORDS).ok();
        let _ = job.terminate(1);
        drop(job);
        if ended.is_none() {
            // Its pipes are closed now, so this comes to an end.
            ended = self.far_end.recv_timeout(PATIENCE).ok();
        }
        ended.and_then(Result::ok).map(|ended| ended.over)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A relay that has said which port it serves.
struct Process {
    job: Job,
    port: u16,
    from: PipeReader,
    to: PipeWriter,
}

impl Process {
    fn start(confinement: &Confinement, arguments: &[OsString]) -> io::Result<Process> {
        // A job of its own: the relay must not count as one of the command's processes.
        let job = confinement.job_beside(MEMORY)?;
        let own = OwnProgram::with(arguments)?;
        let Pipes { inside, to, from } = Pipes::make()?;
        let mut start = own.start(confinement, &inside);
        start.job = &job;
        start.children = Children::Refused;
        let process = start.suspended()?.resume()?;
        drop(inside);
        let greeting = greeting(from)?;
        let (port, from) = greeting.recv_timeout(PATIENCE).map_err(|_| {
            process.kill(1);
            io::Error::other("the relay ended or hangs, and did not say which port it serves")
        })?;
        Ok(Process { job, port, from, to })
    }
}

/// Receives nothing when the relay ends, or sends something else first.
fn greeting(mut from: PipeReader) -> io::Result<Receiver<(u16, PipeReader)>> {
    let (tell, told) = channel();
    let hear = move || {
        let mut frames = FrameReader::default();
        let mut byte = [0];
        while let Ok(()) = from.read_exact(&mut byte) {
            frames.feed(&byte);
            match frames.next_frame() {
                Ok(None) => {}
                Ok(Some(Frame::Hello { port })) if port != 0 => {
                    let _ = tell.send((port, from));
                    return;
                }
                Ok(Some(_)) | Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().name("mcp-relay-hello".to_owned()).spawn(hear)?;
    Ok(told)
}
