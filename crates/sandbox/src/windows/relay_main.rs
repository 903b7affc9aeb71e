//! The main function of a relay: this program again, in the command's container, listening on a loopback port. It
//! sends every connection over two pipes to the launcher. With `--listen` there is one more relay for each port, which
//! connects what the launcher sends to the command's server. A relay decides nothing and holds no secret: a command
//! that takes one over gains only the pipes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::exit;
use std::time::Duration;

use crate::windows::failure::{StepError, number};
use crate::windows::sys::handles;
use mcp_net::mux::Frame;
use mcp_net::mux_endpoint::{Door, MuxEndpoint};

/// The first argument of a relay.
pub const MARK: &str = "mcp-sandbox-relay";
/// The first argument of one that leads to a server inside, before the server's port.
pub const MARK_IN: &str = "mcp-sandbox-relay-in";
const NOT_SET_UP: i32 = crate::core::exit_code::NOT_SET_UP as i32;
/// How long the launcher may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the launcher closes the pipes or ends.
pub fn serve() -> ! {
    let running_proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| {
        let port = listener.local_addr()?.port();
        carry(port, Door::From(listener))
    });
    exit(if running_proxy.is_ok() { 0 } else { NOT_SET_UP })
}

/// The same for a server inside.
pub fn serve_in(port: Option<u16>) -> ! {
    let to = |port| Door::To(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let running_proxy = port.map(|port| carry(port, to(port)));
    exit(if matches!(running_proxy, Some(Ok(()))) { 0 } else { NOT_SET_UP })
}

fn carry(port: u16, door: Door) -> io::Result<()> {
    let (from, mut to) = (File::from(handles::duplicate(0)?), File::from(handles::duplicate(1)?));
    let mut hello = Vec::new();
    Frame::Hello { port }.write(&mut hello);
    to.write_all(&hello)?;
    MuxEndpoint::new(door, from, to)?.run().map(drop)
}

/// Sends the first message of SOCKS 5 to the launcher's proxy, without a login or a target. Only that proxy gives this
/// answer, so the connection went through the relay.
pub fn is_reached(port: u16) -> Result<String, StepError> {
    const GREETING: [u8; 3] = [5, 1, 2];
    const CHOICE: [u8; 2] = [5, 2];
    let talk = || -> io::Result<[u8; 2]> {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&GREETING)?;
        let mut answer = [0; 2];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    match talk() {
        Ok(CHOICE) => Ok("connected to the relay, and the launcher's proxy answered".to_owned()),
        Ok(other) => Err((0, format!("another program answered ({other:?})"))),
        Err(e) => {
            Err((number(&e), "a program in the container cannot connect to the relay".to_owned()))
        }
    }
}
