//! The journal of changes, in the data directory: each with its time and with what is needed to take it back.
//!
//! A record is on the disk before the file that it speaks of is changed. A crash between the two leaves a record
//! of something that did not happen, which taking back finds out by looking at the file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_files::Links;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::entry::Trail;
use crate::error::Error;
use crate::wire::{Added, Undo};
use crate::write::{Original, write, write_private};

const MOST_BYTES: u64 = 256 << 20;

/// One line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Record {
    /// A file was about to be changed.
    Changed(Change),
    /// All of a file's changes up to this one were taken back.
    Undone {
        /// The file.
        file: PathBuf,
        /// The last change that was taken back.
        up_to: u64,
        /// Milliseconds since 1970.
        when: u64,
    },
    /// Servers of a change that were taken back alone.
    UndoneServers {
        /// The change that the servers belong to.
        change: u64,
        /// The servers.
        servers: Vec<Trail>,
        /// Milliseconds since 1970.
        when: u64,
    },
    /// A person said that a server stays as it is.
    Left {
        /// The file.
        file: PathBuf,
        /// Where the entry is in the file.
        trail: Trail,
        /// The entry's command line when the person decided.
        words: String,
        /// Milliseconds since 1970.
        when: u64,
    },
}

/// One edit of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// Counts up.
    pub id: u64,
    /// Milliseconds since 1970.
    pub when: u64,
    /// The file.
    pub file: PathBuf,
    /// Digests of the file.
    pub before: String,
    /// The digest after the change.
    pub after: String,
    /// How many entries the change had.
    pub count: usize,
    /// How to take each wired entry back.
    pub entries: Vec<Undo>,
    /// The entries that were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Added>,
}

/// A file that was read, and what is to be in its place.
#[derive(Debug)]
pub struct Replacement<'a> {
    /// The file as it was read.
    pub original: &'a Original,
    /// Its new content.
    pub after: &'a [u8],
    /// How to take each wired entry back.
    pub entries: Vec<Undo>,
    /// The entries that are new.
    pub added: Vec<Added>,
}

/// What was taken back in one file.
#[derive(Debug)]
pub enum TakenBack {
    /// All changes up to this one.
    Whole {
        /// The file.
        file: PathBuf,
        /// The last change that was taken back.
        up_to: u64,
    },
    /// Only some servers, by change.
    Servers(Vec<(u64, Vec<Trail>)>),
}

/// The journal, held by one process at a time.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    _lock: File,
}

