//! The launcher's side of the library on Windows, where only `mcp run` starts programs so far: types without
//! values.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Instant;

use crate::runs::{Record, Stats};
use crate::sandbox::wire::Heard;

/// Nothing is taken of the host.
pub struct Claim;

pub enum RunHandle {}

impl RunHandle {
    pub fn stats(&self, _: &Record) -> Stats {
        match *self {}
    }

    pub fn kill(&self, _: &Record) -> io::Result<()> {
        match *self {}
    }
}

pub enum Line {}

impl Line {
    pub fn send(&self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        match *self {}
    }
}

pub enum Launcher {}

impl Launcher {
    pub fn child(&mut self) -> &mut Child {
        match *self {}
    }

    pub fn id(&self) -> u32 {
        match *self {}
    }

    pub fn send(&self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub fn hear(&mut self, _: Option<Instant>) -> io::Result<Heard> {
        match *self {}
    }

    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        match *self {}
    }

    pub fn kill(&self) -> io::Result<()> {
        match *self {}
    }

    pub fn terminate(&self) -> io::Result<()> {
        match *self {}
    }
}

pub fn ending_signal(_: ExitStatus) -> Option<i32> {
    None
}

pub fn is_single_threaded() -> bool {
    true
}

pub fn let_go_of_stdio() {}
