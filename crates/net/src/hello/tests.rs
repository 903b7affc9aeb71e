use proptest::prelude::*;

use super::*;

fn block8(data: &[u8]) -> Vec<u8> {
    [&[data.len() as u8], data].concat()
}

fn block16(data: &[u8]) -> Vec<u8> {
    [&(data.len() as u16).to_be_bytes(), data].concat()
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &block16(data)].concat()
}

fn name_entry(kind: u8, name: &[u8]) -> Vec<u8> {
    [&[kind][..], &block16(name)].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    extension(SERVER_NAME, &block16(&name_entry(0, name)))
}

/// A handshake message with these extensions.
fn hello(extensions: &[u8]) -> Vec<u8> {
    let body = [
        &[3, 3][..],
        &[7; 32],
        &block8(&[1; 32]),
        &block16(&[0x13, 0x01, 0x13, 0x02]),
        &block8(&[0]),
        &block16(extensions),
    ]
    .concat();
    [&[CLIENT_HELLO][..], &(body.len() as u32).to_be_bytes()[1..], &body].concat()
}

fn records(message: &[u8], size: usize) -> Vec<u8> {
    message
        .chunks(size)
        .flat_map(|part| [&[HANDSHAKE, 3, 1][..], &block16(part)].concat())
        .collect()
}

fn read(stream: &[u8]) -> HelloProgress {
    HelloReader::default().feed(stream)
}

fn seen(name: Option<&str>, ech: Ech) -> HelloProgress {
    HelloProgress::Hello(Hello { server_name: name.map(|name| name.parse().unwrap()), ech })
}

fn with_extensions(extensions: &[Vec<u8>]) -> HelloProgress {
    read(&records(&hello(&extensions.concat()), MAX_RECORD))
}

#[test]
fn the_name_is_found() {
    let other = extension(43, &[2, 3, 4]);
    let name = server_name(b"API.example.com");
    assert_eq!(
        with_extensions(&[other.clone(), name.clone()]),
        seen(Some("api.example.com"), Ech::Absent)
    );
    assert_eq!(with_extensions(&[other]), seen(None, Ech::Absent));
    let ech = extension(ENCRYPTED_HELLO, &[0, 1, 2]);
    assert_eq!(with_extensions(&[ech, name]), seen(Some("api.example.com"), Ech::Present));
}

#[test]
fn records_and_reads_may_cut_it_anywhere() {
    let message = hello(&server_name(b"a.example"));
    for record in [1, 3, 4, 5, 40, 1000] {
        for piece in [1, 2, 7, 1000] {
            let mut reader = HelloReader::default();
            let stream = records(&message, record);
            let mut last = HelloProgress::NeedMore;
            for bytes in stream.chunks(piece) {
                assert_eq!(last, HelloProgress::NeedMore, "{record} {piece}");
                last = reader.feed(bytes);
            }
            assert_eq!(last, seen(Some("a.example"), Ech::Absent), "{record} {piece}");
            assert_eq!(reader.feed(b"more"), last, "it stays");
        }
    }
}

#[test]
fn other_languages_are_not_tls() {
    for stream in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x",
        &[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f],
        &[0x80, 1, 9],
        // Thrift, memcached, MQTT, MSSQL, LDAP, Cassandra.
        &[0x80, 1, 0, 1, 0, 0, 0, 4],
        &[0x80, 0, 0, 3, 0, 0, 0, 0],
        &[0x10, 0x16, 0, 4],
        &[0x12, 1, 0, 0x2f],
        &[0x30, 0x0c, 2, 1, 1],
        &[4, 0, 0, 0, 1],
        b"\0",
    ] {
        assert_eq!(read(stream), HelloProgress::NotTls, "{stream:?}");
    }
    for stream in [&[][..], &[HANDSHAKE], &[HANDSHAKE, 3, 1, 0], &[0x80], &[0x80, 46]] {
        assert_eq!(read(stream), HelloProgress::NeedMore, "{stream:?}");
    }
}

