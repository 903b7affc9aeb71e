//! The first bytes a client sends: TLS, HTTP or neither, and the name in them.

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

/// Reads what a client says first and keeps it, for the server gets it too once it passes.
#[derive(Debug, Default)]
pub struct Opening {
    bytes: Vec<u8>,
    hello: hello::Reader,
    http: http::Reader,
    end: Option<Verdict>,
}

impl Opening {
    /// After a verdict other than `NeedMore` it stays.
    pub fn feed(&mut self, bytes: &[u8]) -> Verdict {
        self.bytes.extend_from_slice(bytes);
        if self.end.is_none() {
            self.end = self.judge(bytes);
        }
        self.end.clone().unwrap_or(Verdict::NeedMore)
    }

    fn judge(&mut self, bytes: &[u8]) -> Option<Verdict> {
        let not_tls = match self.hello.feed(bytes) {
            hello::Progress::NeedMore => None,
            hello::Progress::NotTls => Some(()),
            hello::Progress::Hello(hello) => return Some(Verdict::Tls(hello)),
            hello::Progress::Broken(reason) => return Some(Verdict::Broken(reason)),
        };
        let not_http = match self.http.feed(bytes) {
            http::Progress::NeedMore => None,
            http::Progress::NotHttp => Some(()),
            http::Progress::Head(head) => return Some(Verdict::Http(head)),
            http::Progress::Broken(reason) => return Some(Verdict::Broken(reason)),
        };
        not_tls.and(not_http).map(|()| Verdict::Opaque)
    }

    /// All that was fed, for the server.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &[u8]) -> Verdict {
        let mut opening = Opening::default();
        let mut last = Verdict::NeedMore;
        for byte in stream {
            last = opening.feed(&[*byte]);
        }
        assert_eq!(opening.into_bytes(), stream);
        last
    }

    #[test]
    fn the_language_is_told_by_the_first_bytes() {
        assert!(matches!(read(b"GET / HTTP/1.1\r\n\r\n"), Verdict::Http(_)));
        assert!(matches!(read(b"\x16\x03\x01\x00\x00"), Verdict::Broken(_)));
        assert_eq!(read(b"SSH-2.0-x\r\n"), Verdict::Opaque);
        assert_eq!(read(b"SSH-2.0-OpenSSH_9.6 Debian\r\n"), Verdict::Opaque);
        assert_eq!(read(b"NICK somebody\r\n"), Verdict::Opaque);
        assert_eq!(read(b"\0\0\0\x08\x04\xd2\x16\x2f"), Verdict::Opaque);
        assert_eq!(read(b""), Verdict::NeedMore);
    }
}
