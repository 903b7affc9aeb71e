//! What an allowed name is spoken to with: TLS and plain HTTP ask for a name of the same rule, or not a byte is passed on.

use crate::allowlist::{in_world, says, silent};
use crate::require;
use crate::support::{World, allowed};

/// A connection that was taken and then closed, since it was not what it had to be.
const CLOSED: &[&str] = &["ECONNRESET", "EPIPE", "EOF", "unexpected end of file"];

#[test]
fn tls_must_ask_for_the_name_of_its_rule() {
    require!("userns");
    let world = World::new();
    let run = || in_world(&world, "api.test");
    for piece in ["9999", "1", "7"] {
        allowed(run().probe(&["talk-tls", "api.test:443", "api.test", piece]));
    }
    let answered = world.log().matches("heard").count();
    let finished = silent(run().probe(&["talk-tls", "api.test:443", "other.test"]));
    says(&finished, "mcp: blocked api.test:443: TLS asked for other.test instead");
    let finished = silent(run().probe(&["talk-tls", "api.test:443", "other.test", "3"]));
    assert!(CLOSED.contains(&finished.last("").errno()), "{finished}");
    let finished = silent(run().probe(&["talk-tls", "api.test:443", "-"]));
    says(&finished, "TLS without a server name");
    // What some servers still take for TLS, and where no name can be read.
    let finished = silent(run().probe(&["talk-hex", "api.test:443", "802e0103010000000000000000"]));
    says(&finished, "an SSL 2 hello");
    assert_eq!(world.log().matches("heard").count(), answered, "bytes got out\n{}", world.log());
    // A rule for an address is about the address.
    let address = in_world(&world, "9.9.9.9:443");
    allowed(address.probe(&["talk-tls", "9.9.9.9:443", "other.test"]));
    // One that says so does not look, at its own port alone.
    let off = |rule: &str| in_world(&world, rule).allow_net("api.test");
    for name in ["other.test", "-"] {
        allowed(off("api.test:443,tls=off").probe(&["talk-tls", "api.test:443", name]));
        silent(off("api.test:80,tls=off").probe(&["talk-tls", "api.test:443", name]));
    }
    allowed(off("api.test:*,tls=off").probe(&["talk-tls", "api.test:443", "other.test"]));
}

/// A ClientHello for `name`, in one record of this version, as digits.
fn hello(name: &str, version: u8) -> String {
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap().to_be_bytes();
    let block = |bytes: &[u8]| [&length(bytes)[..], bytes].concat();
    let list = block(&[&[0][..], &block(name.as_bytes())].concat());
    let extensions = block(&[&[0, 0][..], &block(&list)].concat());
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &extensions].concat();
    let record = [&[22, version, 1][..], &block(&[&[1, 0][..], &block(&body)].concat())].concat();
    record.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Java's server takes records of any version from 3.0 on, Go's of any below 16.0, and both go on
/// after a warning: the handshake for another name was completed.
#[test]
fn odd_records_do_not_hide_a_hello() {
    require!("userns");
    // No port of TLS: what is not TLS passes there.
    let world = World::new().with("serve=9.9.9.9:4433");
    let talk = |rule: &str, bytes: &str| {
        in_world(&world, rule).probe(&["talk-hex", "api.test:4433", bytes])
    };
    let rule = "api.test:4433";
    allowed(talk(rule, &hello("api.test", 3)));
    allowed(talk(rule, "0001020304"));
    let answered = world.log().matches("heard").count();
    let other = hello("other.test", 3);
    for (why, bytes) in [
        ("TLS asked for other.test instead", other.clone()),
        ("a TLS record of an unknown version", hello("other.test", 5)),
        ("a TLS record of an unknown version", hello("other.test", 0)),
        ("a TLS record of an unknown version", hello("other.test", 254)),
        ("does not begin with a ClientHello", format!("1503010002015a{other}")),
        ("does not begin with a ClientHello", format!("1505000002015a{other}")),
        ("does not begin with a ClientHello", format!("140303000101{other}")),
        ("does not begin with a ClientHello", format!("170303000101{other}")),
        ("does not begin with a ClientHello", format!("180303000101{other}")),
        ("an empty TLS record", format!("1603010000{other}")),
        ("not a ClientHello", format!("160301000400000000{other}")),
        ("an SSL 2 hello", "802e0107070000000000000000".to_owned()),
    ] {
        let finished = silent(talk(rule, &bytes));
        says(&finished, &format!("mcp: blocked {rule}: "));
        says(&finished, why);
        let unread = format!("(to pass it unread add --allow-net {rule},tls=off)");
        assert_eq!(finished.stderr.contains(&unread), !why.contains("instead"), "{finished}");
    }
    assert_eq!(world.log().matches("heard").count(), answered, "bytes got out\n{}", world.log());
    allowed(talk("api.test:4433,tls=off", &hello("other.test", 5)));
}

/// Opaque bytes could be for a server that reads TLS behind them, where servers are TLS's.
#[test]
fn a_port_of_tls_is_for_tls() {
    require!("userns");
    let world = World::new().with("banner=9.9.9.9:990");
    let lines = ["SSH-2.0-OpenSSH_9.6\\r\\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 443\\r\\n"];
    let get = "GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n";
    for words in [lines[0], lines[1], get] {
        let talk = |rule: &str, place: &str| in_world(&world, rule).probe(&["talk", place, words]);
        let before = world.log().matches("heard").count();
        let finished = silent(talk("api.test", "api.test:443"));
        says(&finished, "mcp: blocked api.test:443: what it says first is not TLS");
        says(&finished, "(to pass it unread add --allow-net api.test:443,tls=off)");
        assert_eq!(world.log().matches("heard").count(), before, "{}", world.log());
        allowed(talk("api.test:443,tls=off", "api.test:443"));
        allowed(talk("api.test", "api.test:80"));
        allowed(talk("9.9.9.9:443", "9.9.9.9:443"));
    }
    // A server that speaks first does not speak TLS.
    let run = in_world(&world, "api.test:990").probe(&["listen-to", "api.test:990"]);
    assert!(allowed(run).detail.starts_with("hello from 9.9.9.9:990"));
}

#[test]
fn plain_http_is_held_to_its_host() {
    require!("userns");
    let world = World::new();
    let request = |host: &str| format!("GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n");
    let run = |host| in_world(&world, "api.test").probe(&["talk", "api.test:80", &request(host)]);
    allowed(run("api.test"));
    let finished = silent(run("other.test"));
    says(&finished, "HTTP asked for other.test instead");
    assert!(!world.saw("other.test"), "{}", world.log());
}
