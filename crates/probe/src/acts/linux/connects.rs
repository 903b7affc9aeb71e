//! Tricks with connect: memory that changes meanwhile, and sockets that are used a second time.

use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::acts::network::look_up;
use crate::spec::{Args, Failure, Said};
use crate::sys::{self, Arg, call};

const PATIENCE: Duration = Duration::from_secs(60);

fn place(text: &str) -> Result<SocketAddrV4, Failure> {
    match look_up(text)?.first() {
        Some(SocketAddr::V4(address)) => Ok(*address),
        _ => Err(Failure::usage("needs an IPv4 address")),
    }
}

/// A `sockaddr_in`, of which all that counts is in the first eight bytes.
fn words(address: SocketAddrV4) -> [u64; 2] {
    let mut bytes = [0; 8];
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    bytes[4..].copy_from_slice(&address.ip().octets());
    [u64::from_ne_bytes(bytes), 0]
}

fn tcp_socket() -> Result<OwnedFd, Failure> {
    let family = Arg::Num(libc::AF_INET as u64);
    let kind = Arg::Num((libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64);
    let fd = call(libc::SYS_socket, &mut [family, kind, Arg::Num(0)])?;
    Ok(sys::own(fd))
}

/// What `connect` reads while another thread writes it.
static ADDRESS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static OVER: AtomicBool = AtomicBool::new(false);

/// Connects again and again while a thread changes the address from one place to the other. Tells
/// who answered, and how often.
pub(crate) fn racing(args: Args<'_>) -> Said {
    let (one, other) = (place(&args.text(0))?, place(&args.text(1))?);
    let rounds = args.number(2)?;
    // There from the first round on: the racer may begin late.
    ADDRESS[0].store(words(one)[0], Ordering::Relaxed);
    let racer = std::thread::spawn(move || {
        while !OVER.load(Ordering::Relaxed) {
            for address in [one, other] {
                ADDRESS[0].store(words(address)[0], Ordering::Relaxed);
                std::hint::spin_loop();
            }
        }
    });
    let mut answers = std::collections::BTreeMap::new();
    for _ in 0..rounds {
        let socket = tcp_socket()?;
        let at = ADDRESS[0].as_ptr() as u64;
        let nr = libc::SYS_connect.cast_unsigned();
        let answer = match sys::raw(nr, [socket.as_raw_fd() as u64, at, 16, 0, 0, 0]) {
            Ok(_) => answer(TcpStream::from(socket)),
            Err(_) => "refused".to_owned(),
        };
        *answers.entry(answer).or_insert(0u64) += 1;
    }
    OVER.store(true, Ordering::Relaxed);
    let _ = racer.join();
    let lines: Vec<_> = answers.iter().map(|(who, count)| format!("{who}: {count}")).collect();
    Ok(lines.join("\n"))
}

fn answer(mut stream: TcpStream) -> String {
    let mut heard = String::new();
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = stream.write_all(b"hello\n");
    let _ = stream.read_to_string(&mut heard);
    heard.trim().to_owned()
}

/// Connects to one place, lets go of it, and uses the socket for another: by `connect`, by
/// `sendto(MSG_FASTOPEN)`, or to `listen`.
pub(crate) fn second_use(args: Args<'_>) -> Said {
    let (first, second) = (place(&args.text(0))?, place(&args.text(1))?);
    let socket = tcp_socket()?;
    let fd = || Arg::Num(socket.as_raw_fd() as u64);
    call(libc::SYS_connect, &mut [fd(), Arg::Words(&mut words(first)), Arg::Num(16)])?;
    call(libc::SYS_shutdown, &mut [fd(), Arg::Num(libc::SHUT_RDWR as u64)])?;
    // The kernel's own way to let go of a connection.
    let _ = call(libc::SYS_connect, &mut [fd(), Arg::Words(&mut [0, 0]), Arg::Num(16)]);
    let answered = match &*args.text(2) {
        "connect" => {
            call(libc::SYS_connect, &mut [fd(), Arg::Words(&mut words(second)), Arg::Num(16)])?;
            answer(TcpStream::from(socket))
        }
        "fastopen" => {
            let mut data = *b"hello\n";
            let length = Arg::Num(data.len() as u64);
            let flags = Arg::Num(libc::MSG_FASTOPEN as u64);
            let (bytes, to) = (Arg::Bytes(&mut data), &mut words(second));
            let to = Arg::Words(to);
            call(libc::SYS_sendto, &mut [fd(), bytes, length, flags, to, Arg::Num(16)])?;
            answer(TcpStream::from(socket))
        }
        "deferred" => {
            let on = &mut 1u32.to_ne_bytes();
            let (level, name) = (libc::IPPROTO_TCP as u64, libc::TCP_FASTOPEN_CONNECT as u64);
            let option = [fd(), Arg::Num(level), Arg::Num(name), Arg::Bytes(on), Arg::Num(4)];
            call(libc::SYS_setsockopt, &mut { option })?;
            call(libc::SYS_connect, &mut [fd(), Arg::Words(&mut words(second)), Arg::Num(16)])?;
            answer(TcpStream::from(socket))
        }
        "listen" => {
            call(libc::SYS_listen, &mut [fd(), Arg::Num(1)])?;
            "listens".to_owned()
        }
        other => return Err(Failure::usage(format!("no such use: {other}"))),
    };
    Ok(answered)
}
