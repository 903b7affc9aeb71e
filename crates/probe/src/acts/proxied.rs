//! Acts that go through the proxy that the environment names, as programs do that know of proxies.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::talk::{connect, hear, words};
use crate::spec::{Args, Failure, Said};

/// What `HTTP_PROXY` says: `http://name:password@host:port`.
struct Proxy {
    login: Option<String>,
    place: String,
}

impl Proxy {
    fn of_environment() -> Result<Proxy, Failure> {
        let url = std::env::var("HTTP_PROXY").map_err(|_| Failure::usage("no HTTP_PROXY"))?;
        let rest = url.strip_prefix("http://").unwrap_or(&url);
        Ok(match rest.rsplit_once('@') {
            Some((login, place)) => {
                Proxy { login: Some(login.to_owned()), place: place.to_owned() }
            }
            None => Proxy { login: None, place: rest.to_owned() },
        })
    }
}

/// A way to a place, or what the proxy said instead.
fn tunnel(place: &str) -> Result<TcpStream, Failure> {
    let proxy = Proxy::of_environment()?;
    let mut stream = connect(&proxy.place)?;
    let login = proxy.login.map(|login| base64(login.as_bytes()));
    let login = login.map(|login| format!("Proxy-Authorization: Basic {login}\r\n"));
    let login = login.unwrap_or_default();
    let head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        answer.extend(byte);
    }
    if answer.starts_with(b"HTTP/1.1 200") {
        return Ok(stream);
    }
    let _ = stream.read_to_end(&mut answer);
    Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned()).into())
}

/// Says something to a place and hears the answer to its end.
pub(crate) fn talk(args: Args<'_>) -> Said {
    let mut stream = tunnel(&args.text(0))?;
    stream.write_all(&words(&args))?;
    hear(stream)
}

/// Sends N bytes to a place that echoes them, and counts what comes back.
pub(crate) fn echo(args: Args<'_>) -> Said {
    let mut stream = tunnel(&args.text(0))?;
    let count = args.number(1)?;
    let mut sender = stream.try_clone()?;
    let sending = std::thread::spawn(move || {
        let sent = io::copy(&mut io::repeat(b'x').take(count), &mut sender);
        sent.and_then(|_| sender.shutdown(std::net::Shutdown::Write))
    });
    let back = io::copy(&mut stream, &mut io::sink())?;
    sending.join().map_err(|_| Failure::usage("the sender died"))??;
    Ok(back.to_string())
}

/// Sends something to a place and ends at once, as a program does that does not care.
pub(crate) fn tell(args: Args<'_>) -> Said {
    let mut stream = tunnel(&args.text(0))?;
    let count = args.number(1)?;
    io::copy(&mut io::repeat(b'x').take(count), &mut stream)?;
    Ok("told".into())
}

/// Holds a connection, ends the processes that our own parent has started beside us, and sees the connection end.
#[cfg(windows)]
pub(crate) fn kill(args: Args<'_>) -> Said {
    let mut stream = tunnel(&args.text(0))?;
    let siblings = crate::sys::siblings()?;
    if siblings.is_empty() {
        return Err(Failure::usage("our parent started no other process"));
    }
    for process in siblings {
        crate::sys::terminate(process, true)?;
    }
    match stream.read(&mut [0]) {
        Ok(0) => Ok("closed".into()),
        Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok("closed".into()),
        Ok(_) => Err(Failure::usage("bytes came")),
        Err(e) => Err(e.into()),
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..group.len()].copy_from_slice(group);
        let number = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for at in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { letter.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_as_it_should_be() {
        for (plain, coded) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj")] {
            assert_eq!(super::base64(plain.as_bytes()), coded);
        }
    }
}
