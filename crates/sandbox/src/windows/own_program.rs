//! Starts our own program in the confinement, as a helper or as a relay.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::path::PathBuf;

use crate::windows::confinement::Confinement;
use crate::windows::sys::handles::Inheritable;
use crate::windows::sys::process::Start;
use crate::windows::{command_line, environment};

pub struct OwnProgram {
    path: PathBuf,
    line: OsString,
    block: Vec<OsString>,
    directory: OsString,
}

impl OwnProgram {
    pub fn with(arguments: &[OsString]) -> io::Result<OwnProgram> {
        let path = std::env::current_exe()?;
        let line =
            command_line::of_program(path.as_os_str(), arguments).map_err(io::Error::other)?;
        let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
        let block = environment::block(&[("SystemRoot".into(), root.clone())]);
        Ok(OwnProgram { path, line, block, directory: root })
    }

    /// As the command would be started.
    pub fn start<'a>(
        &'a self,
        confinement: &'a Confinement,
        stdio: &'a [Inheritable; 3],
    ) -> Start<'a> {
        confinement.start(self.path.as_os_str(), &self.line, &self.block, &self.directory, stdio)
    }
}

/// A pipe to it and one from it.
pub struct Pipes {
    /// Its own ends. They are closed here once it has them.
    pub inside: [Inheritable; 3],
    pub to: PipeWriter,
    pub from: PipeReader,
}

impl Pipes {
    pub fn make() -> io::Result<Pipes> {
        let (hear, to) = io::pipe()?;
        let (from, speak) = io::pipe()?;
        let inside = [Inheritable::of(&hear)?, Inheritable::of(&speak)?, nothing()?];
        Ok(Pipes { inside, to, from })
    }
}

/// Standard input at its end, and output that no process reads.
pub fn nothing() -> io::Result<Inheritable> {
    Inheritable::of(&std::fs::OpenOptions::new().read(true).write(true).open("NUL")?)
}
