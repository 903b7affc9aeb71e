//! Options of sockets.

use std::io::{self, Write};
use std::net::IpAddr;

use mio::net::TcpStream;

/// Small packets go out at once, and a peer that is gone is noticed in a few minutes.
pub fn tune_outer(stream: &TcpStream, to: IpAddr) {
    let _ = stream.set_nodelay(true);
    take_urgent_inline(stream);
    if !to.is_loopback() {
        keep_alive(stream);
    }
}

pub fn tune_inner(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    take_urgent_inline(stream);
}

/// A byte that is sent as urgent stays in its place in the stream. Taken out of it, our view of what
/// a client says would not be the server's. A listener hands it on to what it accepts: the kernel drops an
/// urgent byte when a second one comes before the first is read and before the socket was told.
#[cfg(unix)]
pub fn take_urgent_inline(socket: &impl std::os::fd::AsFd) {
    let _ = rustix::net::sockopt::set_socket_oobinline(socket, true);
}

#[cfg(not(unix))]
pub fn take_urgent_inline<S>(_: &S) {}

#[cfg(unix)]
fn keep_alive(stream: &TcpStream) {
    use std::time::Duration;

    use rustix::net::sockopt;
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, Duration::from_secs(60));
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15));
    let _ = sockopt::set_tcp_keepcnt(stream, 6);
}

#[cfg(not(unix))]
fn keep_alive(_: &TcpStream) {}

/// Closes with a reset, so that the peer sees an error and not the end of a stream.
#[cfg(unix)]
pub fn reset(stream: TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO));
}

#[cfg(not(unix))]
pub fn reset(stream: TcpStream) {
    drop(stream);
}

/// Whether all of it could be written.
pub fn say(mut stream: &TcpStream, words: &mut Vec<u8>) -> io::Result<bool> {
    while !words.is_empty() {
        match stream.write(words) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => drop(words.drain(..count)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    // A connection that rests holds nothing.
    *words = Vec::new();
    Ok(true)
}
