//! The file: opened before the run, appended to by one write, rotated under a lock.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Entry, Event, What};
use crate::failure::Failure;
use crate::{paths, render};

const LARGEST: u64 = 4 << 20;
pub const KEPT: u32 = 5;

pub struct AuditLog {
    path: PathBuf,
    pub what: What,
    /// Values that must not be in it.
    pub hidden: Vec<String>,
    /// What the hints after a failure were about.
    pub hints: Vec<&'static str>,
}

impl AuditLog {
    /// Writes nothing yet, but makes sure that it could.
    pub fn open(what: What) -> Result<AuditLog, Failure> {
        let path = paths::audit_log().ok_or_else(|| {
            Failure::Refused(
                "not started: there is no place for the audit log, for neither HOME nor XDG_STATE_HOME names a \
                 directory, and this account has no home (--no-log runs without it)"
                    .to_owned(),
            )
        })?;
        let log = AuditLog { path, what, hidden: Vec::new(), hints: Vec::new() };
        log.append().map_err(|e| log.unwritable(&e))?;
        Ok(log)
    }

    fn unwritable(&self, error: &std::io::Error) -> Failure {
        Failure::Refused(format!(
            "not started: the audit log {} cannot be written: {error} (--no-log runs without it)",
            render::plain(&self.path.to_string_lossy())
        ))
    }

    /// Opened to be added to, made with its directory where there is none.
    fn append(&self) -> std::io::Result<File> {
        let mut options = File::options();
        options.append(true).read(true);
        match options.open(&self.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            other => return other.and_then(that_keeps),
        }
        if let Some(directory) = self.path.parent() {
            mcp_package::store::make_private(directory)?;
        }
        options.create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = that_keeps(options.open(&self.path)?)?;
        // Whatever the umask took away.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        Ok(file)
    }

    /// The file that is the log now, locked, and its length.
    fn locked(&self) -> std::io::Result<(File, u64)> {
        loop {
            let file = self.append()?;
            file.lock()?;
            let metadata = file.metadata()?;
            // Another process may have rotated it between the opening and the lock.
            if is_same(&metadata, &self.path) {
                return Ok((file, metadata.len()));
            }
        }
    }

    pub fn start(&self) -> Result<(), Failure> {
        self.write(Event::Start).map_err(|e| self.unwritable(&e))
    }

    /// After the run nothing can be stopped any more: told, and no more.
    pub fn end(&self, event: Event) {
        if let Err(error) = self.write(event) {
            render::say(&format!(
                "the audit log {} cannot be written: {error}",
                render::path(&self.path)
            ));
        }
    }

    fn write(&self, event: Event) -> std::io::Result<()> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let entry = Entry { time, pid: std::process::id(), what: self.what.clone(), event };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let (mut file, length) = self.locked()?;
        if is_torn(&file, length)? {
            line.insert(0, b'\n');
        }
        if length + line.len() as u64 > LARGEST {
            // The lock is held until there is another file in its place.
            rotate(&self.path)?;
            let old = std::mem::replace(&mut file, self.append()?);
            file.lock()?;
            drop(old);
        }
        file.write_all(&line)
    }
}

/// What is written to a pipe or a device is in no log.
fn that_keeps(file: File) -> std::io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::Error::other("is not a regular file")),
    }
}

/// Whether the last line has no end: its writer died, or the disk was full. What follows must not become part of it.
fn is_torn(mut file: &File, length: u64) -> std::io::Result<bool> {
    if length == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn rotate(path: &Path) -> std::io::Result<()> {
    for number in (1..KEPT).rev() {
        let (from, to) = (numbered(path, number), numbered(path, number + 1));
        match fs::rename(from, to) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    fs::rename(path, numbered(path, 1))
}

pub fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(unix)]
fn is_same(open: &fs::Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).is_ok_and(|named| (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

/// An open file cannot be renamed there.
#[cfg(not(unix))]
fn is_same(_: &fs::Metadata, _: &Path) -> bool {
    true
}
