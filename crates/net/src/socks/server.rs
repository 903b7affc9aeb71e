//! The proxy's side: what a program asks of it.

use super::{
    AUTH_VERSION, Auth, IPV4, IPV6, NAME, NO_AUTH, NOTHING_ACCEPTABLE, PASSWORD, ReplyCode,
    VERSION, parse,
};
use crate::cursor::Cursor;
use crate::endpoint::{Endpoint, Target};
use crate::parsed::Parsed;

/// What a SOCKS 4 client gets, so that it stops at once with its own message.
pub const V4_REFUSAL: [u8; 8] = [0, 91, 0, 0, 0, 0, 0, 0];

/// What a client that begins offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greeting {
    /// No name and password. Taken whenever it is offered, where reaching the proxy is the right
    /// to use it.
    Open,
    /// With a name and password; any will do where none is needed.
    Password,
    /// Neither: answer, then close.
    Unacceptable,
    /// SOCKS 4: send [`V4_REFUSAL`], then close.
    V4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocksCommand {
    Connect,
    /// BIND, UDP ASSOCIATE and unknown ones: reply [`ReplyCode::CommandNotSupported`].
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocksRequest {
    pub command: SocksCommand,
    pub endpoint: Endpoint,
}

/// Who may use the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admits {
    /// Every client that can reach it.
    Anybody,
    /// Who shows the name and password.
    Holders,
}

pub fn read_greeting(buffer: &[u8], admits: Admits) -> Parsed<Greeting> {
    parse(buffer, |cursor| {
        let greeting = match cursor.u8()? {
            VERSION => {
                let methods = cursor.block8()?;
                if methods.contains(&NO_AUTH) && admits == Admits::Anybody {
                    Greeting::Open
                } else if methods.contains(&PASSWORD) {
                    Greeting::Password
                } else {
                    Greeting::Unacceptable
                }
            }
            4 => Greeting::V4,
            _ => return Some(Err("this is not SOCKS")),
        };
        Some(Ok(greeting))
    })
}

/// The answer to a greeting.
pub fn choice(greeting: Greeting) -> [u8; 2] {
    let method = match greeting {
        Greeting::Open => NO_AUTH,
        Greeting::Password => PASSWORD,
        Greeting::Unacceptable | Greeting::V4 => NOTHING_ACCEPTABLE,
    };
    [VERSION, method]
}

/// Reads a name and password. `None` where they are of a length that none has.
pub fn read_credentials(buffer: &[u8]) -> Parsed<Option<Auth>> {
    parse(buffer, |cursor| {
        if cursor.u8()? != AUTH_VERSION {
            return Some(Err("not a SOCKS name and password"));
        }
        let (name, password) = (cursor.block8()?, cursor.block8()?);
        Some(Ok(Auth::new(name, password)))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Welcome {
    Yes,
    /// To be closed.
    No,
}

/// The answer to [`read_credentials`].
pub fn auth_status(welcome: Welcome) -> [u8; 2] {
    [AUTH_VERSION, (welcome == Welcome::No).into()]
}

pub fn read_request(buffer: &[u8]) -> Parsed<SocksRequest> {
    parse(buffer, |cursor| {
        if cursor.u8()? != VERSION {
            return Some(Err("not a SOCKS 5 request"));
        }
        let command = match cursor.u8()? {
            1 => SocksCommand::Connect,
            _ => SocksCommand::Other,
        };
        cursor.u8()?;
        let target = match read_target(cursor)? {
            Ok(target) => target,
            Err(reason) => return Some(Err(reason)),
        };
        let port = cursor.u16()?;
        // BIND and UDP ASSOCIATE may say 0; no process can connect to it.
        if port == 0 && command == SocksCommand::Connect {
            return Some(Err("a SOCKS request for port 0"));
        }
        Some(Ok(SocksRequest { command, endpoint: Endpoint { target, port } }))
    })
}

/// A name with a NUL or a control character is no name: what is checked here and what a
/// resolver makes of it would differ.
fn read_target(cursor: &mut Cursor<'_>) -> Option<Result<Target, &'static str>> {
    Some(match cursor.u8()? {
        IPV4 => Ok(Target::Ip(cursor.array::<4>()?.into())),
        IPV6 => {
            let ip: std::net::IpAddr = cursor.array::<16>()?.into();
            Ok(Target::Ip(ip.to_canonical()))
        }
        NAME => {
            let name = cursor.block8()?;
            let target = str::from_utf8(name).ok().and_then(Target::parse);
            target.ok_or("a SOCKS request for what is not a host name")
        }
        _ => Err("a SOCKS request with an unknown kind of address"),
    })
}

/// The answer to a request. Programs inside do not learn where the connection comes from.
pub fn reply(outcome: ReplyCode) -> [u8; 10] {
    [VERSION, outcome.code(), 0, IPV4, 0, 0, 0, 0, 0, 0]
}
