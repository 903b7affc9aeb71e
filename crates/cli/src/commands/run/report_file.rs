//! The file that `--report` names. It may lie in a directory that the command may write, so nothing there is trusted:
//! it is emptied before the run, and put in place anew when the last process is dead, whatever is at its name then.
//!
//! Stops: a report that the command wrote, unlinked, or led elsewhere by a symlink (the file or a directory above it), at
//! the start or meanwhile; a pipe that no process reads.
//! Leaves open: what the command put there stays where the launcher itself was killed.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
#[path = "report_file/unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "report_file/other.rs"]
mod system;

use crate::failure::Failure;
use system::Directory;

pub struct ReportFile {
    path: PathBuf,
    /// The file as it was at the start, written where no other can be made.
    first: File,
    /// Its own at the start.
    permissions: Permissions,
    directory: Directory,
}

impl ReportFile {
    /// Empties or makes the file, so that one of an earlier run does not pass for this one's.
    pub fn create(path: &Path) -> Result<ReportFile, Failure> {
        let refuse = |error: io::Error| Failure::file(path, &error);
        let path = std::path::absolute(path).map_err(refuse)?;
        let directory = Directory::of(&path).map_err(refuse)?;
        let first = directory.empty_file().map_err(refuse)?;
        let permissions = first.metadata().map_err(refuse)?.permissions();
        Ok(ReportFile { path, first, permissions, directory })
    }

    /// Puts the report in place, at the path that was named and through no link.
    pub fn write(self, report: &str) -> io::Result<()> {
        let bytes = [report.as_bytes(), b"\n"].concat();
        // The directory may be another one by now; where the path leads is where people read.
        match Directory::of(&self.path) {
            Ok(now) => now.replace(&bytes, &self.first, self.permissions),
            Err(error) => {
                // What is in the way was not there at the start. Behind it there may be a report of the command's own.
                system::remove_links(&self.path);
                let _ = self.directory.replace(&bytes, &self.first, self.permissions);
                Err(error)
            }
        }
    }
}

fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(bytes)
}
