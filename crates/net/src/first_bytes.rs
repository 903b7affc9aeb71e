//! The first bytes a client sends: TLS, HTTP or neither, and the name in them.
//!
//! What may become TLS is waited for, byte by byte if need be: there the name is a boundary.
//! HTTP is taken for such only when its first line comes in one piece, as every client sends
//! it. Programs with a language of their own may say a letter and wait for an answer, and
//! holding that letter back would be a deadlock.
//!
//! On a port that is registered for TLS alone ([`is_tls_port`]) a client that speaks first has to
//! speak TLS: whatever else it says is either for no server there or for one that reads TLS behind
//! it (the PROXY protocol), and could then ask for any name.

use super::{hello, http};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    NeedMore,
    Tls(hello::Hello),
    Http(http::Head),
    /// Some other language, with no name to check.
    Opaque,
    /// To be closed, with this reason.
    Broken(&'static str),
}

/// Ports of IANA's registry on which clients begin with TLS: https, submissions, nntps, ldaps,
/// domain-s, ftps, telnets, imaps, pop3s.
const TLS_PORTS: [u16; 9] = [443, 465, 563, 636, 853, 990, 992, 993, 995];

/// Whether a client that speaks first on this port has to speak TLS.
pub fn is_tls_port(port: u16) -> bool {
    TLS_PORTS.contains(&port)
}

/// Reads what a client says first. Does not keep the bytes for the server: the caller does.
#[derive(Debug, Default)]
pub struct Opening {
    hello: hello::HelloReader,
    http: http::HttpReader,
    end: Option<Verdict>,
}

impl Opening {
    /// After a verdict other than `NeedMore` it stays.
    pub fn feed(&mut self, bytes: &[u8]) -> Verdict {
        if self.end.is_none() {
            self.end = self.judge(bytes);
        }
        self.end.clone().unwrap_or(Verdict::NeedMore)
    }

    fn judge(&mut self, bytes: &[u8]) -> Option<Verdict> {
        if bytes.is_empty() {
            return None;
        }
        let not_tls = match self.hello.feed(bytes) {
            hello::HelloProgress::NeedMore => None,
            hello::HelloProgress::NotTls => Some(()),
            hello::HelloProgress::Hello(hello) => return Some(Verdict::Tls(hello)),
            hello::HelloProgress::Broken(reason) => return Some(Verdict::Broken(reason)),
        };
        let not_http = match self.http.feed(bytes) {
            http::HttpProgress::NeedMore => (!self.http.is_request()).then_some(()),
            http::HttpProgress::NotHttp => Some(()),
            http::HttpProgress::Head(head) => return Some(Verdict::Http(head)),
            http::HttpProgress::Broken(reason) => return Some(Verdict::Broken(reason)),
        };
        not_tls.and(not_http).map(|()| Verdict::Opaque)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Verdict {
        let mut opening = Opening::default();
        let mut last = Verdict::NeedMore;
        for piece in pieces {
            last = opening.feed(piece);
        }
        last
    }

    #[test]
    fn the_language_is_told_by_the_first_bytes() {
        assert!(matches!(read(&[b"GET / HTTP/1.1\r\n\r\n"]), Verdict::Http(_)));
        assert!(matches!(read(&[b"\x16", b"\x03\x01", b"\x00\x00"]), Verdict::Broken(_)));
        for opaque in [
            &b"SSH-2.0-OpenSSH_9.6 Debian\r\n"[..],
            b"NICK guest\r\n",
            b"\0\0\0\x08\x04\xd2\x16\x2f",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n\x16\x03\x01",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c",
            b"G",
            b"\r\n",
        ] {
            assert_eq!(read(&[opaque]), Verdict::Opaque, "{opaque:?}");
        }
        assert_eq!(read(&[]), Verdict::NeedMore);
        assert_eq!(read(&[b""]), Verdict::NeedMore);
        assert_eq!(read(&[b"\x16"]), Verdict::NeedMore);
    }

    #[test]
    fn fields_may_come_later() {
        let pieces = [&b"GET / HTTP/1.1\r\nHo"[..], b"st: a.example\r\n", b"\r\n"];
        let Verdict::Http(head) = read(&pieces) else { panic!("not read") };
        assert_eq!(head.host.map(|host| host.to_string()).as_deref(), Some("a.example"));
    }
}
