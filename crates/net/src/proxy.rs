//! What a program asks of our own proxy: HTTP (CONNECT, and `GET http://…`) or SOCKS 5, told apart
//! by the first byte. One request for each connection.
//!
//! Nothing is decided here but who may ask: what is asked for goes to the same judge as every other
//! connection (see [`super::allowlist`]). Portable and without a system call.

use super::connect::{self, Credentials, Reply, RequestReader};
use super::endpoint::Endpoint;
use super::parsed::Parsed;
use super::socks::{self, Admits, Auth, Greeting, ReplyCode, SocksCommand, Welcome};

/// The name and password of a proxy that others on the machine could reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    http: Credentials,
    socks: Auth,
}

impl Login {
    /// `None` when one of the two is longer than SOCKS can say.
    #[must_use]
    pub fn new(name: &str, password: &str) -> Option<Login> {
        Some(Login {
            http: Credentials::basic(name.as_bytes(), password.as_bytes()),
            socks: Auth::new(name.as_bytes(), password.as_bytes())?,
        })
    }
}

/// The language in which a program asked, and is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Manner {
    /// CONNECT of HTTP: bytes pass in both directions.
    Tunnel,
    /// What the server is told before anything else.
    Forward {
        /// The head of the request, rewritten for the server.
        head: Vec<u8>,
    },
    /// SOCKS 5.
    Socks,
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failed<'a> {
    /// By the rules.
    Blocked(&'a str),
    /// No address of the server answered.
    Unreachable(&'a str),
}

impl Manner {
    /// What the program hears when the connection is there.
    #[must_use]
    pub fn connected(&self) -> Vec<u8> {
        match self {
            Self::Tunnel => Reply::Connected.bytes(),
            Self::Forward { .. } => Vec::new(),
            Self::Socks => socks::reply(ReplyCode::Connected).to_vec(),
        }
    }

    /// How much is kept for the server.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Forward { head } => head.capacity(),
            Self::Tunnel | Self::Socks => 0,
        }
    }

    /// What it hears before it is closed.
    #[must_use]
    pub fn failed(&self, why: Failed<'_>) -> Vec<u8> {
        match (self, why) {
            (Self::Socks, Failed::Blocked(_)) => socks::reply(ReplyCode::NotAllowed).to_vec(),
            (Self::Socks, Failed::Unreachable(_)) => {
                socks::reply(ReplyCode::HostUnreachable).to_vec()
            }
            (_, Failed::Blocked(why)) => Reply::Blocked(why).bytes(),
            (_, Failed::Unreachable(why)) => Reply::Unreachable(why).bytes(),
        }
    }
}

/// What to do about what was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reaction {
    /// The request is not complete.
    NeedMore,
    /// This many bytes are taken; this is the answer, and there is more to come.
    Answer {
        /// How many bytes of the buffer belong to the message.
        used: usize,
        /// The answer.
        words: Vec<u8>,
    },
    /// This many bytes are taken; what follows is for the server.
    Wants {
        /// How many bytes of the buffer belong to the request.
        used: usize,
        /// The server.
        to: Endpoint,
        /// The protocol of the request.
        manner: Manner,
    },
    /// To be closed after these last words.
    Refused {
        /// The answer.
        words: Vec<u8>,
        /// The reason, for the user.
        why: &'static str,
    },
}

/// One program's request, as far as it was heard.
#[derive(Debug)]
pub struct Reception {
    login: Option<Login>,
    stage: RequestStage,
}

#[derive(Debug)]
enum RequestStage {
    Start,
    /// How much of the head was looked at.
    Http(RequestReader, usize),
    SocksGreeting,
    SocksLogin,
    SocksRequest,
}

impl Reception {
    /// With a login, who does not show it is sent away.
    #[must_use]
    pub fn new(login: Option<Login>) -> Reception {
        Reception { login, stage: RequestStage::Start }
    }

