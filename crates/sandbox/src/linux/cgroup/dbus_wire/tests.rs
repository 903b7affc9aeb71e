use proptest::prelude::*;

use super::*;

const METHOD: Method<'static> = Method {
    destination: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
    member: "StartTransientUnit",
};

/// A message as the other side would write it, in either byte order.
fn message(kind: u8, fields: &[(u8, &str, &str)], body: &[u8]) -> Vec<u8> {
    let mut message = Arguments { bytes: vec![b'l', kind, 0, 1] };
    message.u32(body.len() as u32).u32(7);
    message.array(8, |array| {
        for (code, signature, value) in fields {
            array.align(8);
            array.bytes.push(*code);
            array.signature(signature);
            match *signature {
                "g" => array.signature(value),
                "u" => array.u32(value.parse().unwrap()),
                _ => array.string(value),
            };
        }
    });
    message.align(8);
    message.bytes.extend(body);
    message.bytes
}

#[test]
fn a_call_is_what_the_specification_says() {
    let mut arguments = Arguments::default();
    arguments.string("a");
    let method = Method { destination: "d", path: "/p", interface: "i", member: "m" };
    let bytes = call(1, method, "s", &arguments);
    #[rustfmt::skip]
    let expected: &[u8] = &[
        b'l', 1, 0, 1,  6, 0, 0, 0,  1, 0, 0, 0,  71, 0, 0, 0,
        1, 1, b'o', 0,  2, 0, 0, 0,  b'/', b'p', 0, 0,  0, 0, 0, 0,
        2, 1, b's', 0,  1, 0, 0, 0,  b'i', 0, 0, 0,  0, 0, 0, 0,
        3, 1, b's', 0,  1, 0, 0, 0,  b'm', 0, 0, 0,  0, 0, 0, 0,
        6, 1, b's', 0,  1, 0, 0, 0,  b'd', 0, 0, 0,  0, 0, 0, 0,
        8, 1, b'g', 0,  1, b's', 0, 0,
        1, 0, 0, 0, b'a', 0,
    ];
    assert_eq!(bytes, expected);
    let prefix: [u8; PREFIX] = bytes[..PREFIX].try_into().unwrap();
    assert_eq!(length(&prefix), Ok(bytes.len()));
    assert_eq!(parse(&bytes), Ok(Incoming::Other));
}

#[test]
fn answers_and_signals_are_understood() {
    let mut body = Arguments::default();
    body.string("/job/1");
    let bytes =
        message(METHOD_RETURN, &[(5, "u", "3"), (8, "g", "o"), (7, "s", ":1.2")], &body.bytes);
    assert_eq!(parse(&bytes), Ok(Incoming::Return { to: 3, first: Some("/job/1".to_owned()) }));

    let bytes = message(METHOD_RETURN, &[(5, "u", "3")], &[]);
    assert_eq!(parse(&bytes), Ok(Incoming::Return { to: 3, first: None }));

    let mut body = Arguments::default();
    body.string("no");
    let fields = [(4, "s", "a.b.Denied"), (5, "u", "2"), (8, "g", "s")];
    let error = Incoming::Error { to: 2, name: "a.b.Denied".to_owned(), text: "no".to_owned() };
    assert_eq!(parse(&message(ERROR, &fields, &body.bytes)), Ok(error));

    let mut body = Arguments::default();
    body.u32(12).string("/job/1").string("mcp-1.scope").string("done");
    let fields = [(1, "o", "/m"), (2, "s", "i"), (3, "s", "JobRemoved"), (8, "g", "uoss")];
    let removed = Incoming::JobRemoved { job: "/job/1".to_owned(), result: "done".to_owned() };
    assert_eq!(parse(&message(SIGNAL, &fields, &body.bytes)), Ok(removed));
    let fields = [(3, "s", "UnitNew"), (8, "g", "so")];
    assert_eq!(parse(&message(SIGNAL, &fields, &[])), Ok(Incoming::Other));
}

#[test]
fn what_claims_too_much_is_refused() {
    let mut prefix = [0; PREFIX];
    prefix[0] = b'l';
    prefix[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(length(&prefix), Err(Malformed));
    prefix[4..8].copy_from_slice(&0u32.to_le_bytes());
    prefix[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(length(&prefix), Err(Malformed));
    assert_eq!(length(&[0; PREFIX]), Err(Malformed));
    let whole = message(METHOD_RETURN, &[(5, "u", "3"), (8, "g", "o")], b"\x05\0\0\0abcde\0");
    for end in 0..whole.len() {
        assert_eq!(parse(&whole[..end]), Err(Malformed), "{end}");
    }
}

#[test]
fn sockets_of_addresses() {
    let path = |text: &str| Some(Socket::Path(text.as_bytes().to_vec()));
    for (address, socket) in [
        ("unix:path=/run/user/1000/bus", path("/run/user/1000/bus")),
        ("unix:guid=00,path=/a%20b", path("/a b")),
        ("tcp:host=x,port=1;unix:path=/b", path("/b")),
        ("unix:abstract=/tmp/dbus-x,guid=1", Some(Socket::Abstract(b"/tmp/dbus-x".to_vec()))),
        ("unix:path=/%4", None),
        ("unix:path=/%zz", None),
        ("unix:tmpdir=/tmp", None),
        ("autolaunch:", None),
        ("", None),
    ] {
        assert_eq!(socket_of(address), socket, "{address}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, start in prop::sample::select(vec![b'l', b'B'])) {
        let mut message = vec![start, METHOD_RETURN];
        message.extend(bytes);
        let _ = parse(&message);
        if let Some(prefix) = message.first_chunk() {
            let _ = length(prefix);
        }
    }

    #[test]
    fn our_calls_have_the_length_they_claim(name in "[a-z0-9-]{0,40}", pids: Vec<u32>) {
        let mut arguments = Arguments::default();
        arguments.string(&name).string("fail");
        arguments.array(8, |properties| {
            properties.property("Delegate", "b", |value| {
                value.boolean(true);
            });
            properties.property("PIDs", "au", |value| {
                value.array(4, |array| {
                    for pid in &pids {
                        array.u32(*pid);
                    }
                });
            });
        });
        arguments.array(8, |_| {});
        let bytes = call(9, METHOD, "ssa(sv)a(sa(sv))", &arguments);
        prop_assert_eq!(length(bytes.first_chunk().unwrap()), Ok(bytes.len()));
        prop_assert_eq!(parse(&bytes), Ok(Incoming::Other));
    }
}
