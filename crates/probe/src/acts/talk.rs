//! Acts that exchange words with a server, and not only a handshake: a relay may take a
//! connection that leads nowhere.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::spec::{Args, Failure, Said};

use super::network::look_up;

/// Nothing here hangs for ever; a machine that is emulated takes its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is dropped in silence shows by waiting alone.
const SILENCE: Duration = Duration::from_secs(5);

pub(super) fn connect(place: &str) -> Result<TcpStream, Failure> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in look_up(place)? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// All that a server says until it closes. Nothing at all is a failure.
pub(super) fn hear(mut stream: TcpStream) -> Said {
    let mut heard = vec![0; 4096];
    // Who has spoken and is silent then may have said all, and wait for more.
    let first = stream.read(&mut heard);
    heard.truncate(*first.as_ref().unwrap_or(&0));
    stream.set_read_timeout(Some(SILENCE))?;
    let ended = first.and_then(|_| stream.read_to_end(&mut heard));
    match (ended, heard.is_empty()) {
        (Err(error), true) => Err(error.into()),
        (Ok(_), true) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        _ => Ok(String::from_utf8_lossy(&heard).into_owned()),
    }
}

/// Says something and hears the answer to its end.
pub(crate) fn talk(args: Args<'_>) -> Said {
    let mut stream = connect(&args.text(0))?;
    stream.write_all(&words(&args))?;
    hear(stream)
}

/// What is said to a place: the words that are given, or what a client says first there.
pub(super) fn words(args: &Args<'_>) -> Vec<u8> {
    match args.text_or(1, "").as_ref() {
        "" => greeting(&args.text(0)),
        words => words.replace("\\r", "\r").replace("\\n", "\n").into_bytes(),
    }
}

/// TLS that asks for its name, where that is what clients speak.
fn greeting(place: &str) -> Vec<u8> {
    match place.strip_suffix(":443") {
        Some(name) if name.parse::<IpAddr>().is_err() && !name.starts_with('[') => {
            client_hello(Some(name))
        }
        _ => b"hello\n".to_vec(),
    }
}

/// The same with bytes that no command line can hold.
pub(crate) fn talk_hex(args: Args<'_>) -> Said {
    let digits = args.text(1);
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect();
    let mut stream = connect(&args.text(0))?;
    stream.write_all(&bytes.ok_or_else(|| Failure::usage("not pairs of digits"))?)?;
    hear(stream)
}

/// Hears the first line of a server that speaks first.
pub(crate) fn listen_to(args: Args<'_>) -> Said {
    let mut stream = connect(&args.text(0))?;
    let mut line = [0; 256];
    match stream.read(&mut line)? {
        0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        count => Ok(String::from_utf8_lossy(&line[..count]).into_owned()),
    }
}

/// Sends N bytes, closes its half, and counts what comes back.
pub(crate) fn echo(args: Args<'_>) -> Said {
    let mut stream = connect(&args.text(0))?;
    let count = args.number(1)?;
    let mut sender = stream.try_clone()?;
    let sending = std::thread::spawn(move || {
        let sent = io::copy(&mut io::repeat(b'x').take(count), &mut sender);
        sent.and_then(|_| sender.shutdown(Shutdown::Write))
    });
    let back = io::copy(&mut stream, &mut io::sink())?;
    let sent = sending.join().map_err(|_| Failure::usage("the sender died"))?;
    sent?;
    Ok(back.to_string())
}

/// Begins TLS by asking for a name (`-`: without one), and hears what comes of it. With a third
/// argument N the hello is sent in pieces of N bytes.
pub(crate) fn talk_tls(args: Args<'_>) -> Said {
    let mut stream = connect(&args.text(0))?;
    stream.set_nodelay(true)?;
    let name = args.text(1);
    let hello = client_hello((name != "-").then_some(&name));
    let piece = usize::try_from(args.number_or(2, u64::MAX)?).unwrap_or(usize::MAX);
    for part in hello.chunks(piece.min(hello.len())) {
        stream.write_all(part)?;
        std::thread::sleep(Duration::from_millis(2));
    }
    hear(stream)
}

/// The same through an HTTP proxy: says where to, waits until it is there, begins TLS.
pub(crate) fn tunnel_tls(args: Args<'_>) -> Said {
    let mut stream = connect(&args.text(0))?;
    let place = args.text(1);
    stream.write_all(format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n").as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let name = args.text(2);
    stream.write_all(&client_hello((name != "-").then_some(&name)))?;
    hear(stream)
}

fn block16(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

fn client_hello(name: Option<&str>) -> Vec<u8> {
    let mut extensions = Vec::new();
    if let Some(name) = name {
        let entry = [&[0][..], &block16(name.as_bytes())].concat();
        extensions.extend([0, 0]);
        extensions.extend(block16(&block16(&entry)));
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    body.extend(block16(&[0x13, 0x01]));
    body.extend([1, 0]);
    body.extend(block16(&extensions));
    let mut message = vec![1, 0];
    message.extend(block16(&body));
    [&[22, 3, 1][..], &block16(&message)].concat()
}

pub(crate) fn udp_talk(args: Args<'_>) -> Said {
    let target = look_up(&args.text(0))?
        .into_iter()
        .next()
        .ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
    let local = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(local)?;
    socket.set_read_timeout(Some(SILENCE))?;
    socket.connect(target)?;
    socket.send(args.text_or(1, "hello").as_bytes())?;
    let mut answer = [0; 2048];
    let count = socket.recv(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
}

/// Opens N connections at once, then exchanges words on each. Tells how many worked.
pub(crate) fn talk_at_once(args: Args<'_>) -> Said {
    let addresses = look_up(&args.text(0))?;
    let address = addresses.first().ok_or_else(|| Failure::usage("no address"))?;
    let streams: Vec<_> = (0..args.number(1)?).map_while(|_| open(address)).collect();
    let worked = streams.into_iter().filter_map(|mut stream| {
        stream.write_all(&greeting(&args.text(0))).ok()?;
        hear(stream).ok()
    });
    Ok(worked.count().to_string())
}

fn open(address: &SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

/// Looks up `0.SUFFIX`, `1.SUFFIX` … Tells how many were found.
pub(crate) fn resolve_many(args: Args<'_>) -> Said {
    let suffix = args.text(1);
    let found = (0..args.number(0)?).filter(|n| look_up(&format!("{n}.{suffix}:0")).is_ok());
    Ok(found.count().to_string())
}
