//! Hostile archives, made here byte by byte, each beside the same archive without the trick.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

mod many;

use super::*;
use crate::pack::{Take, pack};
use crate::scratch::Scratch;

/// One entry for the makers below.
#[derive(Clone)]
struct Made {
    name: Vec<u8>,
    mode: u32,
    content: Vec<u8>,
}

fn file(name: &str, content: &str) -> Made {
    Made { name: name.into(), mode: 0o100_644, content: content.into() }
}

fn with_mode(name: &str, mode: u32, content: &str) -> Made {
    Made { mode, ..file(name, content) }
}

/// A zip with stored entries.
fn zip(entries: &[Made]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let mut crc = flate2::Crc::new();
        crc.update(&entry.content);
        let mut common = vec![20, 0, 0, 8, 0, 0, 0, 0, 33, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend((entry.content.len() as u32).to_le_bytes());
        common.extend((entry.content.len() as u32).to_le_bytes());
        common.extend((entry.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(&entry.name);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(&entry.name);
        out.extend(&entry.content);
    }
    let at = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn tar_header(name: &str, mode: u32, length: usize, kind: u8, link: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(format!("{mode:07o}\0").as_bytes());
    block[124..136].copy_from_slice(format!("{length:011o}\0").as_bytes());
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn tar_entry(name: &str, mode: u32, kind: u8, link: &str, content: &[u8]) -> Vec<u8> {
    let mut out = tar_header(name, mode, content.len(), kind, link);
    out.extend(content);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut out = entries.concat();
    out.extend([0; 1024]);
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Unpacks into a directory of its own, with a neighbour that must stay as it is.
fn unpack_with(bytes: &[u8], limits: &Limits) -> Result<(Scratch, Vec<PathBuf>)> {
    let scratch = Scratch::new();
    let archive = scratch.file("archive", bytes);
    let root = scratch.dir("box/root");
    let outcome =
        read(&mut fs::File::open(archive).unwrap(), limits, &mut Unpack::into(&root).unwrap());
    let neighbours: Vec<_> = fs::read_dir(scratch.join("box")).unwrap().collect();
    assert_eq!(neighbours.len(), 1, "something was written outside: {neighbours:?}");
    outcome?;
    let tree = scratch.tree(&root);
    Ok((scratch, tree))
}

fn unpack(bytes: &[u8]) -> Result<Vec<PathBuf>> {
    unpack_with(bytes, &Limits::DEFAULT).map(|(_, tree)| tree)
}

#[track_caller]
fn refused(bytes: &[u8], said: &str) {
    match unpack(bytes) {
        Ok(tree) => panic!("taken: {tree:?}"),
        Err(error) => assert!(error.to_string().contains(said), "{error}"),
    }
}

/// Should a name below a link ever get past the checks of names.
#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    let scratch = Scratch::new();
    let (root, outside) = (scratch.dir("root"), scratch.dir("outside"));
    let mut unpack = Unpack::into(&root).unwrap();
    let mut put = |path: &str, content: Content| {
        let entry = Entry { path: EntryPath::parse(path.as_bytes()).unwrap(), content };
        unpack.entry(&entry, &mut "x".as_bytes())
    };
    let file = || Content::File { is_executable: false, length: 1 };
    put("out", Content::Link("../outside".to_owned())).unwrap();
    put("file", Content::Link("../outside/file".to_owned())).unwrap();
    assert!(put("out/file", file()).is_err());
    assert!(put("out/directory/file", file()).is_err());
    assert!(put("out", Content::Directory).is_err());
    assert!(put("file", file()).is_err());
    put("in/file", file()).unwrap();
    assert!(scratch.tree(&outside).is_empty());
    assert_eq!(fs::read(root.join("in/file")).unwrap(), b"x");
}

#[test]
fn honest_archives_are_taken() {
    let tree =
        unpack(&zip(&[file("a/b.txt", "x"), file("a/c", "y"), with_mode("d/", 0o040_755, "")]))
            .unwrap();
    assert_eq!(tree, ["a", "a/b.txt", "a/c", "d"].map(PathBuf::from));
    let entries = [tar_entry("./", 0o755, b'5', "", b""), tar_entry("./a", 0o755, b'0', "", b"x")];
    assert_eq!(unpack(&gzip(&tar(&entries))).unwrap(), [PathBuf::from("a")]);
}

#[test]
fn names_that_lead_out() {
    for (name, said) in [
        ("../evil", "leads out"),
        ("a/../../evil", "leads out"),
        ("/etc/evil", "is absolute"),
        ("a\\..\\evil", "backslash"),
        ("C:\\evil", "backslash"),
        ("a//b", "empty part"),
        ("./a", "empty part"),
        ("a\nb", "control character"),
        ("", "no usable name"),
    ] {
        refused(&zip(&[file("good", "x"), file(name, "x")]), said);
    }
    refused(&zip(&[Made { name: b"a\xff".to_vec(), ..file("", "") }]), "UTF-8");
    for name in ["../evil", "/etc/evil", "a/../../evil"] {
        refused(&gzip(&tar(&[tar_entry(name, 0o644, b'0', "", b"x")])), "entry");
    }
    let long = format!("{} path=../evil\n", 16);
    let pax = [
        tar_entry("x", 0o644, b'x', "", long.as_bytes()),
        tar_entry("good", 0o644, b'0', "", b"x"),
    ];
    refused(&gzip(&tar(&pax)), "leads out");
    let gnu =
        [tar_entry("x", 0o644, b'L', "", b"../evil\0"), tar_entry("good", 0o644, b'0', "", b"x")];
    refused(&gzip(&tar(&gnu)), "leads out");
}

#[cfg(unix)]
#[test]
fn links_stay_inside() {
    let link =
        |target: &str| [with_mode("d/l", 0o120_777, target), file("d/x", "x"), file("y", "y")];
    for target in ["x", "../y", "../d/x"] {
        unpack(&zip(&link(target))).unwrap_or_else(|error| panic!("{target}: {error}"));
        unpack(&gzip(&tar(&[tar_entry("d/l", 0o777, b'2', target, b"")]))).unwrap();
    }
    for (target, said) in [
        ("../../etc", "leads out"),
        ("/etc/passwd", "is absolute"),
        ("x/../../..", "after a name"),
        ("x/..", "after a name"),
        ("", "no usable target"),
    ] {
        refused(&zip(&link(target)), said);
        refused(&gzip(&tar(&[tar_entry("d/l", 0o777, b'2', target, b"")])), said);
    }
    // Through a link, whatever it leads to.
    refused(
        &zip(&[with_mode("l", 0o120_777, "d"), file("d/x", ""), file("l/evil", "x")]),
        "below it",
    );
    let through = [
        tar_entry("d", 0o755, b'5', "", b""),
        tar_entry("l", 0o777, b'2', "d", b""),
        tar_entry("l/evil", 0o644, b'0', "", b"x"),
    ];
    refused(&gzip(&tar(&through)), "below it");
    refused(
        &gzip(&tar(&[
            tar_entry("a", 0o644, b'0', "", b"x"),
            tar_entry("h", 0o644, b'1', "a", b""),
        ])),
        "hard link",
    );
}

#[test]
fn kinds_and_modes_nobody_needs() {
    for mode in [0o020_666, 0o060_666, 0o010_644, 0o140_755] {
        refused(&zip(&[with_mode("d", mode, "")]), "device");
    }
    for kind in [b'3', b'4', b'6'] {
        refused(&gzip(&tar(&[tar_entry("d", 0o644, kind, "", b"")])), "device");
    }
    refused(&gzip(&tar(&[tar_entry("d", 0o644, b'S', "", b"")])), "of kind");
    for mode in [0o4755, 0o2755, 0o6755] {
        refused(&zip(&[with_mode("s", 0o100_000 | mode, "x")]), "set-uid");
        refused(&gzip(&tar(&[tar_entry("s", mode, b'0', "", b"x")])), "set-uid");
    }
}

#[test]
fn names_that_collide() {
    for (pair, said) in [
        (["a", "a"], "there twice"),
        (["A", "a"], "one name on some systems"),
        (["d/x", "D/y"], "one name on some systems"),
        (["d", "d/x"], "entries below it"),
        (["d/x", "d"], "there twice"),
        (["ÄB", "äb"], "one name on some systems"),
    ] {
        let made = pair.map(|name| file(name, "x"));
        refused(&zip(&made), said);
        assert!(unpack(&zip(&made[..1])).is_ok() && unpack(&zip(&made[1..])).is_ok(), "{pair:?}");
        refused(&gzip(&tar(&pair.map(|name| tar_entry(name, 0o644, b'0', "", b"x")))), said);
    }
}

#[test]
fn bombs_are_not_lit() {
    let bomb = vec![0; 64 << 20];
    refused(&gzip(&tar(&[tar_entry("bomb", 0o644, b'0', "", &bomb)])), "no real package");
    let scratch = Scratch::new();
    let mut out = fs::File::create(scratch.join("z")).unwrap();
    let mut writer = ZipWriter::new(&mut out, Effort::Quick);
    let path = EntryPath::parse(b"bomb").unwrap();
    writer
        .add(&path, Source::File { is_executable: false, content: &mut bomb.as_slice() })
        .unwrap();
    writer.finish().unwrap();
    refused(&fs::read(scratch.join("z")).unwrap(), "no real package");

    let small = Limits { entries: 2, file: 10, total: 15, ratio: 1000 };
    let two = [file("a", "12345"), file("b", "12345")];
    assert!(unpack_with(&zip(&two), &small).is_ok());
    let three = [&two[..], &[file("c", "")]].concat();
    assert!(unpack_with(&zip(&three), &small).is_err());
    let entries = ["a", "b", "c"].map(|name| tar_entry(name, 0o644, b'0', "", b""));
    assert!(unpack_with(&gzip(&tar(&entries[..2])), &small).is_ok());
    let error = unpack_with(&gzip(&tar(&entries)), &small).err().unwrap().to_string();
    assert!(error.contains("more than 2 entries"), "{error}");
    assert!(unpack_with(&zip(&[file("a", "12345678901")]), &small).is_err());
    assert!(unpack_with(&zip(&[file("a", "123456789"), file("b", "123456789")]), &small).is_err());
    let endless = tar(&vec![tar_entry("x", 0o644, b'L', "", &[b'a'; 60_000]); 2000]);
    assert!(unpack_with(&gzip(&endless), &small).is_err());
}

#[test]
fn zip_entries_that_share_bytes() {
    let mut bytes = zip(&[file("a", "x"), file("b", "x")]);
    // The second record points at the first entry.
    let second = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    bytes[second + 42..second + 46].fill(0);
    refused(&bytes, "overlap");
}

#[test]
fn lies_about_contents() {
    let good = zip(&[file("a", "content")]);
    let mut bytes = good.clone();
    let at = bytes.windows(7).position(|w| w == b"content").unwrap();
    bytes[at] ^= 1;
    refused(&bytes, "wrong checksum");
    let mut bytes = good.clone();
    bytes[30] = b'b';
    refused(&bytes, "not what the directory says");
    refused(&[b"junk before ".to_vec(), good.clone()].concat(), "neither a zip");
    refused(&[b"PK\x03\x04".to_vec(), good.clone()].concat(), "not where it should be");
    for (at, value, said) in
        [(8, 1, "encrypted"), (10, 99, "method"), (24, 200, "overlap|length|cut")]
    {
        let mut bytes = good.clone();
        let directory = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
        bytes[directory + at] = value;
        let error = unpack(&bytes).unwrap_err().to_string();
        assert!(said.split('|').any(|word| error.contains(word)), "{error}");
    }
    // Less than there is, with the checksum of that.
    let mut bytes = good.clone();
    let directory = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(b"cont");
    bytes[directory + 16..directory + 20].copy_from_slice(&crc.sum().to_le_bytes());
    bytes[directory + 24] = 4;
    refused(&bytes, "another length");
    let mut sum = tar(&[tar_entry("a", 0o644, b'0', "", b"x")]);
    sum[0] = b'b';
    refused(&gzip(&sum), "wrong checksum");
}

#[test]
fn nothing_behind_the_end_but_a_signature() {
    let good = zip(&[file("a", "content")]);
    refused(&[good.clone(), b"trailing".to_vec()].concat(), "something behind it");
    let signature =
        [b"MCPB_SIG_V1".as_slice(), &4u32.to_le_bytes(), b"abcd", b"MCPB_SIG_END"].concat();
    unpack(&[good.clone(), signature.clone()].concat()).unwrap();
    let mut counted = good.clone();
    let length = counted.len();
    counted[length - 2..].copy_from_slice(&(signature.len() as u16).to_le_bytes());
    unpack(&[counted, signature.clone()].concat()).unwrap();
    let lying = [b"MCPB_SIG_V1".as_slice(), &9u32.to_le_bytes(), b"abcd", b"MCPB_SIG_END"].concat();
    refused(&[good.clone(), lying].concat(), "wrong length");
    refused(&[good, signature, b"x".to_vec()].concat(), "something behind it");

    let honest = tar(&[tar_entry("a", 0o644, b'0', "", b"x")]);
    unpack(&gzip(&[honest.clone(), vec![0; 9000]].concat())).unwrap();
    refused(&gzip(&[honest.clone(), b"trailing".to_vec()].concat()), "behind its end");
    refused(&[gzip(&honest), b"trailing".to_vec()].concat(), "behind its end");
    refused(&[gzip(&honest), gzip(&honest)].concat(), "behind its end");
}

#[test]
fn every_cut_is_noticed() {
    let whole = zip(&[file("a", "some content"), file("b/c", "more")]);
    for length in 0..whole.len() {
        assert!(unpack(&whole[..length]).is_err(), "{length}");
    }
    let packed = gzip(&tar(&[tar_entry("a", 0o644, b'0', "", b"some content")]));
    for length in 0..packed.len() {
        assert!(unpack(&packed[..length]).is_err(), "{length}");
    }
}

#[test]
fn zstd_is_read() {
    let bytes = tar(&[tar_entry("a", 0o644, b'0', "", b"some content")]);
    let packed =
        ruzstd::encoding::compress_to_vec(&bytes[..], ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(unpack(&packed).unwrap(), [PathBuf::from("a")]);
    assert!(unpack(&[packed.clone(), b"x".to_vec()].concat()).is_err());
    assert!(unpack(&packed[..packed.len() - 3]).is_err());
}

fn packed(directory: &Path, take: Take) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(directory, take, Effort::Thorough, &mut bytes).unwrap();
    bytes
}

#[test]
fn packing_is_deterministic_and_unpacks_to_the_same() {
    let (one, two) = (Scratch::new(), Scratch::new());
    for (scratch, names) in [(&one, ["b", "a/x", "a/y"]), (&two, ["a/y", "b", "a/x"])] {
        for name in names {
            scratch.file(name, name.as_bytes());
        }
        scratch.dir("empty");
        scratch.file(".env", b"SECRET=1");
        scratch.file(".git/config", b"");
    }
    let bytes = packed(one.path(), Take::Sources);
    assert_eq!(bytes, packed(two.path(), Take::Sources));
    assert_eq!(unpack(&bytes).unwrap(), ["a", "a/x", "a/y", "b", "empty"].map(PathBuf::from));
    assert!(
        unpack(&packed(one.path(), Take::Everything)).unwrap().contains(&PathBuf::from(".env"))
    );
    // Another content is another bundle.
    fs::write(two.join("b"), "other").unwrap();
    assert_ne!(bytes, packed(two.path(), Take::Sources));
}

#[test]
fn a_changed_tree_is_told_from_its_archive() {
    let source = Scratch::new();
    source.file("a/x", b"one");
    source.file("b", b"two");
    let bytes = packed(source.path(), Take::Sources);
    let compare = |change: &dyn Fn(&Path)| {
        let scratch = Scratch::new();
        let archive = scratch.file("archive", &bytes);
        let root = scratch.dir("root");
        read_path(&archive, &Limits::DEFAULT, &mut Unpack::into(&root).unwrap()).unwrap();
        change(&root);
        let mut compare = Compare::with(&root);
        read_path(&archive, &Limits::DEFAULT, &mut compare).unwrap();
        compare.finish().unwrap()
    };
    assert!(compare(&|_| {}).is_empty());
    let replace = |path: PathBuf, text: &str| {
        fs::remove_file(&path).unwrap();
        fs::write(path, text).unwrap();
    };
    assert_eq!(compare(&|root| replace(root.join("a/x"), "eno")), ["a/x was changed"]);
    assert_eq!(compare(&|root| replace(root.join("b"), "longer")), ["b has another length"]);
    assert_eq!(compare(&|root| fs::remove_file(root.join("b")).unwrap()), ["b is missing"]);
    assert_eq!(compare(&|root| fs::write(root.join("a/new"), "").unwrap()), ["a/new was added"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_change_of_a_byte_is_refused_or_harmless(at in 0usize..400, value: u8) {
        let mut bytes = zip(&[file("a/b", "some content"), with_mode("l", 0o120_777, "a"), file("c", "")]);
        let at = at % bytes.len();
        bytes[at] = value;
        // Whatever it is taken for, nothing gets outside: `unpack` looks.
        let _ = unpack(&bytes);
    }

    #[test]
    fn any_bytes_are_refused_without_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), which in 0usize..3) {
        let start: &[u8] = [&b"PK\x03\x04"[..], &[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]][which];
        let covered = start.len().min(bytes.len());
        bytes[..covered].copy_from_slice(&start[..covered]);
        let _ = unpack(&bytes);
        let _ = unpack(&gzip(&bytes));
    }

    #[test]
    fn trees_survive_packing(files in proptest::collection::btree_map("[a-d]{1,2}(/[e-h]{1,2}){0,2}", "\\PC{0,20}", 1..8)) {
        let source = Scratch::new();
        let mut kept = Vec::new();
        for (name, content) in &files {
            // A name that is a file cannot be a directory too.
            let clashes = files.keys().any(|other| other.starts_with(&format!("{name}/")));
            if !clashes {
                source.file(name, content.as_bytes());
                kept.push(PathBuf::from(name));
            }
        }
        let (scratch, _) = unpack_with(&packed(source.path(), Take::Everything).clone(), &Limits::DEFAULT).unwrap();
        for name in kept {
            prop_assert_eq!(fs::read(scratch.join("box/root").join(&name)).unwrap(), fs::read(source.join(&name)).unwrap());
        }
    }
}
