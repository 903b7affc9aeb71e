//! Reads tar archives, plain ustar with the long names of pax and GNU, behind gzip or zstd.

use std::io::{BufRead, Read};

use flate2::bufread::GzDecoder;

use super::exact_length::Exactly;
use super::names::Names;
use super::{ArchiveLimits, Content, Entry, EntryPath, Sink};
use crate::error::{Error, Result};

const BLOCK: usize = 512;
/// A long name, or the extended header of one entry.
const LARGEST_HEADER: u64 = 64 << 10;

fn broken(why: impl std::fmt::Display) -> Error {
    Error::package(format!("is not a sound tar archive: {why}"))
}

pub fn read_gzip(
    from: impl BufRead,
    packed: u64,
    limits: &ArchiveLimits,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut unpacked = GzDecoder::new(from);
    read(&mut unpacked, packed, limits, sink)?;
    end_of_packed(unpacked.into_inner())
}

pub fn read_zstd(
    mut from: impl BufRead,
    packed: u64,
    limits: &ArchiveLimits,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut unpacked = ruzstd::decoding::StreamingDecoder::new(&mut from).map_err(broken)?;
    read(&mut unpacked, packed, limits, sink)?;
    drop(unpacked);
    end_of_packed(from)
}

fn end_of_packed(mut rest: impl Read) -> Result<()> {
    match rest.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(broken("data follows its end")),
        Err(error) => Err(broken(error)),
    }
}

/// Which fields a header has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderFormat {
    /// POSIX: a prefix of the name, and headers that speak of the next entry.
    Ustar,
    /// GNU: the same without a prefix.
    Gnu,
    /// Unix version 7: neither.
    Old,
}

fn format(block: &[u8; BLOCK]) -> Result<HeaderFormat> {
    match &block[257..265] {
        b"ustar\x0000" => Ok(HeaderFormat::Ustar),
        b"ustar  \0" => Ok(HeaderFormat::Gnu),
        [0, 0, 0, 0, 0, 0, 0, 0] => Ok(HeaderFormat::Old),
        _ => Err(broken("a header is of an unknown format")),
    }
}

/// What extended headers say of the next entry. Each thing once: of two values one reader takes the first, another
/// the last.
#[derive(Default)]
struct Ahead {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    length: Option<u64>,
    /// An `x` header was read, whatever it says.
    is_extended: bool,
}

impl Ahead {
    fn is_empty(&self) -> bool {
        self.path.is_none() && self.link.is_none() && self.length.is_none()
    }
}

/// Sets what was not set before.
fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(broken("two headers contradict each other about one entry")),
    }
}

fn read(
    from: &mut dyn Read,
    packed: u64,
    limits: &ArchiveLimits,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut names = Names::new(*limits, packed);
    // Headers and padding are not counted by the names, and could be endless.
    let most =
        limits.budget(packed).saturating_add(limits.entries.saturating_mul(2 * BLOCK as u64));
    let mut from = from.take(most);
    let mut ahead = Ahead::default();
    loop {
        let block = block(&mut from)?;
        if block == [0; BLOCK] {
            break;
        }
        check_sum(&block)?;
        let length = number(&block[124..136])?;
        let format = format(&block)?;
        if format == HeaderFormat::Old && matches!(block[156], b'x' | b'g' | b'L' | b'K') {
            return Err(broken("an old-style header describes the next entry"));
        }
        match block[156] {
            b'x' => {
                if std::mem::replace(&mut ahead.is_extended, true) {
                    return Err(broken("two extended headers describe one entry"));
                }
                ahead = extended(&small(&mut from, length)?, ahead)?;
                continue;
            }
            b'g' => {
                // git puts a comment there; what would change entries is not taken.
                let global = extended(&small(&mut from, length)?, Ahead::default())?;
                if !ahead.is_empty() || ahead.is_extended {
                    return Err(broken("a global header is between a header and its entry"));
                }
                if !global.is_empty() {
                    return Err(broken("a global header changes its entries"));
                }
                continue;
            }
            b'L' => {
                once(&mut ahead.path, until_nul(&small(&mut from, length)?).to_vec())?;
                continue;
            }
            b'K' => {
                once(&mut ahead.link, until_nul(&small(&mut from, length)?).to_vec())?;
                continue;
            }
            _ => {}
        }
        let Some(entry) = entry(&block, format, length, std::mem::take(&mut ahead))? else {
            continue;
        };
        names.admit(&entry)?;
        let length = match entry.content {
            Content::File { length, .. } => length,
            _ => 0,
        };
        let mut content = Exactly { inner: &mut from, left: length };
        sink.entry(&entry, &mut content)?;
        std::io::copy(&mut content, &mut std::io::sink()).map_err(broken)?;
        skip_padding(&mut from, length)?;
    }
    if !ahead.is_empty() || ahead.is_extended {
        return Err(broken("a header describes an entry that does not follow"));
    }
    zeros_to_the_end(&mut from)
}

fn block(from: &mut dyn Read) -> Result<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    from.read_exact(&mut block).map_err(|_| broken("it is cut off"))?;
    Ok(block)
}

