//! The same bytes read by us and by the crates `tar` and `zip`: an archive that we take has one reading.
//!
//! Ours are stricter, so the crates take more. But an archive that we take and a crate reads otherwise (another name,
//! another content, an entry more) could look harmless to one program and not to the next.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// An entry as both sides put it: path, kind and content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    path: String,
    kind: char,
    content: Vec<u8>,
}

#[derive(Default)]
struct RecordingSink(Vec<Seen>);

impl Sink for RecordingSink {
    fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(|e| Error::package(e.to_string()))?;
        let kind = match &entry.content {
            Content::Directory => 'd',
            Content::File { is_executable: true, .. } => 'x',
            Content::File { .. } => 'f',
            Content::Link(target) => {
                bytes = target.clone().into_bytes();
                'l'
            }
        };
        self.0.push(Seen { path: entry.path.as_str().to_owned(), kind, content: bytes });
        Ok(())
    }
}

fn ours(bytes: &[u8]) -> Result<Vec<Seen>> {
    let scratch = Scratch::new();
    let archive = scratch.file("archive", bytes);
    let mut record = RecordingSink::default();
    read(&mut fs::File::open(archive).unwrap(), &ArchiveLimits::DEFAULT, &mut record)?;
    Ok(record.0)
}

fn bare(name: &[u8]) -> String {
    let name = String::from_utf8(name.to_vec()).unwrap();
    name.strip_prefix("./").unwrap_or(&name).trim_end_matches('/').to_owned()
}

fn by_tar(bytes: &[u8]) -> std::io::Result<Vec<Seen>> {
    let mut archive = ::tar::Archive::new(bytes);
    let mut all = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = bare(&entry.path_bytes());
        let mut content = Vec::new();
        let kind = match entry.header().entry_type() {
            ::tar::EntryType::XGlobalHeader => continue,
            ::tar::EntryType::Directory if path.is_empty() || path == "." => continue,
            ::tar::EntryType::Directory => 'd',
            ::tar::EntryType::Symlink => {
                content = entry.link_name_bytes().unwrap_or_default().into_owned();
                'l'
            }
            _ if entry.header().mode()? & 0o111 != 0 => 'x',
            _ => 'f',
        };
        if matches!(kind, 'f' | 'x') {
            entry.read_to_end(&mut content)?;
        }
        all.push(Seen { path, kind, content });
    }
    Ok(all)
}

fn by_zip(bytes: &[u8]) -> ::zip::result::ZipResult<Vec<Seen>> {
    let mut archive = ::zip::ZipArchive::new(Cursor::new(bytes))?;
    let mut all = Vec::new();
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at)?;
        let mode = entry.unix_mode().unwrap_or(0o100_644);
        let kind = match mode & 0o170_000 {
            0o120_000 => 'l',
            _ if entry.is_dir() => 'd',
            _ if mode & 0o111 != 0 => 'x',
            _ => 'f',
        };
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        all.push(Seen { path: bare(entry.name_raw()), kind, content });
    }
    Ok(all)
}

/// `LENGTH KEY=VALUE\n`, where the length counts itself.
fn pax(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length.to_string().len() + rest != length {
        length += 1;
    }
    format!("{length} {key}={value}\n")
}

/// A member of a tar archive, honest or not: any of the kinds, with headers that speak of the next one.
fn member() -> impl Strategy<Value = Vec<u8>> {
    let name = "(\\./)?[a-c]{1,2}(/[d-f])?/?";
    let plain =
        (name, proptest::sample::select(vec![b'0', b'0', 0, b'5', b'2', b'L', b'K']), "[a-z]{0,9}")
            .prop_map(|(name, kind, content)| match kind {
                b'2' => tar_entry(&name, 0o777, kind, &content, b""),
                b'5' => tar_entry(&name, 0o755, kind, "", b""),
                _ => tar_entry(&name, 0o644, kind, "", content.as_bytes()),
            });
    let keys = vec!["path", "linkpath", "size", "comment"];
    let record =
        (proptest::sample::select(keys), "[a-c0-5]{1,3}").prop_map(|(key, value)| pax(key, &value));
    let extended =
        (proptest::collection::vec(record, 1..3), proptest::sample::select(vec![b'x', b'x', b'g']))
            .prop_map(|(records, kind)| {
                tar_entry("pax", 0o644, kind, "", records.concat().as_bytes())
            });
    prop_oneof![3 => plain, 1 => extended]
}

/// The checksum of each header is made right again, so that a change is not refused for that alone.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    for block in bytes
        .chunks_mut(512)
        .filter(|block| block.len() == 512 && block[257..].starts_with(b"ustar"))
    {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    bytes
}

/// On a system without modes the crate makes some up.
fn modeless(mut all: Vec<Seen>) -> Vec<Seen> {
    for one in all.iter_mut().filter(|one| one.kind == 'x') {
        one.kind = 'f';
    }
    all
}

