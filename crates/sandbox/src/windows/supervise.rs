//! The launcher while a command runs: one loop over the job's messages, time and Ctrl-C. Whatever happens, it
//! ends with the job empty.

use std::io;
use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::core::report::{Ending, Usage};
use crate::core::termination::{Due, Termination};
use crate::windows::helper_main::BREAK_MARK;
use crate::windows::stdio_copy::Input;
use crate::windows::sys::console::{CLOSE, INTERRUPT, TERMINATE};
use crate::windows::sys::job::Job;
use crate::windows::sys::port::{Event, Port};
use crate::windows::sys::process::Process;
use crate::windows::win32::ERROR_NOT_ENOUGH_QUOTA;

/// A job tells of its processes' ends; this finds what it did not tell.
const LOOK: Duration = Duration::from_millis(250);
/// How long the last processes may take to be gone, once they are killed.
const GONE: Duration = Duration::from_secs(10);
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGXCPU: i32 = 24;

#[derive(Debug, Default)]
pub struct Limits {
    pub timeout: Option<Duration>,
    pub grace: Duration,
    /// Whether the job has JOB_OBJECT_LIMIT_JOB_TIME.
    pub has_time_limit: bool,
}

pub struct Ended {
    pub ending: Ending,
    pub usage: Usage,
    pub is_tree_dead: bool,
}

pub struct Supervisor<'a> {
    pub job: &'a Job,
    pub port: &'a Port,
    pub process: Process,
    pub input: Option<Input>,
    pub started: Instant,
    has_time_limit: bool,
    termination: Termination,
    ending: Option<Ending>,
    active: u64,
    most: u64,
    refused: u64,
}

impl<'a> Supervisor<'a> {
    pub fn new(
        job: &'a Job,
        port: &'a Port,
        process: Process,
        limits: Limits,
        input: Option<Input>,
    ) -> Supervisor<'a> {
        let started = Instant::now();
        let mut termination = Termination::new(limits.timeout, limits.grace);
        termination.start(started);
        Supervisor {
            job,
            port,
            process,
            input,
            started,
            has_time_limit: limits.has_time_limit,
            termination,
            ending: None,
            active: 0,
            most: 0,
            refused: 0,
        }
    }

    /// Runs until the command has ended, and then ends what it has left.
    pub fn run(mut self) -> io::Result<Ended> {
        let code = loop {
            if let Some(code) = self.process.ended(Duration::ZERO)? {
                break code;
            }
            if let Some(event) = self.port.wait(self.pause())? {
                self.hear(event);
            }
            self.keep_time();
        };
        let wall = self.started.elapsed();
        let is_tree_dead = self.clear()?;
        let counted = self.job.counted()?;
        let known = |bytes: u64| (bytes > 0).then_some(bytes);
        let usage = Usage {
            wall_seconds: wall.as_secs_f64(),
            cpu_seconds: counted.time as f64 / 1e7,
            max_process_resident_bytes: counted.peak_process_memory,
            max_tree_memory_bytes: known(counted.peak_memory),
            max_processes: known(self.most),
            refused_processes: self.refused,
            ..Usage::default()
        };
        // A system that does not post the end of the job's time ends the processes with this code.
        let is_out_of_time = self.has_time_limit && code.cast_signed() == ERROR_NOT_ENOUGH_QUOTA;
        let exited = match is_out_of_time {
            true => Ending::Signaled(SIGXCPU),
            false => Ending::Exited(code.cast_signed()),
        };
        let ending = self.ending.unwrap_or(exited);
        Ok(Ended { ending, usage, is_tree_dead })
    }

    fn pause(&self) -> Duration {
        let end = self.termination.next();
        let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
        // Rounded up: a wait that is too short by a fraction would spin.
        left.min(LOOK) + Duration::from_millis(1)
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::NewProcess(_) => {
                self.active += 1;
                self.most = self.most.max(self.active);
            }
            Event::Exit(_) => self.active = self.active.saturating_sub(1),
            Event::ProcessLimit => self.refused += 1,
            Event::TimeLimit => {
                self.end(Ending::Signaled(SIGXCPU));
                self.kill();
            }
            // The first one is the command's to obey, with its own code where it has one; the second is an order.
            Event::Wake(INTERRUPT) => {
                let due = self.termination.on_signal(SIGINT, Instant::now());
                self.carry_out(due);
            }
            Event::Wake(TERMINATE) => {
                let due = self.termination.on_signal(SIGTERM, Instant::now());
                self.carry_out(due);
            }
            Event::Wake(CLOSE) => {
                self.end(Ending::Signaled(SIGKILL));
                self.kill();
            }
            // Memory that is refused is the command's to deal with.
            Event::Empty | Event::MemoryLimit | Event::Wake(_) | Event::Other(_) => {}
        }
    }

    /// The first reason stands: a command that ends on the Ctrl-Break of a timeout has timed out.
    fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending);
    }

    fn kill(&self) {
        let _ = self.job.terminate(1);
    }

    fn keep_time(&mut self) {
        let due = self.termination.on_time(Instant::now());
        if due == Due::Ask {
            self.end(Ending::Timeout);
        }
        self.carry_out(due);
    }

    fn carry_out(&mut self, due: Due) {
        match due {
            Due::Nothing => {}
            Due::Ask => {
                if let Some(input) = &self.input {
                    input.close();
                }
                self.send_break();
            }
            Due::Kill => {
                if let Some(ending) = self.termination.ending() {
                    self.end(ending);
                }
                self.kill();
            }
        }
    }

    /// Asks the command to end, as Ctrl-Break does in a console. Only a process in that console can, so it is
    /// another process of ours that goes there.
    fn send_break(&self) {
        const DETACHED_PROCESS: u32 = 8;
        let Ok(own) = std::env::current_exe() else { return };
        let mut command = Command::new(own);
        command.arg(BREAK_MARK).arg(self.process.id.to_string()).creation_flags(DETACHED_PROCESS);
        // One that cannot be started changes nothing: the grace runs already.
        let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }

    /// Ends what is left; whether nothing is.
    fn clear(&self) -> io::Result<bool> {
        let until = Instant::now() + GONE;
        loop {
            if self.job.counted()?.active == 0 {
                return Ok(true);
            }
            self.kill();
            if Instant::now() > until {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
