//! Reads zip archives, strictly: one central directory at the end, every entry where and what it
//! says, no two sharing bytes (how one kilobyte becomes a petabyte). Stored and deflated entries;
//! neither encryption nor zip64, which no package of a sensible size needs.

use std::io::{Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::exact_length::Exactly;
use super::names::Names;
use super::{ArchiveLimits, Content, Entry, EntryPath, Sink};
use crate::error::{Error, Result};

const END: &[u8; 4] = b"PK\x05\x06";
const CENTRAL: &[u8; 4] = b"PK\x01\x02";
const LOCAL: &[u8; 4] = b"PK\x03\x04";
const END_LENGTH: u64 = 22;
const CENTRAL_LENGTH: usize = 46;
const LOCAL_LENGTH: u64 = 30;
const LONGEST_COMMENT: u64 = 0xffff;
/// The end record of zip64, and the one that leads to it.
const ZIP64_LENGTH: u64 = 56 + 20;
const LARGEST_DIRECTORY: u64 = 64 << 20;
const LONGEST_TARGET: u64 = 1024;

/// What `mcpb sign` puts behind an archive. The signature itself is of another kind than ours and
/// is not looked at; what it signs is the bytes before it.
const SIGNATURE_START: &[u8] = b"MCPB_SIG_V1";
const SIGNATURE_END: &[u8] = b"MCPB_SIG_END";
const LARGEST_SIGNATURE: u64 = 1 << 20;

fn broken(why: impl std::fmt::Display) -> Error {
    Error::package(format!("is not a sound zip archive: {why}"))
}

struct CentralRecord {
    /// A link's target is its content, so it is not known before that is read.
    entry: Entry,
    length: u64,
    name: Vec<u8>,
    method: u16,
    crc: u32,
    packed: u64,
    offset: u64,
}

pub fn read(
    file: &mut (impl Read + Seek),
    length: u64,
    limits: &ArchiveLimits,
    sink: &mut dyn Sink,
) -> Result<()> {
    let signature = signature_length(file, length)?;
    let (records, directory) = directory(file, length, signature, limits)?;
    check_overlap(&records, directory)?;
    let mut names = Names::new(*limits, length);
    for record in &records {
        names.admit(&record.entry)?;
    }
    for record in &records {
        content(file, record, directory, sink)?;
    }
    Ok(())
}

fn bytes_at<const N: usize>(file: &mut (impl Read + Seek), at: u64) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    file.seek(SeekFrom::Start(at))
        .and_then(|_| file.read_exact(&mut bytes))
        .map_err(|_| broken("it is cut off"))?;
    Ok(bytes)
}

fn some_at(file: &mut (impl Read + Seek), at: u64, length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at)).map_err(broken)?;
    let read = Read::by_ref(file).take(length).read_to_end(&mut bytes).map_err(broken)?;
    if read as u64 == length { Ok(bytes) } else { Err(broken("it is cut off")) }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// The length of an MCPB signature block at the end; zero for none.
fn signature_length(file: &mut (impl Read + Seek), length: u64) -> Result<u64> {
    let overhead = (SIGNATURE_START.len() + 4 + SIGNATURE_END.len()) as u64;
    if length < overhead + END_LENGTH {
        return Ok(0);
    }
    let tail =
        some_at(file, length - length.min(LARGEST_SIGNATURE), length.min(LARGEST_SIGNATURE))?;
    if !tail.ends_with(SIGNATURE_END) {
        return Ok(0);
    }
    let starts = (0..tail.len().saturating_sub(SIGNATURE_START.len())).rev();
    for at in starts.filter(|at| tail[*at..].starts_with(SIGNATURE_START)) {
        let said = u64::from(word(&tail, at + SIGNATURE_START.len()));
        if (tail.len() - at) as u64 == overhead + said {
            return Ok(overhead + said);
        }
    }
    Err(broken("its signature block has the wrong length"))
}