#[test]
fn what_cannot_be_judged_is_broken() {
    let good = hello(&server_name(b"a.example"));
    let mut long = good.clone();
    long[1] = 2;
    let mut server = good.clone();
    server[0] = 2;
    for (why, stream) in [
        ("SSL 2", vec![0x80, 46, 1, 3, 1, 0]),
        ("SSL 2 of any version", vec![0xff, 46, 1, 9, 9]),
        ("SSL 2, three bytes of it", vec![0x80, 46, 1]),
        ("a heartbeat first", vec![24, 3, 3, 0, 1, 1]),
        ("application data first", vec![23, 3, 3, 0, 1, 1]),
        ("an alert of another version first", vec![21, 5, 0, 0, 2, 1, 90]),
        ("one byte of an alert", vec![21]),
        (
            "a message before the hello",
            [&records(&[0, 0, 0, 0], 4)[..], &records(&good, 99)].concat(),
        ),
        ("an alert first", vec![21, 3, 3, 0, 2]),
        ("change cipher spec first", vec![20, 3, 3, 0, 1, 1]),
        ("an empty record", vec![HANDSHAKE, 3, 1, 0, 0]),
        ("a long record", vec![HANDSHAKE, 3, 1, 0x40, 1]),
        ("interrupted", [&records(&good[..20], 20)[..], &[23, 3, 3, 0, 1]].concat()),
        ("too long", records(&long, 4096)),
        ("a ServerHello", records(&server, 4096)),
        ("one byte of a ServerHello", records(&server[..1], 1)),
    ] {
        assert!(matches!(read(&stream), HelloProgress::Broken(_)), "{why}: {:?}", read(&stream));
    }
}

/// Java's server takes all from 3.0 on, Go's all below 16.0.
#[test]
fn a_record_of_any_other_version_is_broken() {
    let message = hello(&server_name(b"a.example"));
    let good = records(&message, 40);
    let second = 5 + 40;
    assert!(matches!(read(&good), HelloProgress::Hello(_)));
    for version in (0..=255).filter(|version| *version != 3) {
        for at in [0, second] {
            let mut stream = good.clone();
            stream[at + 1] = version;
            let whole = read(&stream);
            assert!(matches!(whole, HelloProgress::Broken(_)), "{version} at {at}: {whole:?}");
        }
        assert!(matches!(read(&[HANDSHAKE, version]), HelloProgress::Broken(_)), "{version}");
    }
}

#[test]
fn spellings_of_one_name_are_that_name() {
    for spelled in [&b"a.example"[..], b"A.EXAMPLE", b"a.Example."] {
        assert_eq!(with_extensions(&[server_name(spelled)]), seen(Some("a.example"), Ech::Absent));
    }
}

#[test]
fn odd_names_are_broken() {
    let entry = name_entry(0, b"a.example");
    for (why, extensions) in [
        ("NUL", vec![server_name(b"evil\0.a.example")]),
        ("a space", vec![server_name(b"a .example")]),
        ("not ASCII", vec![server_name("bücher.example".as_bytes())]),
        ("not UTF-8", vec![server_name(b"\xff.example")]),
        ("empty", vec![server_name(b"")]),
        ("an address", vec![server_name(b"127.0.0.1")]),
        ("an IPv6 address", vec![server_name(b"::1")]),
        ("a bracketed address", vec![server_name(b"[::1]")]),
        ("two dots", vec![server_name(b"a.example..")]),
        (
            "one of each type",
            vec![extension(SERVER_NAME, &block16(&[name_entry(1, b"x"), entry.clone()].concat()))],
        ),
        ("a wildcard", vec![server_name(b"*.example")]),
        ("an empty list", vec![extension(SERVER_NAME, &block16(&[]))]),
        ("no list", vec![extension(SERVER_NAME, &[])]),
        (
            "two names",
            vec![extension(SERVER_NAME, &block16(&[entry.clone(), entry.clone()].concat()))],
        ),
        ("another type", vec![extension(SERVER_NAME, &block16(&name_entry(1, b"a.example")))]),
        ("more behind", vec![extension(SERVER_NAME, &[&block16(&entry)[..], &[0]].concat())]),
        ("twice", vec![server_name(b"a.example"), server_name(b"b.example")]),
        ("a cut extension", vec![vec![0, 0, 0]]),
    ] {
        assert!(matches!(with_extensions(&extensions), HelloProgress::Broken(_)), "{why}");
    }
}

#[test]
fn a_hello_without_extensions_has_no_name() {
    let mut message = hello(&[]);
    message.truncate(message.len() - 2);
    message[3] -= 2;
    assert_eq!(read(&records(&message, 100)), seen(None, Ech::Absent));
}