fn skip_padding(from: &mut dyn Read, length: u64) -> Result<()> {
    let padding = (BLOCK as u64 - length % BLOCK as u64) % BLOCK as u64;
    let skipped = std::io::copy(&mut from.take(padding), &mut std::io::sink()).map_err(broken)?;
    if skipped == padding { Ok(()) } else { Err(broken("it is cut off")) }
}

fn small(from: &mut dyn Read, length: u64) -> Result<Vec<u8>> {
    if length > LARGEST_HEADER {
        return Err(broken("a header is too large"));
    }
    let mut bytes = Vec::new();
    let read = (&mut *from).take(length).read_to_end(&mut bytes).map_err(broken)?;
    if read as u64 != length {
        return Err(broken("it is cut off"));
    }
    skip_padding(from, length)?;
    Ok(bytes)
}

/// Two blocks of zeros end an archive, and nothing but zeros follows.
fn zeros_to_the_end(from: &mut dyn Read) -> Result<()> {
    if block(from)? != [0; BLOCK] {
        return Err(broken("it does not end where it says"));
    }
    let mut buffer = [0; 8192];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) if buffer[..read].iter().all(|byte| *byte == 0) => {}
            Ok(_) => return Err(broken("data follows its end")),
            Err(error) => return Err(broken(error)),
        }
    }
}

fn check_sum(block: &[u8; BLOCK]) -> Result<()> {
    let said = number(&block[148..156])?;
    let sum: u64 = block
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
        .sum();
    if said == sum { Ok(()) } else { Err(broken("a header has a wrong checksum")) }
}

/// Octal digits, ended by a NUL or space. GNU's binary form is for more than 8 GiB.
fn number(field: &[u8]) -> Result<u64> {
    let wrong = || broken("a number is not octal");
    let text = std::str::from_utf8(field).map_err(|_| wrong())?;
    // Not NULs before it: to many readers a number ends there.
    let digits = text.trim_start_matches(' ').trim_end_matches([' ', '\0']);
    if digits.is_empty() {
        return Ok(0);
    }
    // Else a sign would be taken.
    if !is_digits(digits) {
        return Err(wrong());
    }
    u64::from_str_radix(digits, 8).map_err(|_| wrong())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// `LENGTH KEY=VALUE\n` records.
fn extended(bytes: &[u8], mut ahead: Ahead) -> Result<Ahead> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let wrong = || broken("an extended header is damaged");
        let space = rest.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
        let length: usize = std::str::from_utf8(&rest[..space])
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(wrong)?;
        let record = rest.get(space + 1..length).ok_or_else(wrong)?;
        let record = record.strip_suffix(b"\n").ok_or_else(wrong)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        match key {
            b"path" => once(&mut ahead.path, value.to_vec())?,
            b"linkpath" => once(&mut ahead.link, value.to_vec())?,
            b"size" => {
                let text = std::str::from_utf8(value).ok().filter(|text| is_digits(text));
                let length = text.and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
                once(&mut ahead.length, length)?;
            }
            key if key.starts_with(b"GNU.sparse") => return Err(broken("it has a sparse file")),
            _ => {}
        }
        rest = &rest[length..];
    }
    Ok(ahead)
}

/// The entry of a header; none for the root directory itself.
fn entry(
    block: &[u8; BLOCK],
    format: HeaderFormat,
    length: u64,
    ahead: Ahead,
) -> Result<Option<Entry>> {
    let mut name = Vec::new();
    let prefix = until_nul(&block[345..500]);
    if format == HeaderFormat::Ustar && !prefix.is_empty() {
        name.extend_from_slice(prefix);
        name.push(b'/');
    }
    name.extend_from_slice(until_nul(&block[..100]));
    let name = ahead.path.unwrap_or(name);
    // `tar -C dir .` writes all its names like this.
    let name = name.strip_prefix(b"./").unwrap_or(&name);
    let kind = block[156];
    if kind == b'5' && (name.is_empty() || name == b".") {
        return Ok(None);
    }
    let path = EntryPath::parse(name)?;
    let mode = number(&block[100..108])?;
    if mode & 0o6000 != 0 {
        return Err(Error::package(format!("{path} is set-uid or set-gid")));
    }
    let content = match kind {
        b'0' | 0 if name.ends_with(b"/") => {
            return Err(broken(format_args!("{path} is a file whose name ends with a slash")));
        }
        b'0' | 0 => Content::File {
            is_executable: mode & 0o111 != 0,
            length: ahead.length.unwrap_or(length),
        },
        b'5' => Content::Directory,
        b'2' => {
            let target = ahead.link.unwrap_or_else(|| until_nul(&block[157..257]).to_vec());
            let target = String::from_utf8(target);
            Content::Link(target.map_err(|_| {
                Error::package(format!("link {path} has a target that is not UTF-8"))
            })?)
        }
        b'1' => return Err(Error::package(format!("{path} is a hard link"))),
        b'3' | b'4' | b'6' => return Err(Error::package(format!("{path} is a device or pipe"))),
        other => return Err(Error::package(format!("{path} is of kind {:?}", char::from(other)))),
    };
    // Some readers skip as many bytes, and would see other entries than we do.
    if !matches!(content, Content::File { .. })
        && (length != 0 || ahead.length.is_some_and(|length| length != 0))
    {
        return Err(broken(format_args!("{path} has content and is not a file")));
    }
    Ok(Some(Entry { path, content }))
}