    /// `waiting` is all that was said and not taken yet.
    pub fn hear(&mut self, waiting: &[u8]) -> Reaction {
        if let (RequestStage::Start, Some(first)) = (&self.stage, waiting.first()) {
            self.stage = match (first, &self.login) {
                (4 | 5, _) => RequestStage::SocksGreeting,
                (_, None) => RequestStage::Http(RequestReader::default(), 0),
                (_, Some(login)) => {
                    RequestStage::Http(RequestReader::for_holders_of(login.http.clone()), 0)
                }
            };
        }
        match &mut self.stage {
            RequestStage::Start => Reaction::NeedMore,
            RequestStage::Http(reader, seen) => {
                let before = std::mem::replace(seen, waiting.len());
                http(reader.feed(waiting.get(before..).unwrap_or_default()), before)
            }
            RequestStage::SocksGreeting => self.greeting(waiting),
            RequestStage::SocksLogin => self.password(waiting),
            RequestStage::SocksRequest => request(waiting),
        }
    }

    fn greeting(&mut self, waiting: &[u8]) -> Reaction {
        let admits = if self.login.is_some() { Admits::Holders } else { Admits::Anybody };
        let (greeting, used) = match socks::read_greeting(waiting, admits) {
            Parsed::NeedMore => return Reaction::NeedMore,
            Parsed::Broken(why) => return Reaction::Refused { words: Vec::new(), why },
            Parsed::Done { value, used } => (value, used),
        };
        let words = socks::choice(greeting).to_vec();
        self.stage = match greeting {
            Greeting::Open => RequestStage::SocksRequest,
            Greeting::Password => RequestStage::SocksLogin,
            Greeting::Unacceptable => return Reaction::Refused { words, why: STRANGER },
            Greeting::V4 => {
                let words = socks::V4_REFUSAL.to_vec();
                return Reaction::Refused {
                    words,
                    why: "SOCKS 4 was spoken; it has to be SOCKS 5",
                };
            }
        };
        Reaction::Answer { used, words }
    }

    fn password(&mut self, waiting: &[u8]) -> Reaction {
        let (shown, used) = match socks::read_credentials(waiting) {
            Parsed::NeedMore => return Reaction::NeedMore,
            Parsed::Broken(why) => return Reaction::Refused { words: Vec::new(), why },
            Parsed::Done { value, used } => (value, used),
        };
        let wanted = self.login.as_ref().map(|login| &login.socks);
        if wanted.is_some() && shown.as_ref() != wanted {
            let words = socks::auth_status(Welcome::No).to_vec();
            return Reaction::Refused { words, why: STRANGER };
        }
        self.stage = RequestStage::SocksRequest;
        Reaction::Answer { used, words: socks::auth_status(Welcome::Yes).to_vec() }
    }
}

const STRANGER: &str = "without its name and password the proxy is not to be used";

fn http(heard: connect::ConnectProgress<connect::ConnectRequest>, before: usize) -> Reaction {
    let (request, used) = match heard {
        connect::ConnectProgress::NeedMore => return Reaction::NeedMore,
        connect::ConnectProgress::Broken(why) => {
            return Reaction::Refused { words: Reply::Bad(why).bytes(), why };
        }
        connect::ConnectProgress::Done { value, used } => (value, before + used),
    };
    match request {
        connect::ConnectRequest::Stranger => {
            Reaction::Refused { words: Reply::Stranger.bytes(), why: STRANGER }
        }
        connect::ConnectRequest::Tunnel(to) => Reaction::Wants { used, to, manner: Manner::Tunnel },
        connect::ConnectRequest::Forward { endpoint: to, head } => {
            Reaction::Wants { used, to, manner: Manner::Forward { head } }
        }
    }
}

fn request(waiting: &[u8]) -> Reaction {
    match socks::read_request(waiting) {
        Parsed::NeedMore => Reaction::NeedMore,
        Parsed::Broken(why) => {
            Reaction::Refused { words: socks::reply(ReplyCode::AddressNotSupported).to_vec(), why }
        }
        Parsed::Done { value, used } => match value.command {
            SocksCommand::Connect => {
                Reaction::Wants { used, to: value.endpoint, manner: Manner::Socks }
            }
            SocksCommand::Other => Reaction::Refused {
                words: socks::reply(ReplyCode::CommandNotSupported).to_vec(),
                why: "SOCKS was asked for something else than a connection",
            },
        },
    }
}

#[cfg(test)]
mod tests;