proptest! {
    #[test]
    fn no_bytes_panic_and_pieces_do_not_matter(
        tail in prop::collection::vec(any::<u8>(), 0..200), start in 0usize..4, piece in 1usize..40,
    ) {
        let good = records(&hello(&server_name(b"a.example")), 50);
        let stream = [&good[..good.len() * start / 4], &tail].concat();
        let whole = read(&stream);
        let mut reader = HelloReader::default();
        let mut last = HelloProgress::NeedMore;
        for bytes in stream.chunks(piece) {
            last = reader.feed(bytes);
        }
        prop_assert_eq!(whole, last);
        prop_assert!(reader.message.len() <= MAX_HELLO + MAX_RECORD);
    }

    /// No server that is more lenient sees a name in a stream that is not TLS here, or another one
    /// than is seen here.
    #[test]
    fn no_lenient_server_sees_another_name(
        parts in prop::collection::vec(part(), 1..6),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut stream = parts.concat();
        for (at, value) in flips {
            let at = at.index(stream.len().max(1));
            if let Some(byte) = stream.get_mut(at) {
                *byte = value;
            }
        }
        let names = lenient::names(&stream);
        match read(&stream) {
            HelloProgress::NotTls => prop_assert_eq!(&names, &[] as &[String]),
            HelloProgress::Hello(Hello { server_name: Some(name), .. }) => {
                let others = names.iter().any(|other| other.parse().as_ref() != Ok(&name));
                prop_assert!(!others, "{} here, {:?} there", name, names);
            }
            HelloProgress::Hello(Hello { server_name: None, .. }) => {
                prop_assert_eq!(&names, &[] as &[String]);
            }
            // Nothing of it is passed on.
            HelloProgress::NeedMore | HelloProgress::Broken(_) => {}
        }
    }
}

/// A record, or several, as some server may take them.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec!["a.example", "b.example", "A.example.", "b"]);
    let entry = (prop::sample::select(vec![0u8, 0, 0, 1]), name)
        .prop_map(|(kind, name)| name_entry(kind, name.as_bytes()));
    let list = prop::collection::vec(entry, 0..3)
        .prop_map(|entries| extension(SERVER_NAME, &block16(&entries.concat())));
    let other = Just(extension(43, &[2, 3, 4]));
    let extensions = prop::collection::vec(prop_oneof![2 => list, 1 => other], 0..3);
    let version = prop_oneof![4 => Just(3u8), 1 => any::<u8>()];
    let hello = (extensions, prop::sample::select(vec![1usize, 7, 60, 16_384]), version.clone())
        .prop_map(|(extensions, size, version)| {
            let mut stream = records(&hello(&extensions.concat()), size);
            stream[1] = version;
            stream
        });
    let odd = (20u8..=24, version, prop::collection::vec(any::<u8>(), 0..3))
        .prop_map(|(kind, version, data)| [&[kind, version, 3][..], &block16(&data)].concat());
    prop_oneof![3 => hello, 1 => odd]
}

/// All that servers forgive, together: any version, other records and messages before the hello,
/// empty ones, any of several names.
mod lenient {
    use super::*;

    pub fn names(stream: &[u8]) -> Vec<String> {
        let (mut cursor, mut messages) = (Cursor::new(stream), Vec::new());
        while let Some(kind) = cursor.u8() {
            let (Some(_), Some(data)) = (cursor.u16(), cursor.block16()) else { break };
            match kind {
                HANDSHAKE => messages.extend_from_slice(data),
                20..=24 => {}
                _ => break,
            }
        }
        let mut cursor = Cursor::new(&messages);
        while let (Some(kind), Some(high)) = (cursor.u8(), cursor.u8()) {
            let Some(low) = cursor.u16() else { break };
            let Some(body) = cursor.take(usize::from(high) << 16 | usize::from(low)) else { break };
            if kind == CLIENT_HELLO {
                return of_hello(body).unwrap_or_default();
            }
        }
        Vec::new()
    }

    fn of_hello(body: &[u8]) -> Option<Vec<String>> {
        let mut names = Vec::new();
        let mut cursor = Cursor::new(body);
        cursor.take(34)?;
        cursor.block8()?;
        cursor.block16()?;
        cursor.block8()?;
        let mut cursor = Cursor::new(cursor.block16()?);
        while let (Some(kind), Some(data)) = (cursor.u16(), cursor.block16()) {
            if kind != SERVER_NAME {
                continue;
            }
            let mut list = Cursor::new(data);
            list.take(2)?;
            while let (Some(0), Some(name)) = (list.u8(), list.block16()) {
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
        Some(names)
    }
}
