use proptest::prelude::*;

use super::frame::LARGEST;
use super::*;

fn heard(mux: &mut Mux, frames: &[Frame]) -> Result<Vec<MuxEvent>, Violation> {
    frames.iter().cloned().map(|frame| mux.hear(frame)).collect()
}

/// What a side has said since it was last asked.
fn said(mux: &mut Mux) -> Vec<Frame> {
    let mut frames = FrameReader::default();
    frames.feed(&std::mem::take(&mut mux.outbox));
    let mut all = Vec::new();
    while let Some(frame) = frames.next_frame().unwrap() {
        all.push(frame);
    }
    assert_eq!(frames.held(), 0);
    all
}

#[test]
fn every_message_reads_back() {
    let all = [
        Frame::Hello { port: 0xabcd },
        Frame::Open(1),
        Frame::Data(7, vec![5; LARGEST]),
        Frame::End(u32::MAX),
        Frame::Reset(9),
        Frame::Credit(3, 0x0102_0304),
        Frame::Bye,
    ];
    let mut bytes = Vec::new();
    all.iter().for_each(|frame| frame.write(&mut bytes));
    let mut frames = FrameReader::default();
    let mut seen = Vec::new();
    for byte in bytes {
        frames.feed(&[byte]);
        seen.extend(frames.next_frame().unwrap());
    }
    assert_eq!(seen, all);
}

