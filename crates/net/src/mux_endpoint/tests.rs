use std::io::{PipeReader, PipeWriter};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, spawn};

use super::*;
use crate::mux::{Frame, MOST, WINDOW};

/// After this a test is stuck.
const LONG: Duration = Duration::from_secs(30);

fn loopback() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream
}

/// Two ends that run, and a server behind them.
struct Pair {
    at: SocketAddr,
    server: TcpListener,
    ends: [Receiver<io::Result<Ended>>; 2],
    farewell: Farewell,
}

fn start(mux_endpoint: MuxEndpoint) -> Receiver<io::Result<Ended>> {
    let (done, over) = channel();
    spawn(move || done.send(mux_endpoint.run()));
    over
}

impl Pair {
    fn new() -> Pair {
        let (inner, server) = (loopback(), loopback());
        let at = inner.local_addr().unwrap();
        let (from_inside, to_outside) = io::pipe().unwrap();
        let (from_outside, to_inside) = io::pipe().unwrap();
        let to = Door::To(server.local_addr().unwrap());
        let outside = MuxEndpoint::new(to, from_inside, to_inside).unwrap();
        let inside = MuxEndpoint::new(Door::From(inner), from_outside, to_outside).unwrap();
        let farewell = outside.farewell();
        Pair { at, server, ends: [start(outside), start(inside)], farewell }
    }

    fn joined(&self) -> (TcpStream, TcpStream) {
        let client = patient(TcpStream::connect(self.at).unwrap());
        (client, patient(self.server.accept().unwrap().0))
    }
}

/// An end of ours, and the other one in our hands.
struct Liar {
    /// Behind an end that answers.
    server: TcpListener,
    say: PipeWriter,
    hear: PipeReader,
    over: Receiver<io::Result<Ended>>,
    farewell: Farewell,
}

impl Liar {
    fn new() -> Liar {
        let server = loopback();
        let door = Door::To(server.local_addr().unwrap());
        Liar::at(door, server)
    }

    /// Before an end that opens, and where programs connect to it.
    fn answering() -> (Liar, SocketAddr) {
        let (inner, closed) = (loopback(), loopback());
        let at = inner.local_addr().unwrap();
        (Liar::at(Door::From(inner), closed), at)
    }

    fn at(door: Door, server: TcpListener) -> Liar {
        let (from, say) = io::pipe().unwrap();
        let (hear, to) = io::pipe().unwrap();
        let mux_endpoint = MuxEndpoint::new(door, from, to).unwrap();
        let farewell = mux_endpoint.farewell();
        Liar { server, say, hear, over: start(mux_endpoint), farewell }
    }

    /// Until it has heard a message.
    fn hear(&mut self) -> Frame {
        let mut frames = FrameReader::default();
        let mut byte = [0];
        loop {
            self.hear.read_exact(&mut byte).unwrap();
            frames.feed(&byte);
            if let Some(frame) = frames.next_frame().unwrap() {
                return frame;
            }
        }
    }

    fn say(&mut self, frames: &[Frame]) -> io::Result<()> {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut bytes));
        self.say.write_all(&bytes)
    }
}

fn echo(server: TcpStream) -> JoinHandle<()> {
    spawn(move || {
        let mut writer = server.try_clone().unwrap();
        io::copy(&mut &server, &mut writer).unwrap();
        server.shutdown(Shutdown::Write).unwrap();
    })
}

#[test]
fn bytes_and_ends_of_streams_arrive() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.joined();
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut heard = String::new();
    server.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "question");
    // The other half is still open.
    server.write_all(b"answer").unwrap();
    drop(server);
    heard.clear();
    client.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "answer");
}

