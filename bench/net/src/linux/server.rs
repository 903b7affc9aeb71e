//! The servers, on the loopback: one that echoes a byte, one that sends without end.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use super::Result;

#[derive(Clone, Copy)]
pub struct Ports {
    pub echo: u16,
    pub source: u16,
}

/// As many as may knock at once.
const BACKLOG: i32 = 4096;
const BLOCK: usize = 256 << 10;

pub fn start() -> Result<Ports> {
    Ok(Ports { echo: serve(echo)?, source: serve(source)? })
}

/// A thread for each connection: the server is to be no bottleneck that hides a sandbox's.
fn serve(talk: fn(TcpStream) -> std::io::Result<()>) -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    rustix::net::listen(&listener, BACKLOG)?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let spawned = thread::Builder::new().stack_size(64 << 10).spawn(move || talk(stream));
            if let Err(error) = spawned {
                eprintln!("bench-net: server: {error}");
            }
        }
    });
    Ok(port)
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut byte = [0];
    while stream.read(&mut byte)? == 1 {
        stream.write_all(&byte)?;
    }
    Ok(())
}

/// Until the client closes.
fn source(mut stream: TcpStream) -> std::io::Result<()> {
    let block = vec![b'x'; BLOCK];
    loop {
        stream.write_all(&block)?;
    }
}
