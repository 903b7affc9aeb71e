//! The client's side: asking the user's own SOCKS proxy for a connection.

use std::fmt;
use std::net::IpAddr;

use super::{
    AUTH_VERSION, IPV4, IPV6, NAME, NO_AUTH, NOTHING_ACCEPTABLE, PASSWORD, ReplyCode, VERSION,
    parse,
};
use crate::endpoint::{Endpoint, Target};
use crate::parsed::Parsed;

/// Name and password, each of 1 to 255 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Auth {
    name: Vec<u8>,
    password: Vec<u8>,
}

/// What the proxy wants to see next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Request,
    Password,
    /// It takes none of what we offered.
    Nothing,
}

impl Auth {
    /// `None` when one of the two is longer than SOCKS can say.
    pub fn new(name: &[u8], password: &[u8]) -> Option<Self> {
        let fits = |text: &[u8]| (1..=255).contains(&text.len());
        (fits(name) && fits(password))
            .then(|| Self { name: name.to_vec(), password: password.to_vec() })
    }

    pub fn message(&self) -> Vec<u8> {
        let mut bytes = vec![AUTH_VERSION];
        for text in [&self.name, &self.password] {
            bytes.push(text.len() as u8);
            bytes.extend_from_slice(text);
        }
        bytes
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auth(..)")
    }
}

pub fn greeting(auth: Option<&Auth>) -> Vec<u8> {
    match auth {
        None => vec![VERSION, 1, NO_AUTH],
        Some(_) => vec![VERSION, 2, NO_AUTH, PASSWORD],
    }
}

pub fn read_choice(buffer: &[u8]) -> Parsed<Choice> {
    parse(buffer, |cursor| {
        if cursor.u8()? != VERSION {
            return Some(Err("the proxy does not speak SOCKS 5"));
        }
        Some(match cursor.u8()? {
            NO_AUTH => Ok(Choice::Request),
            PASSWORD => Ok(Choice::Password),
            NOTHING_ACCEPTABLE => Ok(Choice::Nothing),
            _ => Err("the proxy wants a log-in that was not offered"),
        })
    })
}

pub fn read_auth_status(buffer: &[u8]) -> Parsed<()> {
    parse(buffer, |cursor| {
        let version = cursor.u8()?;
        let status = cursor.u8()?;
        Some(match (version, status) {
            (AUTH_VERSION, 0) => Ok(()),
            (AUTH_VERSION, _) => Err("the proxy does not take the name and password"),
            _ => Err("the proxy does not speak SOCKS 5"),
        })
    })
}

pub fn connect_request(endpoint: &Endpoint) -> Vec<u8> {
    let mut bytes = vec![VERSION, 1, 0];
    match &endpoint.target {
        Target::Ip(IpAddr::V4(ip)) => {
            bytes.push(IPV4);
            bytes.extend_from_slice(&ip.octets());
        }
        Target::Ip(IpAddr::V6(ip)) => {
            bytes.push(IPV6);
            bytes.extend_from_slice(&ip.octets());
        }
        Target::Name(name) => {
            // A host name has at most 253 bytes.
            bytes.push(NAME);
            bytes.push(name.as_str().len() as u8);
            bytes.extend_from_slice(name.as_str().as_bytes());
        }
    }
    bytes.extend_from_slice(&endpoint.port.to_be_bytes());
    bytes
}

/// Reads the answer to a request, with the address that the proxy connected from.
pub fn read_reply(buffer: &[u8]) -> Parsed<ReplyCode> {
    parse(buffer, |cursor| {
        if cursor.u8()? != VERSION {
            return Some(Err("the proxy does not speak SOCKS 5"));
        }
        let outcome = ReplyCode::from_code(cursor.u8()?);
        cursor.u8()?;
        // Proxies put odd things here, an empty name for one; only the length matters.
        match cursor.u8()? {
            IPV4 => cursor.take(4)?,
            IPV6 => cursor.take(16)?,
            NAME => cursor.block8()?,
            _ => return Some(Err("the proxy answers with an unknown kind of address")),
        };
        cursor.u16()?;
        Some(Ok(outcome))
    })
}
