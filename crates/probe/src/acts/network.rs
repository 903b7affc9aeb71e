//! Acts on TCP, UDP and names, in std's own words.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use crate::spec::{Args, Failure, Said};

/// Packets that are dropped in silence must not hang the probe.
const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) fn connect(args: Args<'_>) -> Said {
    reach(&look_up(&args.text(0))?)
}

pub(crate) fn connect6(args: Args<'_>) -> Said {
    let mut addresses = look_up(&args.text(0))?;
    addresses.retain(SocketAddr::is_ipv6);
    reach(&addresses)
}

fn reach(addresses: &[SocketAddr]) -> Said {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(stream) => return Ok(format!("{} -> {}", stream.local_addr()?, address)),
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// Success means that the datagram left; whether it arrived only its receiver knows.
pub(crate) fn udp_send(args: Args<'_>) -> Said {
    let target = look_up(&args.text(0))?
        .into_iter()
        .next()
        .ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
    let local = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let sent = UdpSocket::bind(local)?.send_to(args.text_or(1, "mcp-probe").as_bytes(), target)?;
    Ok(format!("{sent} bytes"))
}

/// Listens on loopback, calls itself and exchanges a byte. Port 0: any.
/// Listens, and leaves it to others to connect.
pub(crate) fn offer(args: Args<'_>) -> Said {
    let port =
        u16::try_from(args.number(0)?).map_err(|_| Failure::usage("a port is below 65536"))?;
    Ok(TcpListener::bind(("127.0.0.1", port))?.local_addr()?.to_string())
}

pub(crate) fn listen(args: Args<'_>) -> Said {
    let port =
        u16::try_from(args.number(0)?).map_err(|_| Failure::usage("a port is below 65536"))?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let address = listener.local_addr()?;
    TcpStream::connect_timeout(&address, PATIENCE)?.write_all(b"!")?;
    let (mut stream, _) = listener.accept()?;
    stream.read_exact(&mut [0])?;
    Ok(address.to_string())
}

/// A server on a loopback port. It echoes what N clients send, one after the other, each until its end.
pub(crate) fn serve(args: Args<'_>) -> Said {
    let port =
        u16::try_from(args.number(0)?).map_err(|_| Failure::usage("a port is below 65536"))?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let mut said = 0;
    for _ in 0..args.number_or(1, 1)? {
        let (mut stream, _) = listener.accept()?;
        let mut writer = stream.try_clone()?;
        said += std::io::copy(&mut stream, &mut writer)?;
        stream.shutdown(std::net::Shutdown::Write)?;
    }
    Ok(format!("{said} bytes"))
}

pub(crate) fn resolve(args: Args<'_>) -> Said {
    let mut addresses: Vec<String> = look_up(&format!("{}:0", args.text(0)))?
        .iter()
        .map(|address| address.ip().to_string())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses.join("\n"))
}

pub(crate) fn look_up(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    // A resolver's error has no number of its own; "no such name" must not look like a broken disk.
    text.to_socket_addrs().map(Iterator::collect).map_err(|error| match error.raw_os_error() {
        Some(_) => error.into(),
        None => Failure { errno: "EAI".into(), detail: error.to_string() },
    })
}
