//! The journal of a run on the disk, and taking back what it says: at the end of the run, or, where its launcher
//! was killed, at the start of the next one. A journal whose launcher lives cannot be opened by others.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mcp_policy::WindowsPath;
use mcp_policy::windows_path::Spelling;

use crate::windows::disk::Disk;
use crate::windows::journal::{self, Change};
use crate::windows::sys::container;
use crate::windows::win32::ERROR_NOT_FOUND;
use crate::windows::{acl_apply, dacl};

/// No other process can open the file.
const EXCLUSIVE: u32 = 0;
const ENDING: &str = "journal";

/// Takes everything back when it is dropped.
pub struct UndoLog {
    path: PathBuf,
    file: Option<File>,
    made: Vec<Change>,
}

/// Where journals and records are.
pub fn directory() -> PathBuf {
    let local =
        std::env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute());
    local.unwrap_or_else(std::env::temp_dir).join("mcp").join("runs")
}

/// What runs left whose launchers are gone.
pub fn take_back_orphans() {
    sweep(&directory());
}

impl UndoLog {
    pub fn begin(nonce: &str) -> io::Result<UndoLog> {
        let directory = directory();
        fs::create_dir_all(&directory)?;
        sweep(&directory);
        let path = directory.join(nonce).with_extension(ENDING);
        let file =
            OpenOptions::new().write(true).create_new(true).share_mode(EXCLUSIVE).open(&path)?;
        Ok(UndoLog { path, file: Some(file), made: Vec::new() })
    }

    /// Before it is done: what is not written down is not taken back.
    pub fn note(&mut self, made: Change) -> io::Result<()> {
        if let (Some(file), Some(line)) = (&mut self.file, made.line()) {
            file.write_all(line.as_bytes())?;
            file.sync_data()?;
        }
        self.made.push(made);
        Ok(())
    }
}

impl Drop for UndoLog {
    fn drop(&mut self) {
        let is_done = take_back(std::mem::take(&mut self.made));
        drop(self.file.take());
        if is_done {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether all of it is gone. What is not is tried again by the next run.
fn take_back(made: Vec<Change>) -> bool {
    let mut is_done = true;
    for made in journal::in_undo_order(made) {
        let undone = match &made {
            Change::Entry { sid, path } => withdraw(sid, path),
            Change::Profile { name } if journal::is_own_profile(name) => container::remove(name),
            Change::RunDirectory { at } if journal::is_own_directory(at) => fs::remove_dir_all(at),
            Change::Profile { .. } | Change::RunDirectory { .. } => Ok(()),
        };
        is_done &= match undone {
            Ok(()) => true,
            Err(e) => is_moot(&made, &e),
        };
    }
    is_done
}

/// A journal names containers' SIDs and places on drives; of anything else there is no entry of ours.
fn withdraw(sid: &str, path: &str) -> io::Result<()> {
    let nothing = || io::Error::from(io::ErrorKind::NotFound);
    let is_ours = journal::is_app_container_sid(sid);
    let sid = dacl::sid(sid).filter(|_| is_ours).ok_or_else(nothing)?;
    let path = WindowsPath::parse(path, Spelling::Resolved).map_err(|_| nothing())?;
    acl_apply::remove_aces(&Disk, &sid, &path)
}

/// Whether there is nothing to take back: it is gone, or was never ours to change.
fn is_moot(made: &Change, error: &io::Error) -> bool {
    let is_gone =
        error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ERROR_NOT_FOUND);
    let is_foreign =
        matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported);
    is_gone || (is_foreign && !matches!(made, Change::RunDirectory { .. }))
}

/// Takes back what runs left whose launchers are gone.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        let opened = OpenOptions::new().read(true).write(true).share_mode(EXCLUSIVE).open(&path);
        let mut text = String::new();
        let Ok(mut file) = opened else { continue };
        if file.read_to_string(&mut text).is_ok() && take_back(journal::read(&text)) {
            drop(file);
            let _ = fs::remove_file(&path);
        }
    }
}
