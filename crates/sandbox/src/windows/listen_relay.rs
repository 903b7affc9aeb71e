//! `--listen`: the launcher accepts connections, and a relay in the container connects each to the command's server.
//!
//! A container shares the ports of the machine: either the command or the launcher can listen on 127.0.0.1:PORT, and
//! Windows blocks connections from outside the container to the command's. So the command listens on 127.0.0.1, and
//! the launcher on the same port of [::1], the first address of `localhost`.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::core::error::Error;
use crate::core::request::Request;
use crate::windows::confinement::Confinement;
use crate::windows::relay_main;
use crate::windows::relay_process::Relay;
use mcp_net::broker::Inside;
use mcp_net::mux_endpoint::{Door, Over};

/// How long a connection on this machine may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A server of this machine answers at once; without one, Windows says so only after two seconds.
const KNOCK: Duration = Duration::from_millis(50);
/// The pause between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(20);

/// Listens on the ports of `--listen` before a process starts.
pub fn reserve_ports(request: &Request) -> Result<Vec<(u16, TcpListener)>, Error> {
    let ports = request.policy.network.listen.iter().map(|port| port.value);
    let refuse = |port: u16, (at, e): (SocketAddr, io::Error)| Error::Input {
        what: format!("--listen {port}"),
        why: format!(
            "cannot listen on {at}: {e}; stop the program that uses it, or choose another port"
        ),
    };
    ports.map(|port| reserve_port(port).map_err(|e| refuse(port, e))).collect()
}

fn reserve_port(port: u16) -> Result<(u16, TcpListener), (SocketAddr, io::Error)> {
    let ours = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    // Windows lets one address of a port be taken from a server that has it on all of them.
    for at in [ours, SocketAddr::from((Ipv4Addr::LOCALHOST, port))] {
        if TcpStream::connect_timeout(&at, KNOCK).is_ok() {
            return Err((at, io::Error::other("another program listens there")));
        }
    }
    let listen = || {
        let listener = TcpListener::bind(ours)?;
        listener.set_nonblocking(true)?;
        Ok((port, listener))
    };
    listen().map_err(|e| (ours, e))
}

/// A relay for one port of `--listen`.
pub struct ListenRelay {
    /// The number of the plan's step.
    pub step: usize,
    pub port: u16,
    /// The relay connects every connection to this address to the command's port.
    at: SocketAddr,
    relay: Relay,
}

impl ListenRelay {
    pub fn open(step: usize, port: u16, confinement: &Confinement) -> io::Result<ListenRelay> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let at = listener.local_addr()?;
        let arguments: [OsString; 2] = [relay_main::MARK_IN.into(), port.to_string().into()];
        let relay = Relay::start(confinement, &arguments, Door::From(listener))?;
        Ok(ListenRelay { step, port, at, relay })
    }

    pub fn door(&self) -> (u16, SocketAddr) {
        (self.port, self.at)
    }

    pub fn close(&mut self) -> Option<Over> {
        self.relay.stop()
    }
}

/// The command's ports, and the address of the relay for each.
pub struct ListenTargets(pub Vec<(u16, SocketAddr)>);

impl Inside for ListenTargets {
    fn listen(&mut self, _: &[SocketAddr]) -> io::Result<Vec<io::Result<TcpListener>>> {
        Ok(Vec::new())
    }

    fn datagrams(&mut self, _: SocketAddr) -> io::Result<UdpSocket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<TcpStream> {
        let door = self.0.iter().find(|(port, _)| to.is_ipv4() && *port == to.port());
        let (_, at) = door.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let stream = TcpStream::connect_timeout(at, PATIENCE)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

/// Sends a word through a relay until the helper inside sends it back; whether it did.
pub fn is_answered(at: SocketAddr, word: &str, is_over: &AtomicBool) -> bool {
    let ask = || -> io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
        stream.set_read_timeout(Some(relay_main::PATIENCE))?;
        stream.write_all(word.as_bytes())?;
        let mut heard = vec![0; word.len()];
        stream.read_exact(&mut heard)?;
        Ok(heard == word.as_bytes())
    };
    while !is_over.load(Ordering::Acquire) {
        if let Ok(true) = ask() {
            return true;
        }
        std::thread::sleep(AGAIN);
    }
    false
}

/// In the container: listens where the command's server will.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Receives the launcher's word through the relay, and sends it back.
pub fn serve_once(server: &TcpListener, word: &str) -> io::Result<()> {
    let until = Instant::now() + relay_main::PATIENCE;
    while Instant::now() < until {
        match server.accept() {
            Ok((stream, _)) if answered(&stream, word).is_ok() => return Ok(()),
            // Any program of the machine may connect here.
            Ok(_) => {}
            Err(_) => std::thread::sleep(AGAIN),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn answered(mut stream: &TcpStream, word: &str) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut heard = vec![0; word.len()];
    stream.read_exact(&mut heard)?;
    if heard != word.as_bytes() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    stream.write_all(&heard)?;
    // The relay closes first, so that the port is free at once for the command.
    stream.read(&mut heard).map(drop)
}