/// The digest of a file's bytes, as the journal writes it.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Journal {
    /// Waits for another `mcp` that is at work.
    pub fn open(directory: &Path) -> io::Result<Journal> {
        make_private(&directory.join("originals"))?;
        make_private(directory)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(directory.join("lock"))?;
        lock.lock()?;
        Ok(Journal { directory: directory.to_owned(), _lock: lock })
    }

    /// Notes changes, each with a copy of its file as it was, then carries them out. The outer error is the journal's:
    /// nothing was changed.
    pub fn carry_out(&self, changes: Vec<Replacement<'_>>) -> io::Result<Vec<Result<(), Error>>> {
        let records = records(&self.directory)?;
        let last = self::changes(&records).map(|change| change.id).max().unwrap_or(0);
        let (mut noted, mut copies, mut edits) = (Vec::new(), BTreeMap::new(), Vec::new());
        for (id, change) in (last + 1..).zip(changes) {
            let Replacement { original, after, entries, added } = change;
            let before = digest(&original.bytes);
            if self.copy_of(&before).is_none() {
                copies.insert(before.clone(), original.bytes.as_slice());
            }
            noted.push(Record::Changed(Change {
                id,
                when: now(),
                file: original.real.clone(),
                before,
                after: digest(after),
                count: entries.len() + added.len(),
                entries,
                added,
            }));
            edits.push((original, after));
        }
        write_private(&self.directory.join("originals"), &copies)?;
        self.append(&noted)?;
        Ok(write(&edits))
    }

    /// Notes what was taken back.
    pub fn undone<'a>(&self, files: impl IntoIterator<Item = &'a TakenBack>) -> io::Result<()> {
        let record = |one: &TakenBack| match one {
            TakenBack::Whole { file, up_to } => {
                vec![Record::Undone { file: file.clone(), up_to: *up_to, when: now() }]
            }
            TakenBack::Servers(changes) => {
                let one = |(change, servers): &(u64, Vec<Trail>)| Record::UndoneServers {
                    change: *change,
                    servers: servers.clone(),
                    when: now(),
                };
                changes.iter().map(one).collect()
            }
        };
        self.append(&files.into_iter().flat_map(record).collect::<Vec<_>>())?;
        self.forget_copies()
    }

    /// Notes that a person wants a server to stay as it is.
    pub fn left(&self, file: &Path, trail: &Trail, words: &[String]) -> io::Result<()> {
        self.append(&[Record::Left {
            file: file.to_owned(),
            trail: trail.clone(),
            words: words_digest(words),
            when: now(),
        }])
    }

    /// The file as it was before a change.
    #[must_use]
    pub fn original(&self, change: &Change) -> Option<Vec<u8>> {
        self.copy_of(&change.before)
    }

    fn copy_of(&self, known: &str) -> Option<Vec<u8>> {
        let path = self.directory.join("originals").join(known);
        let bytes = mcp_files::read(&path, MOST_BYTES, Links::Refuse).ok()?;
        (digest(&bytes) == known).then_some(bytes)
    }

    fn append(&self, records: &[Record]) -> io::Result<()> {
        let path = self.directory.join("journal.jsonl");
        let mut file =
            File::options().create(true).truncate(false).read(true).write(true).open(&path)?;
        let end = file.seek(SeekFrom::End(0))?;
        // A crash may have left half a line: that one is lost, and no other.
        let mut text = String::new();
        if end > 0 {
            use std::io::Read;
            file.seek(SeekFrom::Start(end - 1))?;
            let mut last = [0u8];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                text.push('\n');
            }
        }
        for record in records {
            text.push_str(&serde_json::to_string(record)?);
            text.push('\n');
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    /// Copies hold other people's secrets: none stays longer than it is needed.
    fn forget_copies(&self) -> io::Result<()> {
        let records = records(&self.directory)?;
        let needed: Vec<String> =
            standing(&records).into_iter().map(|change| change.before).collect();
        for entry in fs::read_dir(self.directory.join("originals"))?.flatten() {
            if !needed.iter().any(|digest| entry.file_name() == digest.as_str()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

fn words_digest(words: &[String]) -> String {
    digest(words.join("\0").as_bytes())
}

/// Everything that was noted; a line that cannot be read is none.
pub fn records(directory: &Path) -> io::Result<Vec<Record>> {
    let path = directory.join("journal.jsonl");
    let bytes = match mcp_files::read(&path, MOST_BYTES, Links::Refuse) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn changes(records: &[Record]) -> impl Iterator<Item = &Change> {
    records.iter().filter_map(|record| match record {
        Record::Changed(change) => Some(change),
        _ => None,
    })
}

/// The changes that were not taken back, the oldest first, with the servers that still are.
#[must_use]
pub fn standing(records: &[Record]) -> Vec<Change> {
    let mut standing: Vec<Change> = Vec::new();
    for record in records {
        match record {
            Record::Changed(change) => standing.push(change.clone()),
            Record::Undone { file, up_to, .. } => {
                standing.retain(|change| change.file != *file || change.id > *up_to);
            }
            Record::UndoneServers { change, servers, .. } => {
                if let Some(change) = standing.iter_mut().find(|one| one.id == *change) {
                    change.entries.retain(|entry| !servers.contains(&entry.trail));
                    change.added.retain(|added| !servers.contains(&added.trail));
                }
            }
            Record::Left { .. } => {}
        }
    }
    standing.retain(|change| !change.entries.is_empty() || !change.added.is_empty());
    standing
}

/// Whether a person said that this server, with these words, stays as it is.
#[must_use]
pub fn is_left(records: &[Record], file: &Path, trail: &Trail, words: &[String]) -> bool {
    let digest = words_digest(words);
    records.iter().any(|record| match record {
        Record::Left { file: one, trail: other, words, .. } => {
            one == file && other == trail && *words == digest
        }
        _ => false,
    })
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}
