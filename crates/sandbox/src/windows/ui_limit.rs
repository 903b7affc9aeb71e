//! Whether a program starts under one UI limit of a job, for `mcp doctor --full`: which of them programs stand is known from
//! others only.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::windows::job::JobLimits;
use crate::windows::sys::handles::Inheritable;
use crate::windows::sys::job::Job;
use crate::windows::sys::process::{Children, Start};
use crate::windows::{command_line, environment};

const PATIENCE: Duration = Duration::from_secs(20);

/// Whether it ends with 0 in a job with this limit alone; with 0 for the limit, in a job without any.
pub fn starts_under(limit: u32, program: &Path, arguments: &[OsString]) -> io::Result<bool> {
    let job = Job::new()?;
    job.set_limits(JobLimits::default())?;
    let read = if limit == 0 { 0 } else { job.restrict_ui(limit)? };
    if read != limit {
        return Err(io::Error::other(format!("was accepted, and reads {read:#x}")));
    }
    let line =
        command_line::of_program(program.as_os_str(), arguments).map_err(io::Error::other)?;
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("NUL")?;
    let stdio =
        [Inheritable::of(&nothing)?, Inheritable::of(&nothing)?, Inheritable::of(&nothing)?];
    let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    let start = Start {
        program: program.as_os_str(),
        command_line: &line,
        environment: &environment::block(&variables),
        directory: &root,
        stdio: &stdio,
        job: &job,
        token: None,
        container: None,
        desktop: None,
        children: Children::Allowed,
    };
    let process = start.suspended()?.resume()?;
    Ok(process.ended(PATIENCE)? == Some(0))
}