/// The records of the central directory, and where that starts.
fn directory(
    file: &mut (impl Read + Seek),
    length: u64,
    signature: u64,
    limits: &ArchiveLimits,
) -> Result<(Vec<CentralRecord>, u64)> {
    let end = length - signature;
    let at = find_end(file, end, signature)?;
    let bytes: [u8; END_LENGTH as usize] = bytes_at(file, at)?;
    let (disk, disk_of_directory) = (half(&bytes, 4), half(&bytes, 6));
    let (here, entries) = (half(&bytes, 8), half(&bytes, 10));
    let (size, offset) = (word(&bytes, 12), word(&bytes, 16));
    if size == u32::MAX || offset == u32::MAX {
        return Err(broken("it is larger than 4 GiB, which is not read here"));
    }
    if disk != 0 || disk_of_directory != 0 || here != entries {
        return Err(broken("it is one part of several"));
    }
    let (size, offset) = (u64::from(size), u64::from(offset));
    let (entries, at) = match entries {
        u16::MAX => zip64_entries(file, at, size, offset)?,
        entries => (u64::from(entries), at),
    };
    if offset + size != at || size > LARGEST_DIRECTORY {
        return Err(broken("its directory is not where it should be"));
    }
    if entries > limits.entries {
        return Err(Error::package(format!("has more than {} entries", limits.entries)));
    }
    let bytes = some_at(file, offset, size)?;
    let mut rest = bytes.as_slice();
    let mut records = Vec::new();
    for _ in 0..entries {
        let (record, taken) = record(rest)?;
        records.push(record);
        rest = &rest[taken..];
    }
    match rest.is_empty() {
        true => Ok((records, offset)),
        false => Err(broken("its directory has more than its entries")),
    }
}

/// More entries than the end record can tell: their number, and where the records of zip64 begin, which say the same of
/// everything else.
fn zip64_entries(
    file: &mut (impl Read + Seek),
    end: u64,
    size: u64,
    offset: u64,
) -> Result<(u64, u64)> {
    let wrong = || broken("its records of zip64 are damaged");
    let at = end.checked_sub(ZIP64_LENGTH).ok_or_else(wrong)?;
    let bytes: [u8; ZIP64_LENGTH as usize] = bytes_at(file, at)?;
    let (record, locator) = bytes.split_at(ZIP64_LENGTH as usize - 20);
    let number =
        |bytes: &[u8], at: usize| u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32;
    let entries = number(record, 32);
    let holds = record.starts_with(b"PK\x06\x06")
        && locator.starts_with(b"PK\x06\x07")
        && [number(record, 4), number(record, 16), number(record, 24)] == [44, 0, entries]
        && [number(record, 40), number(record, 48)] == [size, offset]
        && (word(locator, 4), number(locator, 8), word(locator, 16)) == (0, at, 1);
    if holds && entries >= u64::from(u16::MAX) { Ok((entries, at)) } else { Err(wrong()) }
}

/// The end record: last, but for its own comment. A signature may be counted as that comment.
fn find_end(file: &mut (impl Read + Seek), end: u64, signature: u64) -> Result<u64> {
    let reach = (END_LENGTH + LONGEST_COMMENT).min(end);
    let tail = some_at(file, end - reach, reach)?;
    for at in (0..tail.len().saturating_sub(END_LENGTH as usize - 1)).rev() {
        if !tail[at..].starts_with(END) {
            continue;
        }
        let comment = u64::from(half(&tail, at + 20));
        let behind = (tail.len() - at) as u64 - END_LENGTH;
        if comment == behind || (signature > 0 && behind == 0 && comment == signature) {
            return Ok(end - reach + at as u64);
        }
    }
    Err(broken("there is no end record, or data follows it"))
}

