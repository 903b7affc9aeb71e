//! Messages: lines and the filter's pieces do not depend on how the stream was cut, nothing is lost, and an edit of a
//! message leaves a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_protocol::{Destination, Exchange, Frame, Framer, Ids, Kind, Message, OutputFilter};

const MAX: usize = 200;

fn lines(bytes: &[u8], cut: usize) -> Vec<(bool, Vec<u8>)> {
    let mut framer = Framer::new(MAX);
    let mut lines = Vec::new();
    let mut see = |frame: Frame<'_>| match frame {
        Frame::Line(line) | Frame::Unfinished(line) => lines.push((true, line.to_vec())),
        Frame::TooLong { bytes, .. } => lines.push((false, bytes.to_string().into_bytes())),
        _ => {}
    };
    for piece in bytes.chunks(cut) {
        framer.feed(piece, &mut see);
        assert!(framer.held() <= MAX);
    }
    framer.end(&mut see);
    lines
}

fn parted(bytes: &[u8], cut: usize) -> (Vec<u8>, Vec<u8>) {
    let mut filter = OutputFilter::new(1 << 20);
    let (mut client, mut stderr) = (Vec::new(), Vec::new());
    let mut see = |to: Destination, bytes: &[u8]| match to {
        Destination::Client => client.extend_from_slice(bytes),
        Destination::Stderr => stderr.extend_from_slice(bytes),
    };
    for piece in bytes.chunks(cut) {
        filter.feed(piece, &mut see);
    }
    filter.end(&mut see);
    assert_eq!(client.len() + stderr.len(), bytes.len());
    (client, stderr)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let cut = usize::from(*cut).max(1);
    assert_eq!(lines(bytes, cut), lines(bytes, usize::MAX >> 1));
    assert_eq!(parted(bytes, cut), parted(bytes, usize::MAX >> 1));
    let Ok(message) = Message::read(bytes) else { return };
    if let Kind::Request { method, .. } = message.kind() {
        let mut exchange = Exchange::new(Ids::Assigned, 1);
        if let Ok(sent) = exchange.request(&message, ()) {
            let sent = Message::read(&sent).expect("an edited message is a message");
            assert!(matches!(sent.kind(), Kind::Request { method: now, .. } if now == method));
        }
    }
});
