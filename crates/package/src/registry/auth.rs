//! What a registry asks for with status 401, and getting it.

use serde::Deserialize;

use super::credentials::Credentials;
use super::http::{Http, Method, Payload, Redirects, Request, has_userinfo, origin, shown};
use super::oci::is_local;
use crate::error::{Error, Kind, Result};

/// `WWW-Authenticate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    Basic,
    Bearer { realm: String, service: String, scope: String },
}

impl Challenge {
    pub fn parse(header: &str) -> Option<Challenge> {
        let (kind, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if kind.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        if !kind.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = Default::default();
        for (key, value) in parameters(rest) {
            match key.to_ascii_lowercase().as_str() {
                "realm" => realm = value,
                "service" => service = value,
                "scope" => scope = value,
                _ => {}
            }
        }
        Some(Challenge::Bearer { realm, service, scope })
    }
}

/// `key="value",key=value`; a comma may be inside quotes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let key = key.trim_matches([' ', ',']).to_owned();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((key, value.to_owned()));
        rest = after;
    }
    found
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

/// Whose challenge it is.
#[derive(Debug, Clone, Copy)]
pub struct Registry<'a> {
    /// What people call it, and what credentials are kept for.
    pub host: &'a str,
    /// Scheme, host and port.
    pub base: &'a str,
}

/// A token service that may be shown the registry's credentials. The registry names it, often on
/// another host, so TLS has to say that it is that host. Without TLS it is only as good as the
/// registry itself: on the same host, or both on this machine.
fn check_realm(realm: &str, registry: Registry<'_>) -> Result<()> {
    let refused = |why: &str| {
        let host = registry.host;
        Err(Error::network(format!("{host} names a token service that {why}: {}", shown(realm))))
    };
    let (Some((scheme, host, _)), Some((own_scheme, own_host, _))) =
        (origin(realm), origin(registry.base))
    else {
        return refused("is no web address");
    };
    if has_userinfo(realm) {
        return refused("has a user name in its address");
    }
    let is_near = host == own_host || (is_local(&host) && is_local(&own_host));
    match scheme.as_str() {
        "https" => Ok(()),
        "http" if own_scheme == "http" && is_near => Ok(()),
        // A password must not travel in the open because a server says so.
        _ => refused("is not https"),
    }
}

/// The header to send from now on.
pub fn answer(
    http: &Http,
    challenge: &Challenge,
    credentials: Option<&Credentials>,
    registry: Registry<'_>,
) -> Result<String> {
    let host = registry.host;
    let denied = |why: &str| {
        Error::new(Kind::Denied, format!("{host} {why}"), format!("log in with mcp login {host}"))
    };
    match challenge {
        Challenge::Basic => credentials
            .and_then(Credentials::basic)
            .ok_or_else(|| denied("wants a user name and a password")),
        Challenge::Bearer { realm, service, scope } => {
            check_realm(realm, registry)?;
            let response = match credentials {
                Some(Credentials::Refresh(token)) => {
                    http.send(&refresh(realm, service, scope, token))?
                }
                other => {
                    let mut url = format!(
                        "{realm}{}service={}",
                        if realm.contains('?') { '&' } else { '?' },
                        encoded(service)
                    );
                    for scope in scope.split(' ').filter(|scope| !scope.is_empty()) {
                        url += &format!("&scope={}", encoded(scope));
                    }
                    let mut request = Request::get(url);
                    request.authorization = other.and_then(Credentials::basic);
                    request.redirects = Redirects::SameOrigin;
                    http.send(&request)?
                }
            };
            match response.status {
                200 => {}
                401 | 403 => return Err(denied("does not take these credentials")),
                status => return Err(Error::network(format!("{} answers {status}", shown(realm)))),
            }
            let token: Token =
                serde_json::from_slice(&response.bytes(1 << 20)?).map_err(|_| no_token(realm))?;
            match [token.token, token.access_token].into_iter().find(|token| !token.is_empty()) {
                Some(token) if !token.contains(['\r', '\n']) => Ok(format!("Bearer {token}")),
                _ => Err(no_token(realm)),
            }
        }
    }
}

fn no_token(realm: &str) -> Error {
    Error::network(format!("{} gives no token", shown(realm)))
}

fn refresh(realm: &str, service: &str, scope: &str, token: &str) -> Request<'static> {
    let form = format!(
        "grant_type=refresh_token&client_id=mcp&service={}&scope={}&refresh_token={}",
        encoded(service),
        encoded(scope),
        encoded(token)
    );
    Request {
        method: Method::Post,
        url: realm.to_owned(),
        headers: vec![("content-type", "application/x-www-form-urlencoded".to_owned())],
        authorization: None,
        payload: Payload::Bytes(form.into_bytes().into()),
        redirects: Redirects::SameOrigin,
    }
}

/// For a part of a URL.
pub fn encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges() {
        let bearer = r#"Bearer realm="https://auth.example/token",service="registry",scope="repository:a/b:pull,push""#;
        assert_eq!(
            Challenge::parse(bearer),
            Some(Challenge::Bearer {
                realm: "https://auth.example/token".into(),
                service: "registry".into(),
                scope: "repository:a/b:pull,push".into(),
            })
        );
        assert_eq!(Challenge::parse("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(Challenge::parse("Negotiate"), None);
    }
}
