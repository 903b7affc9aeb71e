//! Who asks, and what they may. A token is compared by its hash in constant time, and goes nowhere else.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::error::Error;
use crate::oauth::OAuthCheck;
use crate::principal::{Denied, May, Principal};

/// How callers are told apart.
pub enum Auth {
    /// Loopback: whoever can connect is this one principal.
    Nobody,
    Asked {
        tokens: Vec<Token>,
        oauth: Option<Arc<OAuthCheck>>,
    },
}

pub struct Token {
    hash: [u8; 32],
    principal: Principal,
}

impl Auth {
    pub fn read(config: &Config) -> Result<Auth, Error> {
        if !config.has_auth() {
            return Ok(Auth::Nobody);
        }
        let tokens = config.auth.tokens.as_deref().map(read_tokens).transpose()?;
        let oauth = config.auth.oauth.clone().map(|oauth| Arc::new(OAuthCheck::new(oauth)));
        Ok(Auth::Asked { tokens: tokens.unwrap_or_default(), oauth })
    }

    /// Whether the file of tokens lets this principal use this server.
    pub fn lists(&self, principal: &str, server: &str) -> bool {
        let Auth::Asked { tokens, .. } = self else { return false };
        let mut own = tokens.iter().filter(|token| *token.principal.name == *principal);
        own.any(|token| token.principal.may.server(server))
    }

    /// Who sent this `Authorization` header, for this server.
    pub async fn principal(&self, header: Option<&str>, server: &str) -> Result<Principal, Denied> {
        let (tokens, oauth) = match self {
            Auth::Nobody => {
                return Ok(Principal { name: "local".into(), may: May::Everything });
            }
            Auth::Asked { tokens, oauth } => (tokens, oauth),
        };
        let header = header.ok_or(Denied::Missing)?;
        let (scheme, token) = header.split_once(' ').ok_or(Denied::Missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Denied::Missing);
        }
        let hash: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        // Every entry is looked at, so that time says nothing about which one it was.
        let mut found = None;
        for entry in tokens {
            if is_same(&entry.hash, &hash) {
                found = Some(&entry.principal);
            }
        }
        match (found, oauth) {
            (Some(principal), _) => Ok(principal.clone()),
            (None, Some(oauth)) => oauth.principal(token.trim(), server).await,
            (None, None) => Err(Denied::Invalid),
        }
    }
}

fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b))) == 0
}

fn read_tokens(path: &Path) -> Result<Vec<Token>, Error> {
    let text = std::fs::read_to_string(path).map_err(|why| Error::file(path, why))?;
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || {
            Error::file(
                path,
                format!("line {}: not NAME sha256:HEX SERVER,SERVER (or *)", number + 1),
            )
        };
        let mut words = line.split_whitespace();
        let (Some(name), Some(hash), Some(servers), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(wrong());
        };
        let hash = hash.strip_prefix("sha256:").and_then(unhex).ok_or_else(wrong)?;
        let servers = servers.split(',').map(|server| (server.to_owned(), None)).collect();
        let principal = Principal { name: name.into(), may: May::These(servers) };
        tokens.push(Token { hash, principal });
    }
    Ok(tokens)
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(hash)
}

/// A new token for a principal, and the line for the file of tokens, which does not contain it.
///
/// # Errors
/// When the system has no randomness.
pub fn token_line(name: &str, servers: &str) -> std::io::Result<(String, String)> {
    let token = format!("mcp_{}", random_hex()?);
    let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
    let line = format!("{name} sha256:{} {servers}", hex(&hash));
    Ok((token, line))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 256 bits that no program can guess.
pub(crate) fn random_hex() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(hex(&bytes))
}
