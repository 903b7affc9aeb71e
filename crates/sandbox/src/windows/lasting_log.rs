//! Records of the directories whose entries stay, and removing all of them (`mcp doctor --clean`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_policy::WindowsPath;

use crate::core::lasting::Removed;
use crate::windows::access::{Access, Grant};
use crate::windows::acl_apply::{add_aces, refresh_aces, remove_lasting_aces};
use crate::windows::dacl;
use crate::windows::disk::Disk;
use crate::windows::lasting::{Record, capability_sid};
use crate::windows::undo_log;
use crate::windows::win32::ERROR_SHARING_VIOLATION;

/// Other runs can open it, too; who wants to remove it cannot.
const SHARED: u32 = 1 | 2;
const EXCLUSIVE: u32 = 0;
const ENDING: &str = "entries";
/// Times of files are coarser than the clock, and behind it on some file systems.
const SLACK: Duration = Duration::from_secs(3);

/// Keeps the entries of a directory from being removed.
pub struct OpenRecord(#[expect(dead_code, reason = "held open, not used")] File);

/// Where the records are.
pub fn directory() -> PathBuf {
    undo_log::directory().with_file_name("entries")
}

fn since_1970(time: SystemTime) -> u64 {
    let passed = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(passed.as_millis()).unwrap_or_default()
}

/// Gives the capability of a directory read access to it, where it has none yet, and says what was done.
pub fn show(records: &Path, path: &WindowsPath) -> io::Result<(OpenRecord, &'static str)> {
    let sid_text = capability_sid(path);
    let sid = dacl::sid(&sid_text).ok_or(io::ErrorKind::InvalidData)?;
    fs::create_dir_all(records)?;
    let at = records.join(&sid_text).with_extension(ENDING);
    let mut options = OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).share_mode(SHARED).open(&at)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let record = Record::read(&text);
    if record.directory().as_ref() != Some(path) {
        file.write_all(Record::entry_line(path).as_bytes())?;
        file.sync_data()?;
    }
    let now = SystemTime::now();
    let seen = match record.whole_since {
        Some(since) => {
            let since = UNIX_EPOCH + Duration::from_millis(since);
            match refresh_aces(&Disk, &sid, path, since - SLACK)? {
                false => return Ok((OpenRecord(file), "its entries were there")),
                true => "its entries were there but for what is new",
            }
        }
        None => {
            let grant = Grant { path: path.clone(), access: Access::Read };
            add_aces(&Disk, &sid, &grant, &[])?;
            "entries were made, and stay: mcp doctor --clean removes them"
        }
    };
    file.write_all(Record::whole_line(since_1970(now)).as_bytes())?;
    Ok((OpenRecord(file), seen))
}

/// Removes the entries of every directory that no running sandbox uses, and what launchers left that were killed.
pub fn remove_all(records: &Path) -> Removed {
    undo_log::take_back_orphans();
    let mut removed = Removed::default();
    for entry in fs::read_dir(records).into_iter().flatten().flatten() {
        let at = entry.path();
        if at.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        let opened = OpenOptions::new().read(true).write(true).share_mode(EXCLUSIVE).open(&at);
        let mut file = match opened {
            Ok(file) => file,
            Err(e) if e.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => {
                removed.in_use += 1;
                continue;
            }
            Err(e) => {
                removed.left.push((at, e.to_string()));
                continue;
            }
        };
        let mut text = String::new();
        let read = file.read_to_string(&mut text).map(|_| Record::read(&text).directory());
        match read.and_then(|path| path.map_or(Ok(()), |path| withdraw(&path))) {
            Ok(()) => {
                drop(file);
                removed.directories += usize::from(fs::remove_file(&at).is_ok());
            }
            Err(e) => {
                let path = Record::read(&text).directory().map(|path| path.to_string().into());
                removed.left.push((path.unwrap_or(at), e.to_string()));
            }
        }
    }
    removed
}

fn withdraw(path: &WindowsPath) -> io::Result<()> {
    let sid = dacl::sid(&capability_sid(path)).ok_or(io::ErrorKind::InvalidData)?;
    match remove_lasting_aces(&Disk, &sid, path) {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::Error::other("some of its entries could not be removed")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::disk::granted_access;
    use crate::windows::probe::resolved;

    #[test]
    fn entries_stay_until_they_are_removed_and_not_under_a_run() {
        let at = std::env::temp_dir().join(format!("mcp-lasting-{}", std::process::id()));
        let (records, tool) = (at.join("records"), at.join("tool"));
        fs::create_dir_all(tool.join("lib")).unwrap();
        fs::write(tool.join(r"lib\a"), "x").unwrap();
        let path = resolved(&tool).unwrap();
        let sid = dacl::sid(&capability_sid(&path)).unwrap();
        let reads = |name: &str| {
            let at = name.split('\\').fold(path.clone(), |at, name| at.join(name).unwrap());
            granted_access(&at, &sid).unwrap() & Access::Read.mask() == Access::Read.mask()
        };
        assert!(!reads(r"lib\a"), "the control");
        let (first, said) = match show(&records, &path) {
            Ok(shown) => shown,
            // Wine keeps no entry for a SID that it does not know, and a run stops there. What was noted goes all the same.
            Err(e) => {
                println!("NOT VERIFIED: entries: {e}");
                assert_eq!(fs::read_dir(&records).unwrap().count(), 1);
                assert_eq!(remove_all(&records).directories, 1);
                assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
                fs::remove_dir_all(&at).unwrap();
                return;
            }
        };
        assert!(said.contains("stay") && reads("lib") && reads(r"lib\a"), "{said}");
        // A file that was moved in has the list of where it was.
        fs::write(at.join("b"), "x").unwrap();
        fs::rename(at.join("b"), tool.join(r"lib\b")).unwrap();
        let (second, said) = show(&records, &path).unwrap();
        assert!(reads(r"lib\b"), "{said}");
        let in_use = remove_all(&records);
        assert_eq!((in_use.directories, in_use.in_use), (0, 1), "{in_use:?}");
        assert!(reads(r"lib\a"));
        drop((first, second));
        let removed = remove_all(&records);
        assert_eq!(
            (removed.directories, removed.in_use, removed.left.len()),
            (1, 0, 0),
            "{removed:?}"
        );
        assert!(!reads("lib") && !reads(r"lib\a") && !reads(r"lib\b"));
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
        fs::remove_dir_all(&at).unwrap();
    }
}