#[test]
fn more_than_a_window_arrives_whole_in_both_directions() {
    let pair = Pair::new();
    let (mut client, server) = pair.joined();
    let echo = echo(server);
    let sent: Vec<u8> = (0..40 * WINDOW).map(|n| (n / 251) as u8).collect();
    let (mut writer, words) = (client.try_clone().unwrap(), sent.clone());
    let writing = spawn(move || {
        writer.write_all(&words).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    writing.join().unwrap();
    echo.join().unwrap();
    assert!(heard == sent, "{} of {}", heard.len(), sent.len());
}

#[test]
fn who_does_not_read_keeps_nobody_waiting() {
    let pair = Pair::new();
    let (_lazy, mut server) = pair.joined();
    server.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    // Until every buffer on the way is full.
    while server.write(&[0; 64 << 10]).is_ok() {}
    let (mut client, mut server) = pair.joined();
    client.write_all(b"x").unwrap();
    server.read_exact(&mut [0]).unwrap();
    server.write_all(b"y").unwrap();
    client.read_exact(&mut [0]).unwrap();
}

#[test]
fn nobody_behind_it_is_a_closed_connection() {
    let pair = Pair::new();
    drop(pair.joined());
    let Pair { at, server, ends: _ends, .. } = pair;
    drop(server);
    let mut client = patient(TcpStream::connect(at).unwrap());
    assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn the_end_of_one_end_is_the_end_of_all() {
    let mut liar = Liar::new();
    liar.say(&[Frame::Open(1)]).unwrap();
    let (mut server, _) = liar.server.accept().unwrap();
    drop((liar.say, liar.hear));
    assert_eq!(liar.over.recv_timeout(LONG).unwrap().unwrap().over, Over::Closed);
    assert!(matches!(server.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_violation_is_the_end_of_all() {
    for bad in [
        vec![Frame::Open(1), Frame::Open(1)],
        vec![Frame::Data(1, vec![1])],
        vec![Frame::Open(1), Frame::Credit(1, 1)],
        vec![Frame::Hello { port: 1 }],
    ] {
        let mut liar = Liar::new();
        liar.say(&bad).unwrap();
        let over = liar.over.recv_timeout(LONG).unwrap().unwrap().over;
        assert!(matches!(over, Over::Violated(_)), "{bad:?}: {over:?}");
    }
}

/// It opens for ever and never hears that it may not: what we would have to say to it is bounded, and so it is
/// not heard any more.
#[test]
fn who_floods_and_does_not_listen_is_not_heard() {
    let Liar { server, mut say, mut hear, over, .. } = Liar::new();
    spawn(move || server.incoming().flatten().collect::<Vec<_>>());
    let (done, flooded) = channel();
    spawn(move || {
        let mut said = 0u32;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            for _ in 0..1024 {
                said += 1;
                Frame::Open(said).write(&mut bytes);
            }
            if say.write_all(&bytes).is_err() {
                return;
            }
            let _ = done.send(said);
        }
    });
    let mut most = 0;
    while let Ok(said) = flooded.recv_timeout(Duration::from_secs(2)) {
        most = said;
        // Eight bytes for each that is turned away, and what the pipes hold.
        assert!(said < 1_000_000, "it is heard for ever");
    }
    assert!(most as usize > MOST);
    assert!(over.try_recv().is_err());
    // Once it listens, it is heard again.
    spawn(move || io::copy(&mut hear, &mut io::sink()));
    assert!(flooded.recv_timeout(LONG).is_ok());
}

/// What was said before the farewell arrives whole, and then both ends are gone.
#[test]
fn last_words_arrive() {
    let pair = Pair::new();
    let mut clients: Vec<TcpStream> = Vec::new();
    for _ in 0..20 {
        let mut client = TcpStream::connect(pair.at).unwrap();
        client.write_all(&[7; 50_000]).unwrap();
        clients.push(client);
    }
    drop(clients);
    pair.farewell.say();
    for _ in 0..20 {
        let mut server = patient(pair.server.accept().unwrap().0);
        let mut heard = Vec::new();
        server.read_to_end(&mut heard).unwrap();
        assert_eq!(heard.len(), 50_000);
    }
    let ended = pair.ends.map(|end| end.recv_timeout(LONG).unwrap().unwrap().over);
    assert_eq!(ended, [Over::Closed, Over::Closed]);
}

/// The side that opens says it: who answers is heard out, though the program keeps its connection open.
#[test]
fn who_answers_has_last_words_too() {
    let (mut liar, at) = Liar::answering();
    let mut client = patient(TcpStream::connect(at).unwrap());
    assert_eq!(liar.hear(), Frame::Open(1));
    liar.farewell.say();
    let words: Vec<Frame> = (0..4).map(|_| Frame::Data(1, vec![7; 10_000])).collect();
    liar.say(&words).unwrap();
    liar.say(&[Frame::End(1)]).unwrap();
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard.len(), 40_000);
    assert_eq!(liar.over.recv_timeout(LONG).unwrap().unwrap().over, Over::Closed);
}

/// A server inside is behind the side that answers: it gets nowhere by what it says.
#[test]
fn a_side_that_answers_and_lies_is_not_heard() {
    for bad in [
        vec![Frame::Open(2)],
        vec![Frame::Data(2, vec![1])],
        vec![Frame::Credit(1, 1)],
        vec![Frame::End(1), Frame::Data(1, vec![1])],
        vec![Frame::Hello { port: 1 }],
    ] {
        let (mut liar, at) = Liar::answering();
        let _client = TcpStream::connect(at).unwrap();
        assert_eq!(liar.hear(), Frame::Open(1));
        liar.say(&bad).unwrap();
        let over = liar.over.recv_timeout(LONG).unwrap().unwrap().over;
        assert!(matches!(over, Over::Violated(_)), "{bad:?}: {over:?}");
    }
}

/// No other connection waits while one is made to a server that does not take it.
#[test]
fn who_is_not_there_keeps_nobody_waiting() {
    let closed = loopback();
    let at = closed.local_addr().unwrap();
    drop(closed);
    let mut liar = Liar::at(Door::To(at), loopback());
    let opened: Vec<Frame> = (1..=20).map(Frame::Open).collect();
    liar.say(&opened).unwrap();
    let mut closed: Vec<Frame> = (1..=20).map(|_| liar.hear()).collect();
    closed.sort_by_key(|frame| format!("{frame:?}"));
    let mut expected: Vec<Frame> = (1..=20).map(Frame::Reset).collect();
    expected.sort_by_key(|frame| format!("{frame:?}"));
    assert_eq!(closed, expected);
}

/// A server that ends takes with it who waits for it, whenever that is: each is told.
#[test]
fn who_waits_for_a_server_that_ends_is_told() {
    for pause in [0, 0, 0, 1, 2, 5, 20] {
        let (server, mut liar) = {
            let server = loopback();
            let door = Door::To(server.local_addr().unwrap());
            (server, Liar::at(door, loopback()))
        };
        let words = |id| [Frame::Open(id), Frame::Data(id, vec![7; 10_000]), Frame::End(id)];
        liar.say(&(1..=5).flat_map(words).collect::<Vec<_>>()).unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        drop(server);
        liar.say(&(6..=10).flat_map(words).collect::<Vec<_>>()).unwrap();
        let mut told = HashSet::new();
        while told.len() < 10 {
            match liar.hear() {
                Frame::Reset(id) | Frame::End(id) => drop(told.insert(id)),
                Frame::Credit(..) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A connection that rests costs nothing.
#[test]
fn idle_connections_do_not_keep_it_awake() {
    let (inner, server) = (loopback(), loopback());
    let at = inner.local_addr().unwrap();
    let (_from_inside, to_outside) = io::pipe().unwrap();
    let (from_outside, _to_inside) = io::pipe().unwrap();
    let mut inside = MuxEndpoint::new(Door::From(inner), from_outside, to_outside).unwrap();
    drop(server);
    let mut client = TcpStream::connect(at).unwrap();
    client.write_all(b"x").unwrap();
    let mut events = Events::with_capacity(EVENTS);
    let until = Instant::now() + Duration::from_secs(1);
    let mut turns = 0;
    let waker = inside.waker.clone();
    spawn(move || {
        std::thread::sleep(Duration::from_millis(1100));
        let _ = waker.wake();
    });
    while Instant::now() < until {
        inside.wait(&mut events).unwrap();
        assert!(inside.hear().is_none());
        inside.let_in();
        inside.advance_all();
        inside.writer.put(&mut inside.mux.outbox);
        turns += 1;
    }
    assert!(turns < 50, "{turns} turns for one byte");
}
