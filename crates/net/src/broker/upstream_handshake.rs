//! The words that go before a connection through the user's own proxy. Answers are looked at
//! before they are taken, so that nothing of what the server says next is taken with them.

use std::io::{self, Read};
use std::sync::Arc;

use mio::net::TcpStream;

use super::socket;
use crate::connect::{self, ConnectAnswer, ResponseReader};
use crate::endpoint::Endpoint;
use crate::parsed::Parsed;
use crate::socks::{self, Choice, ReplyCode};
use crate::upstream::Proxy;

pub struct UpstreamHandshake {
    proxy: Arc<Proxy>,
    goal: Endpoint,
    stage: HandshakeStage,
    unsent: Vec<u8>,
}

enum HandshakeStage {
    /// How much of the answer was looked at.
    Http(ResponseReader, usize),
    SocksChoice,
    SocksLogin,
    SocksReply,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing yet.
    Waits,
    /// The server is at the other end from here on.
    Open,
    Refused(String),
}

enum Next {
    Waits,
    /// This many bytes are taken, and the handshake goes on.
    Took(usize),
    Opened(usize),
    Refused(String),
}

impl UpstreamHandshake {
    pub fn new(proxy: Arc<Proxy>, goal: Endpoint) -> UpstreamHandshake {
        let (stage, unsent) = match &*proxy {
            Proxy::Http { credentials, .. } => {
                let request = connect::connect_request(&goal, credentials.as_ref());
                (HandshakeStage::Http(ResponseReader::default(), 0), request)
            }
            Proxy::Socks5 { auth, .. } => {
                (HandshakeStage::SocksChoice, socks::greeting(auth.as_ref()))
            }
        };
        UpstreamHandshake { proxy, goal, stage, unsent }
    }

    pub fn waits_to_write(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub fn advance(&mut self, mut stream: &TcpStream, scratch: &mut [u8]) -> io::Result<Said> {
        loop {
            if !socket::say(stream, &mut self.unsent)? {
                return Ok(Said::Waits);
            }
            let count = match stream.peek(scratch) {
                Ok(0) => return Ok(Said::Refused("the proxy closed the connection".to_owned())),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Said::Waits),
                Err(e) => return Err(e),
            };
            match self.hear(&scratch[..count]) {
                Next::Waits => return Ok(Said::Waits),
                Next::Took(count) => stream.read_exact(&mut scratch[..count])?,
                Next::Opened(count) => {
                    stream.read_exact(&mut scratch[..count])?;
                    return Ok(Said::Open);
                }
                Next::Refused(why) => return Ok(Said::Refused(why)),
            }
        }
    }

    fn hear(&mut self, heard: &[u8]) -> Next {
        match &mut self.stage {
            HandshakeStage::Http(reader, seen) => {
                let before = *seen;
                *seen = heard.len();
                match reader.feed(heard.get(before..).unwrap_or_default()) {
                    connect::ConnectProgress::NeedMore => Next::Waits,
                    connect::ConnectProgress::Broken(why) => Next::Refused(why.to_owned()),
                    connect::ConnectProgress::Done { value: ConnectAnswer::Connected, used } => {
                        Next::Opened(before + used)
                    }
                    connect::ConnectProgress::Done { value: ConnectAnswer::NeedsLogin, .. } => {
                        Next::Refused("the proxy wants a name and password".to_owned())
                    }
                    connect::ConnectProgress::Done {
                        value: ConnectAnswer::Refused { status },
                        ..
                    } => Next::Refused(format!("the proxy answered {status}")),
                }
            }
            HandshakeStage::SocksChoice => {
                took(socks::read_choice(heard), |choice| self.chosen(&choice))
            }
            HandshakeStage::SocksLogin => took(socks::read_auth_status(heard), |()| {
                self.ask();
                None
            }),
            HandshakeStage::SocksReply => match socks::read_reply(heard) {
                Parsed::NeedMore => Next::Waits,
                Parsed::Broken(why) => Next::Refused(why.to_owned()),
                Parsed::Done { value: ReplyCode::Connected, used } => Next::Opened(used),
                Parsed::Done { value, .. } => Next::Refused(format!("the proxy says: {value:?}")),
            },
        }
    }

    fn chosen(&mut self, choice: &Choice) -> Option<String> {
        match (choice, &*self.proxy) {
            (Choice::Request, _) => self.ask(),
            (Choice::Password, Proxy::Socks5 { auth: Some(auth), .. }) => {
                self.unsent = auth.message();
                self.stage = HandshakeStage::SocksLogin;
            }
            _ => return Some("the proxy wants a name and password".to_owned()),
        }
        None
    }

    fn ask(&mut self) {
        self.unsent = socks::connect_request(&self.goal);
        self.stage = HandshakeStage::SocksReply;
    }
}

fn took<T>(parsed: Parsed<T>, go_on: impl FnOnce(T) -> Option<String>) -> Next {
    match parsed {
        Parsed::NeedMore => Next::Waits,
        Parsed::Broken(why) => Next::Refused(why.to_owned()),
        Parsed::Done { value, used } => match go_on(value) {
            None => Next::Took(used),
            Some(why) => Next::Refused(why),
        },
    }
}
