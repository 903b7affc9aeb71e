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

fn read(stream: &[u8]) -> Progress {
    Reader::default().feed(stream)
}

fn seen(name: Option<&str>, ech: Ech) -> Progress {
    Progress::Hello(Hello { server_name: name.map(|name| name.parse().unwrap()), ech })
}

fn with_extensions(extensions: &[Vec<u8>]) -> Progress {
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
            let mut reader = Reader::default();
            let stream = records(&message, record);
            let mut last = Progress::NeedMore;
            for bytes in stream.chunks(piece) {
                assert_eq!(last, Progress::NeedMore, "{record} {piece}");
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
        &[HANDSHAKE, b'x'],
        &[0x80, 1, 9],
        &[0x80, 1, 1, 7],
        &[21, 2],
        b"\0",
    ] {
        assert_eq!(read(stream), Progress::NotTls, "{stream:?}");
    }
    for stream in
        [&[][..], &[HANDSHAKE], &[HANDSHAKE, 3, 1, 0], &[0x80], &[0x80, 46, 1, 3], &[21, 3]]
    {
        assert_eq!(read(stream), Progress::NeedMore, "{stream:?}");
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
        ("an alert first", vec![21, 3, 3, 0, 2]),
        ("change cipher spec first", vec![20, 3, 3, 0, 1, 1]),
        ("an empty record", vec![HANDSHAKE, 3, 1, 0, 0]),
        ("a long record", vec![HANDSHAKE, 3, 1, 0x40, 1]),
        ("interrupted", [&records(&good[..20], 20)[..], &[23, 3, 3, 0, 1]].concat()),
        ("too long", records(&long, 4096)),
        ("a ServerHello", records(&server, 4096)),
        ("one byte of a ServerHello", records(&server[..1], 1)),
    ] {
        assert!(matches!(read(&stream), Progress::Broken(_)), "{why}: {:?}", read(&stream));
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
        assert!(matches!(with_extensions(&extensions), Progress::Broken(_)), "{why}");
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
        let mut reader = Reader::default();
        let mut last = Progress::NeedMore;
        for bytes in stream.chunks(piece) {
            last = reader.feed(bytes);
        }
        prop_assert_eq!(whole, last);
        prop_assert!(reader.message.len() <= MAX_HELLO + MAX_RECORD);
    }

    #[test]
    fn a_flipped_byte_never_shows_another_valid_name(at in 0usize..200, value: u8) {
        let mut stream = records(&hello(&server_name(b"a.example")), 60);
        let at = at % stream.len();
        stream[at] = value;
        let _ = read(&stream);
    }
}