fn record(bytes: &[u8]) -> Result<(CentralRecord, usize)> {
    if bytes.len() < CENTRAL_LENGTH || !bytes.starts_with(CENTRAL) {
        return Err(broken("its directory is damaged"));
    }
    let (made_by, flags, method) = (half(bytes, 4), half(bytes, 8), half(bytes, 10));
    let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(half(bytes, at)));
    let whole = CENTRAL_LENGTH + name + extra + comment;
    let Some((name, rest)) =
        bytes.get(CENTRAL_LENGTH..whole).and_then(|all| all.split_at_checked(name))
    else {
        return Err(broken("its directory is damaged"));
    };
    let path = EntryPath::parse(name)?;
    check_extra(&path, name, rest.get(..extra).unwrap_or_default())?;
    let (packed, length, offset) = (word(bytes, 20), word(bytes, 24), word(bytes, 42));
    if [packed, length, offset].contains(&u32::MAX) {
        return Err(broken("it is of the zip64 kind, which is not read here"));
    }
    if flags & 0x2041 != 0 {
        return Err(broken(format_args!("{path} is encrypted")));
    }
    if ![0, 8].contains(&method) {
        return Err(broken(format_args!(
            "{path} is compressed by method {method}, which is not read here"
        )));
    }
    let mode = unix_mode(&path, made_by >> 8, word(bytes, 38) >> 16)?;
    let content = content_kind(&path, mode, name.ends_with(b"/"), u64::from(length))?;
    let record = CentralRecord {
        entry: Entry { path, content },
        length: u64::from(length),
        name: name.to_vec(),
        method,
        crc: word(bytes, 16),
        packed: u64::from(packed),
        offset: u64::from(offset),
    };
    Ok((record, whole))
}

/// Other readers take the name in Info-ZIP's Unicode path field before the one that we take, so both must be the same.
fn check_extra(path: &EntryPath, name: &[u8], mut extra: &[u8]) -> Result<()> {
    const UNICODE_PATH: u16 = 0x7075;
    while extra.len() >= 4 {
        let (id, length) = (half(extra, 0), usize::from(half(extra, 2)));
        let Some(data) = extra.get(4..4 + length) else {
            return Err(broken(format_args!("an extra field of {path} is cut off")));
        };
        // A version and a checksum are before the name.
        if id == UNICODE_PATH && data.get(5..) != Some(name) {
            return Err(broken(format_args!("{path} has another name in its extra field")));
        }
        extra = &extra[4 + length..];
    }
    Ok(())
}

/// The mode, if the system that the entry was made on has one. On other systems readers differ in what they make of
/// the same bits.
fn unix_mode(path: &EntryPath, system: u16, mode: u32) -> Result<u32> {
    const LINK: u32 = 0o120_000;
    match system {
        // Unix, macOS.
        3 | 19 => Ok(mode),
        // DOS, NTFS, VFAT: Windows, and programs that do not say what they are.
        0 | 10 | 14 if mode & 0o170_000 != LINK => Ok(0),
        0 | 10 | 14 => Err(broken(format_args!("{path} is a link from a system without links"))),
        _ => Err(broken(format_args!("{path} was made on an unknown system"))),
    }
}

/// For links the target is not known yet: it is the content.
fn content_kind(path: &EntryPath, mode: u32, has_slash: bool, length: u64) -> Result<Content> {
    if mode & 0o6000 != 0 {
        return Err(Error::package(format!("{path} is set-uid or set-gid")));
    }
    match (mode & 0o170_000, has_slash) {
        (0 | 0o040_000, true) if length == 0 => Ok(Content::Directory),
        (0 | 0o100_000, false) => Ok(Content::File { is_executable: mode & 0o111 != 0, length }),
        (0o120_000, false) if length <= LONGEST_TARGET => Ok(Content::Link("unread".to_owned())),
        (0o040_000, false) => {
            Err(broken(format_args!("{path} is a directory whose name does not end with a slash")))
        }
        (_, true) => Err(broken(format_args!("{path} is a directory with content"))),
        _ => Err(Error::package(format!("{path} is a device, pipe or socket"))),
    }
}

