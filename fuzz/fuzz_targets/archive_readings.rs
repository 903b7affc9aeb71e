//! Tar and zip against the crates of these names: an archive that we take has one reading. Ours are stricter, so the crates take more.
#![no_main]

use std::io::{Cursor, Read, Write};

use libfuzzer_sys::fuzz_target;
use mcp_package::Result;
use mcp_package::fuzzing::{self as archive, Content, Entry, ArchiveLimits, Sink};

/// Path, kind (directory, file, link) and content.
type Reading = Vec<(String, char, Vec<u8>)>;

#[derive(Default)]
struct Record(Reading);

impl Sink for Record {
    fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()> {
        let mut bytes = Vec::new();
        // A content that is cut off fails the whole archive.
        let _ = content.read_to_end(&mut bytes);
        let kind = match &entry.content {
            Content::Directory => 'd',
            Content::File { .. } => 'f',
            Content::Link(target) => {
                bytes = target.clone().into_bytes();
                'l'
            }
        };
        self.0.push((entry.path.as_str().to_owned(), kind, bytes));
        Ok(())
    }
}

fn bare(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.strip_prefix("./").unwrap_or(&name).trim_end_matches('/').to_owned()
}

fn by_tar(bytes: &[u8]) -> std::io::Result<Reading> {
    let mut all = Vec::new();
    for entry in tar::Archive::new(bytes).entries()? {
        let mut entry = entry?;
        let path = bare(&entry.path_bytes());
        let mut content = Vec::new();
        let kind = match entry.header().entry_type() {
            tar::EntryType::XGlobalHeader => continue,
            tar::EntryType::Directory if path.is_empty() || path == "." => continue,
            tar::EntryType::Directory => 'd',
            tar::EntryType::Symlink => {
                content = entry.link_name_bytes().unwrap_or_default().into_owned();
                'l'
            }
            _ => {
                entry.read_to_end(&mut content)?;
                'f'
            }
        };
        all.push((path, kind, content));
    }
    Ok(all)
}

fn by_zip(bytes: &[u8]) -> zip::result::ZipResult<Reading> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))?;
    let mut all = Vec::new();
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at)?;
        let kind = match entry.unix_mode().unwrap_or(0o100_644) & 0o170_000 {
            0o120_000 => 'l',
            _ if entry.is_dir() => 'd',
            _ => 'f',
        };
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        all.push((bare(entry.name_raw()), kind, content));
    }
    Ok(all)
}

/// The checksum of each tar header is made right, so that a change is not refused for that alone.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let blocks = bytes.chunks_mut(512);
    for block in blocks.filter(|block| block.len() == 512 && block[257..].starts_with(b"ustar")) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    let is_zip = bytes.starts_with(b"PK");
    if bytes.starts_with(GZIP) {
        return;
    }
    let bytes = if is_zip { bytes.to_vec() } else { summed(bytes.to_vec()) };
    let path = std::env::temp_dir().join(format!("mcp-fuzz-readings-{}", std::process::id()));
    let Ok(mut file) = std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path) else { return };
    let limits = ArchiveLimits { entries: 1000, file: 1 << 20, total: 4 << 20, ratio: 200 };
    let mut record = Record::default();
    if file.write_all(&bytes).is_err() || archive::read(&mut file, &limits, &mut record).is_err() {
        return;
    }
    let mut ours = record.0;
    let mut theirs = match is_zip {
        true => by_zip(&bytes).expect("the crate zip takes what we take"),
        false => by_tar(&bytes).expect("the crate tar takes what we take"),
    };
    // The crate lists a zip by its directory, we read it by offset.
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
});
