//! Urgent bytes that come before the broker has looked at their connection.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use rustix::net::{SendFlags, send};

use super::{Relay, reached};

/// The kernel drops the first of two urgent bytes on a socket that was not told to keep them.
#[test]
fn early_urgent_bytes_are_kept() {
    let mut relay = Relay::new();
    let mut client = TcpStream::connect(relay.at).unwrap();
    for (urgent, plain) in [(b"x", b"a"), (b"y", b"b"), (b"z", b"c")] {
        send(&client, urgent, SendFlags::OOB).unwrap();
        client.write_all(plain).unwrap();
    }
    client.shutdown(Shutdown::Write).unwrap();
    relay.turn_until(|broker| reached(broker) > 0);
    let (mut server, _) = relay.server.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    let (mut heard, mut bytes) = (Vec::new(), [0; 64]);
    relay.turn_until(|_| match server.read(&mut bytes) {
        Ok(0) => true,
        Ok(count) => {
            heard.extend(&bytes[..count]);
            false
        }
        Err(_) => false,
    });
    // The server's own socket was not told either, so that the urgent bytes go out as plain ones.
    assert_eq!(String::from_utf8_lossy(&heard), "xaybzc");
}