/// Each of these was once read by us as one thing and by others as another.
#[test]
fn what_has_two_readings_is_refused() {
    let file = |name: &str| tar_entry(name, 0o644, b'0', "", b"x");
    let ahead =
        |kind, records: &[String]| tar_entry("h", 0o644, kind, "", records.concat().as_bytes());
    let long = |name: &str| tar_entry("h", 0o644, b'L', "", name.as_bytes());
    let path = |name| pax("path", name);
    let size = |length| pax("size", length);
    let directory = tar_entry("d", 0o755, b'5', "", b"");
    refused(&gzip(&tar(&[ahead(b'x', &[path("a"), path("b")]), file("c")])), "two headers");
    refused(&gzip(&tar(&[ahead(b'x', &[path("a")]), long("b"), file("c")])), "two headers");
    refused(&gzip(&tar(&[long("a"), long("b"), file("c")])), "two headers");
    refused(&gzip(&tar(&[file("c"), long("a")])), "does not follow");
    refused(
        &gzip(&tar(&[ahead(b'x', &[size("512")]), directory.clone(), file("c")])),
        "has content",
    );
    assert_eq!(
        unpack(&gzip(&tar(&[ahead(b'x', &[path("a"), size("1")]), file("c")]))).unwrap().len(),
        1
    );
    assert_eq!(unpack(&gzip(&tar(&[ahead(b'x', &[size("0")]), directory]))).unwrap().len(), 1);
    for (at, value, said) in [(124, b'+', "not octal"), (124, 0, "not octal")] {
        let mut bytes = tar(&[file("c")]);
        bytes[at] = value;
        refused(&gzip(&summed(bytes)), said);
    }

    let named = |other: &[u8], system: u8, mode: u32| {
        let mut bytes = zip(&[with_mode("a", mode, "x")]);
        let directory = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
        let extra =
            [b"up".as_slice(), &(other.len() as u16 + 5).to_le_bytes(), &[1, 0, 0, 0, 0], other]
                .concat();
        bytes[directory + 5] = system;
        bytes[directory + 30..directory + 32].copy_from_slice(&(extra.len() as u16).to_le_bytes());
        let (end, length) = (directory + 47, (47 + extra.len()) as u32);
        bytes.splice(end..end, extra);
        let end = bytes.windows(4).rposition(|w| w == b"PK\x05\x06").unwrap();
        bytes[end + 12..end + 16].copy_from_slice(&length.to_le_bytes());
        bytes
    };
    assert_eq!(unpack(&named(b"a", 3, 0o100_644)).unwrap().len(), 1);
    assert_eq!(unpack(&named(b"a", 0, 0)).unwrap().len(), 1);
    refused(&named(b"b", 3, 0o100_644), "another name");
    refused(&named(b"a", 1, 0o100_644), "unknown system");
    refused(&named(b"a", 0, 0o120_777), "without links");
}

proptest! {
    #[test]
    fn a_tar_archive_is_read_as_the_crate_reads_it(
        members in proptest::collection::vec(member(), 1..5),
        changes in proptest::collection::vec((0usize..512, any::<u8>()), 0..3),
    ) {
        let mut bytes = tar(&members);
        for (at, value) in changes {
            bytes[at] = value;
        }
        let bytes = summed(bytes);
        if let Ok(seen) = ours(&gzip(&bytes)) {
            let theirs = by_tar(&bytes);
            prop_assert!(theirs.is_ok(), "the crate refuses: {:?}; ours: {:?}", theirs.err(), seen);
            prop_assert_eq!(seen, theirs.unwrap());
        }
    }

    #[test]
    fn a_zip_archive_is_read_as_the_crate_reads_it(
        entries in proptest::collection::vec(("[a-c]{1,2}(/[d-f])?/?", "[a-z]{0,9}", 0usize..4), 1..5),
        changes in proptest::collection::vec((0usize..600, any::<u8>()), 0..3),
    ) {
        let made: Vec<Made> = entries
            .iter()
            .map(|(name, content, kind)| match kind {
                0 => with_mode(name, 0o100_755, content),
                1 => with_mode(&format!("{}/", name.trim_end_matches('/')), 0o040_755, ""),
                2 => with_mode(name, 0o120_777, content),
                _ => file(name, content),
            })
            .collect();
        let mut bytes = zip(&made);
        for (at, value) in changes {
            let length = bytes.len();
            bytes[at % length] = value;
        }
        if let Ok(seen) = ours(&bytes) {
            let theirs = by_zip(&bytes);
            prop_assert!(theirs.is_ok(), "the crate refuses: {:?}; ours: {:?}", theirs.err(), seen);
            prop_assert_eq!(modeless(seen), modeless(theirs.unwrap()));
        }
    }

    /// What the crates write is taken: strict is not the same as unusable.
    #[test]
    fn archives_of_the_crates_are_taken(
        files in proptest::collection::btree_map("[a-d]{1,3}(/[e-h]{1,60}){0,3}", "[a-z]{0,2000}", 1..6),
    ) {
        let is_above = |name: &String| files.keys().any(|other| other.starts_with(&format!("{name}/")));
        let files: Vec<_> = files.iter().filter(|(name, _)| !is_above(name)).collect();
        let expected: Vec<Seen> = files
            .iter()
            .map(|(path, content)| Seen {
                path: path.to_string(),
                kind: 'f',
                content: content.as_bytes().to_vec(),
            })
            .collect();

        let mut tar = ::tar::Builder::new(Vec::new());
        let mut zip = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
        let mut written = ZipWriter::new(Vec::new(), Effort::Quick);
        for (name, content) in &files {
            let path = EntryPath::parse(name.as_bytes()).unwrap();
            let source = ZipContent::File { is_executable: false, content: &mut content.as_bytes() };
            written.add(&path, source).unwrap();
            let mut header = ::tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, content.as_bytes()).unwrap();
            zip.start_file(name.as_str(), ::zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(content.as_bytes()).unwrap();
        }
        prop_assert_eq!(ours(&gzip(&tar.into_inner().unwrap())).unwrap(), expected.clone());
        prop_assert_eq!(ours(&zip.finish().unwrap().into_inner()).unwrap(), expected.clone());
        // And the other way round: what we write.
        prop_assert_eq!(by_zip(&written.finish().unwrap()).unwrap(), expected);
    }
}
