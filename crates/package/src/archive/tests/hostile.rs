//! Hostile archives, each beside the same archive without the trick.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

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
        .add(&path, ZipContent::File { is_executable: false, content: &mut bomb.as_slice() })
        .unwrap();
    writer.finish().unwrap();
    refused(&fs::read(scratch.join("z")).unwrap(), "no real package");

    let small = ArchiveLimits { entries: 2, file: 10, total: 15, ratio: 1000 };
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
    refused(&[good.clone(), b"trailing".to_vec()].concat(), "data follows it");
    let signature =
        [b"MCPB_SIG_V1".as_slice(), &4u32.to_le_bytes(), b"abcd", b"MCPB_SIG_END"].concat();
    unpack(&[good.clone(), signature.clone()].concat()).unwrap();
    let mut counted = good.clone();
    let length = counted.len();
    counted[length - 2..].copy_from_slice(&(signature.len() as u16).to_le_bytes());
    unpack(&[counted, signature.clone()].concat()).unwrap();
    let lying = [b"MCPB_SIG_V1".as_slice(), &9u32.to_le_bytes(), b"abcd", b"MCPB_SIG_END"].concat();
    refused(&[good.clone(), lying].concat(), "wrong length");
    refused(&[good, signature, b"x".to_vec()].concat(), "data follows it");

    let honest = tar(&[tar_entry("a", 0o644, b'0', "", b"x")]);
    unpack(&gzip(&[honest.clone(), vec![0; 9000]].concat())).unwrap();
    refused(&gzip(&[honest.clone(), b"trailing".to_vec()].concat()), "follows its end");
    refused(&[gzip(&honest), b"trailing".to_vec()].concat(), "follows its end");
    refused(&[gzip(&honest), gzip(&honest)].concat(), "follows its end");
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
}