#[test]
fn what_no_honest_side_says_is_a_violation() {
    let head = |kind: u8, zero: u8, length: u16, id: u32| {
        let mut bytes = vec![kind, zero];
        bytes.extend(length.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(vec![0; usize::from(length)]);
        bytes
    };
    for (bytes, is_fine) in [
        (head(3, 0, 1, 1), true),
        (head(3, 0, LARGEST as u16 + 1, 1), false),
        (head(3, 0, u16::MAX, 1), false),
        (head(3, 1, 1, 1), false),
        (head(3, 0, 0, 1), false),
        (head(2, 0, 1, 1), false),
        (head(2, 0, 0, 0), false),
        (head(6, 0, 3, 1), false),
        (head(0, 0, 0, 1), false),
        (head(9, 0, 0, 1), false),
    ] {
        let mut frames = FrameReader::default();
        frames.feed(&bytes);
        assert_eq!(frames.next_frame().is_ok(), is_fine, "{:?}", &bytes[..8]);
    }
    let window = WINDOW as usize;
    let full: Vec<Frame> = std::iter::once(Frame::Open(1))
        .chain((0..window / LARGEST).map(|_| Frame::Data(1, vec![0; LARGEST])))
        .collect();
    assert!(heard(&mut Mux::new(MuxRole::Answers), &full).is_ok());
    let one_more = [full, vec![Frame::Data(1, vec![0])]].concat();
    for bad in [
        one_more,
        vec![Frame::Open(1), Frame::Open(1)],
        vec![Frame::Open(2), Frame::Open(1)],
        vec![Frame::Data(1, vec![0])],
        vec![Frame::End(3)],
        vec![Frame::Reset(1)],
        vec![Frame::Credit(1, 1)],
        vec![Frame::Open(1), Frame::Credit(1, 1)],
        vec![Frame::Open(1), Frame::Credit(1, u32::MAX)],
        vec![Frame::Open(1), Frame::End(1), Frame::End(1)],
        vec![Frame::Open(1), Frame::End(1), Frame::Data(1, vec![0])],
        vec![Frame::Hello { port: 1 }],
        vec![Frame::Bye],
    ] {
        assert!(heard(&mut Mux::new(MuxRole::Answers), &bad).is_err(), "{bad:?}");
    }
    assert!(Mux::new(MuxRole::Opens).hear(Frame::Open(1)).is_err());
    assert_eq!(Mux::new(MuxRole::Opens).hear(Frame::Bye), Ok(MuxEvent::Bye));
}

#[test]
fn too_many_are_turned_away_and_leave_nothing() {
    let mut mux = Mux::new(MuxRole::Answers);
    for id in 1..=MOST as u32 {
        assert_eq!(mux.hear(Frame::Open(id)), Ok(MuxEvent::Opened(id)));
    }
    let over = MOST as u32 + 1;
    assert_eq!(mux.hear(Frame::Open(over)), Ok(MuxEvent::Nothing));
    assert_eq!(said(&mut mux), [Frame::Reset(over)]);
    // What it says of one that was turned away is not heard.
    assert_eq!(mux.hear(Frame::Data(over, vec![1])), Ok(MuxEvent::Nothing));
    assert_eq!(mux.hear(Frame::Reset(1)), Ok(MuxEvent::Reset(1)));
    assert_eq!(mux.hear(Frame::Open(over + 1)), Ok(MuxEvent::Opened(over + 1)));
    assert_eq!(mux.held(), 0);
}

#[test]
fn who_does_not_read_is_sent_no_more_than_a_window() {
    let mut mux = Mux::new(MuxRole::Answers);
    mux.hear(Frame::Open(1)).unwrap();
    assert_eq!(mux.send(1, &vec![0; 3 * WINDOW as usize]), WINDOW as usize);
    assert_eq!((mux.room(1), mux.send(1, &[1])), (0, 0));
    mux.hear(Frame::Credit(1, 5)).unwrap();
    assert_eq!(mux.send(1, &[0; 9]), 5);
}

#[test]
fn room_is_given_back_once_for_what_was_taken() {
    let mut mux = Mux::new(MuxRole::Answers);
    heard(&mut mux, &[Frame::Open(1), Frame::Data(1, vec![7; LARGEST])]).unwrap();
    mux.take(1, 10);
    assert_eq!(said(&mut mux), []);
    mux.take(1, LARGEST);
    assert_eq!(said(&mut mux), []);
    heard(&mut mux, &[Frame::Data(1, vec![7; LARGEST])]).unwrap();
    mux.take(1, usize::MAX);
    assert_eq!(said(&mut mux), [Frame::Credit(1, 2 * LARGEST as u32)]);
    assert_eq!(mux.waiting(1), b"");
}

#[test]
fn a_connection_is_over_when_both_have_ended_and_all_is_taken() {
    let mut mux = Mux::new(MuxRole::Opens);
    let id = mux.open().unwrap();
    mux.hear(Frame::Data(id, vec![1, 2])).unwrap();
    mux.hear(Frame::End(id)).unwrap();
    mux.end(id);
    mux.end(id);
    assert_eq!(said(&mut mux), [Frame::Open(id), Frame::End(id)]);
    assert!(!mux.close(id));
    mux.take(id, 2);
    assert!(mux.is_heard_out(id) && mux.close(id) && !mux.close(id));
}

/// One thing that one of two honest sides does.
#[derive(Debug, Clone)]
enum Deed {
    Open,
    Send(bool, u32, usize),
    End(bool, u32),
    Reset(bool, u32),
    Take(bool, u32, usize),
    /// A part of what is on its way arrives.
    Deliver(bool, usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    let (side, id) = (any::<bool>(), 1u32..5);
    prop_oneof![
        1 => Just(Deed::Open),
        4 => (side, id.clone(), 0usize..100_000).prop_map(|(s, i, n)| Deed::Send(s, i, n)),
        1 => (side, id.clone()).prop_map(|(s, i)| Deed::End(s, i)),
        1 => (side, id.clone()).prop_map(|(s, i)| Deed::Reset(s, i)),
        4 => (side, id, 0usize..100_000).prop_map(|(s, i, n)| Deed::Take(s, i, n)),
        6 => (side, 0usize..100_000).prop_map(|(s, n)| Deed::Deliver(s, n)),
    ]
}

fn side(is_opener: bool) -> usize {
    usize::from(is_opener)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Between two honest sides, whatever crosses whatever: no violation, every byte arrives once and in
    /// order, and neither ever holds more than its windows.
    #[test]
    fn honest_sides_understand_each_other(deeds in prop::collection::vec(deed(), 0..120)) {
        let mut muxes = [Mux::new(MuxRole::Answers), Mux::new(MuxRole::Opens)];
        let mut wires: [Vec<u8>; 2] = Default::default();
        let mut frames: [FrameReader; 2] = Default::default();
        let mut sent: HashMap<(usize, Id), Vec<u8>> = HashMap::new();
        let mut taken: HashMap<(usize, Id), Vec<u8>> = HashMap::new();
        let mut next = 0u8;
        let tail = (0..400).map(|n| if n % 2 == 0 { Deed::Deliver(n % 4 == 0, usize::MAX) } else {
            Deed::Take(n % 4 == 1, 1 + (n / 4) % 4, usize::MAX)
        });
        let mut resets = Vec::new();
        for deed in deeds.into_iter().chain(tail) {
            match deed {
                Deed::Open => { if muxes[1].last < 4 { muxes[1].open(); } }
                Deed::Send(who, id, count) => {
                    let bytes: Vec<u8> = (0..count).map(|_| { next = next.wrapping_add(1); next }).collect();
                    let count = muxes[side(who)].send(id, &bytes);
                    sent.entry((side(who), id)).or_default().extend(&bytes[..count]);
                }
                Deed::End(who, id) => muxes[side(who)].end(id),
                Deed::Reset(who, id) => { resets.push(id); muxes[side(who)].reset(id) }
                Deed::Take(who, id, count) => {
                    let mux = &mut muxes[side(who)];
                    let bytes = mux.waiting(id);
                    let bytes = bytes[..count.min(bytes.len())].to_vec();
                    mux.take(id, bytes.len());
                    mux.close(id);
                    taken.entry((1 - side(who), id)).or_default().extend(bytes);
                }
                Deed::Deliver(to, count) => {
                    let wire = &mut wires[side(to)];
                    let bytes: Vec<u8> = wire.drain(..count.min(wire.len())).collect();
                    frames[side(to)].feed(&bytes);
                    while let Some(frame) = frames[side(to)].next_frame().unwrap() {
                        muxes[side(to)].hear(frame).unwrap();
                    }
                }
            }
            for who in [0, 1] {
                let words = std::mem::take(&mut muxes[who].outbox);
                wires[1 - who].extend(words);
                prop_assert!(muxes[who].held() <= muxes[who].streams.len() * WINDOW as usize);
                prop_assert!(frames[who].held() <= LARGEST + 8);
            }
        }
        for (key, bytes) in &taken {
            let whole = sent.get(key).cloned().unwrap_or_default();
            prop_assert!(whole.starts_with(bytes), "{key:?}");
            if !resets.contains(&key.1) {
                prop_assert_eq!(whole.len(), bytes.len(), "{:?}", key);
            }
        }
    }

    /// Bytes of a liar: refused or bounded, and no panic, whichever side it is.
    #[test]
    fn a_liar_is_bounded(opens in any::<bool>(),
                         chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..40),
                         frames in prop::collection::vec((0u8..8, 0u32..4, 0u16..20), 0..200)) {
        let mut mux = Mux::new(if opens { MuxRole::Opens } else { MuxRole::Answers });
        for _ in 0..3 {
            mux.open();
        }
        let mut reader = FrameReader::default();
        for chunk in chunks {
            reader.feed(&chunk);
            while let Ok(Some(frame)) = reader.next_frame() {
                let _ = mux.hear(frame);
            }
        }
        let mut bytes = Vec::new();
        for (kind, id, length) in frames {
            bytes.extend([kind, 0]);
            bytes.extend(length.to_le_bytes());
            bytes.extend(id.to_le_bytes());
            bytes.extend(vec![1; usize::from(length)]);
        }
        let mut reader = FrameReader::default();
        reader.feed(&bytes);
        while let Ok(Some(frame)) = reader.next_frame() {
            if mux.hear(frame).is_err() {
                break;
            }
            prop_assert!(mux.held() <= MOST * WINDOW as usize && mux.streams.len() <= MOST);
            prop_assert!(mux.streams.values().all(|s| s.waiting.capacity() <= WINDOW as usize && s.credit <= WINDOW));
        }
    }
}
