//! Whether a job ends its processes with it, tried.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use crate::windows::command_line;
use crate::windows::job::JobLimits;
use crate::windows::sys::handles::Inheritable;
use crate::windows::sys::job::Job;
use crate::windows::sys::process::{Children, Start, Suspended};

/// Whether a process is gone when the last handle of its job is: tried with one that never runs.
pub fn dies_with_its_job() -> io::Result<bool> {
    let job = Job::new()?;
    job.set_limits(JobLimits::default())?;
    let suspended = start_in(&job)?;
    drop(job);
    suspended.is_ended(Duration::from_secs(5))
}

/// This program once more, in a job, suspended for ever.
pub fn start_in(job: &Job) -> io::Result<Suspended> {
    let own = std::env::current_exe()?;
    let line = command_line::of_program(own.as_os_str(), &[]).map_err(io::Error::other)?;
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("NUL")?;
    let stdio =
        [Inheritable::of(&nothing)?, Inheritable::of(&nothing)?, Inheritable::of(&nothing)?];
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    let start = Start {
        program: own.as_os_str(),
        command_line: &line,
        environment: &[],
        directory: &root,
        stdio: &stdio,
        job,
        token: None,
        container: None,
        desktop: None,
        children: Children::Refused,
    };
    start.suspended()
}

/// The same, tried once: a system does not change its mind while we run.
pub fn jobs_kill() -> io::Result<bool> {
    static DO: OnceLock<bool> = OnceLock::new();
    match DO.get() {
        Some(known) => Ok(*known),
        None => dies_with_its_job().map(|found| *DO.get_or_init(|| found)),
    }
}
