//! The way from this machine to a server inside (`--listen`): the launcher takes connections, and a relay in the
//! container brings each to the server.
//!
//! A container has no ports of its own: 127.0.0.1:PORT is the command's or the launcher's, never both, and Windows
//! closes the command's to everybody outside of its container. So the command has 127.0.0.1, and the launcher the
//! same port of [::1], which is what `localhost` means first.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::request::Request;
use crate::windows::confinement::Confinement;
use crate::windows::relay_main;
use crate::windows::relay_process::Relay;
use mcp_net::broker::Inside;
use mcp_net::junction::{Door, Over};

/// How long a connection on this machine may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A server of this machine answers at once; that nobody does, Windows says after two seconds only.
const KNOCK: Duration = Duration::from_millis(50);
/// When to try again whether somebody serves.
const AGAIN: Duration = Duration::from_millis(20);

/// Takes the ports that are to lead inside, before anything is started.
pub fn reserve_ports(request: &Request) -> Result<Vec<(u16, TcpListener)>, Error> {
    let ports = request.policy.network.listen.iter().map(|port| port.value);
    let refuse = |port: u16, (at, e): (SocketAddr, io::Error)| Error::Input {
        what: format!("--listen {port}"),
        why: format!("{at} of this machine cannot be had: {e}"),
    };
    ports.map(|port| reserve_port(port).map_err(|e| refuse(port, e))).collect()
}

fn reserve_port(port: u16) -> Result<(u16, TcpListener), (SocketAddr, io::Error)> {
    let ours = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    // Windows lets one address of a port be taken from a server that has it on all of them.
    for at in [ours, SocketAddr::from((Ipv4Addr::LOCALHOST, port))] {
        if TcpStream::connect_timeout(&at, KNOCK).is_ok() {
            return Err((at, io::Error::other("somebody serves there")));
        }
    }
    let listen = || {
        let listener = TcpListener::bind(ours)?;
        listener.set_nonblocking(true)?;
        Ok((port, listener))
    };
    listen().map_err(|e| (ours, e))
}

/// One port that leads inside.
pub struct ListenRelay {
    /// The number of the plan's step.
    pub step: usize,
    pub port: u16,
    /// Who connects here is connected to the port inside.
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

/// Ports inside, and where they are led to.
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

/// Says a word through a door until the helper inside says it back; whether it did.
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

/// Inside: where the command's server will be.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Hears there what the launcher says through its door, and says it back.
pub fn serve_once(server: &TcpListener, word: &str) -> io::Result<()> {
    let until = Instant::now() + relay_main::PATIENCE;
    while Instant::now() < until {
        match server.accept() {
            Ok((stream, _)) if answered(&stream, word).is_ok() => return Ok(()),
            // Anybody on the machine may knock.
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
