//! Messages of a relay that an attacker controls: no panic, never more kept than the windows allow, and what
//! is heard does not depend on how the stream was cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_net::mux::{FrameReader, MOST, Mux, MuxRole, WINDOW};

fn heard(side: MuxRole, bytes: &[u8], cut: usize) -> Vec<String> {
    let (mut frames, mut mux) = (FrameReader::default(), Mux::new(side));
    // Where it is the one that opens, there is something to lie about.
    for _ in 0..3 {
        mux.open();
    }
    let mut all = Vec::new();
    for piece in bytes.chunks(cut) {
        frames.feed(piece);
        loop {
            match frames.next_frame() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    let said = mux.hear(frame);
                    all.push(format!("{said:?}"));
                    assert!(mux.held() <= MOST * WINDOW as usize);
                    if said.is_err() {
                        return all;
                    }
                }
                Err(violation) => {
                    all.push(format!("{violation:?}"));
                    return all;
                }
            }
        }
    }
    all
}

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    for side in [MuxRole::Answers, MuxRole::Opens] {
        assert_eq!(heard(side, bytes, usize::MAX), heard(side, bytes, usize::from(*cut).max(1)));
    }
});