/// Entries that share bytes are how small archives become huge.
fn check_overlap(records: &[CentralRecord], directory: u64) -> Result<()> {
    let mut spans: Vec<(u64, u64)> = records
        .iter()
        .map(|record| {
            (record.offset, record.offset + LOCAL_LENGTH + record.name.len() as u64 + record.packed)
        })
        .collect();
    spans.sort_unstable();
    if spans.first().is_some_and(|(start, _)| *start != 0) {
        return Err(broken("data precedes its first entry"));
    }
    let overlaps = spans.windows(2).any(|pair| pair[0].1 > pair[1].0);
    if overlaps || spans.iter().any(|(_, end)| *end > directory) {
        return Err(broken("its entries overlap"));
    }
    Ok(())
}

fn content(
    file: &mut (impl Read + Seek),
    record: &CentralRecord,
    directory: u64,
    sink: &mut dyn Sink,
) -> Result<()> {
    let path = &record.entry.path;
    let header: [u8; LOCAL_LENGTH as usize] = bytes_at(file, record.offset)?;
    let (name, extra) = (u64::from(half(&header, 26)), u64::from(half(&header, 28)));
    let agrees = header.starts_with(LOCAL)
        && half(&header, 8) == record.method
        && some_at(file, record.offset + LOCAL_LENGTH, name)? == record.name;
    let start = record.offset + LOCAL_LENGTH + name + extra;
    if !agrees || start + record.packed > directory {
        return Err(broken(format_args!("{path} is not what the directory says")));
    }
    file.seek(SeekFrom::Start(start)).map_err(broken)?;
    let packed = Read::by_ref(file).take(record.packed);
    let mut checked = Checked::new(unpack(record.method, packed), record);
    match &record.entry.content {
        Content::Directory => sink.entry(&record.entry, &mut std::io::empty())?,
        Content::File { .. } => sink.entry(&record.entry, &mut checked)?,
        Content::Link(_) => {
            let mut target = String::new();
            checked.read_to_string(&mut target).map_err(|e| broken(format_args!("{path}: {e}")))?;
            path.check_link(&target)?;
            let entry = Entry { path: path.clone(), content: Content::Link(target) };
            sink.entry(&entry, &mut std::io::empty())?;
        }
    }
    // A sink may pass over what it does not want; the archive has to be sound all the same.
    std::io::copy(&mut checked, &mut std::io::sink())
        .map_err(|e| broken(format_args!("{path}: {e}")))?;
    checked.finish()
}

fn unpack<'a>(method: u16, packed: impl Read + 'a) -> Box<dyn Read + 'a> {
    if method == 0 { Box::new(packed) } else { Box::new(DeflateDecoder::new(packed)) }
}

/// Passes on exactly as many bytes as were announced, and compares their checksum.
struct Checked<'a, R> {
    inner: Exactly<R>,
    record: &'a CentralRecord,
    crc: Crc,
}

impl<'a, R: Read> Checked<'a, R> {
    fn new(inner: R, record: &'a CentralRecord) -> Checked<'a, R> {
        Checked { inner: Exactly { inner, left: record.length }, record, crc: Crc::new() }
    }

    fn finish(mut self) -> Result<()> {
        let path = &self.record.entry.path;
        let more =
            self.inner.inner.read(&mut [0]).map_err(|e| broken(format_args!("{path}: {e}")))?;
        if self.inner.left != 0 || more != 0 {
            return Err(broken(format_args!("{path} has another length than announced")));
        }
        if self.crc.sum() != self.record.crc {
            return Err(broken(format_args!("{path} has a wrong checksum")));
        }
        Ok(())
    }
}

impl<R: Read> Read for Checked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.crc.update(&buffer[..read]);
        Ok(read)
    }
}
