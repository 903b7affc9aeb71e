//! A page on this machine's loopback, for servers that fetch and browse.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::Result;

/// What a server that read the page has to say.
pub const HTML: &str = "<!doctype html><html><head><title>Harbour log</title></head><body><article>\
    <h1>Harbour log</h1><p>The lighthouse keeper counted seventeen pelicans before breakfast, and wrote the number \
    down beside the tide table.</p></article></body></html>";

/// Serves the page to every path but robots.txt until this program ends.
pub fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                // A client that goes away is no fault here.
                let _ = answer(&stream);
            });
        }
    });
    Ok(address)
}

fn answer(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (status, body) = match request.contains(" /robots.txt ") {
        true => ("404 Not Found", ""),
        false => ("200 OK", HTML),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes())?;
    if !request.starts_with("HEAD ") {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}
