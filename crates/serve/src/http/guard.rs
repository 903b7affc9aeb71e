//! Host and Origin: a web page that points a name of its own at this machine (DNS rebinding) is refused.

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode, Uri};

use super::reply::{self, Body};
use crate::config::Config;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Twice,
    Host,
    Origin,
}

impl Refused {
    pub fn word(self) -> &'static str {
        match self {
            Refused::Twice => "twice",
            Refused::Host => "host",
            Refused::Origin => "origin",
        }
    }

    pub fn response(self) -> Response<Body> {
        let text = match self {
            Refused::Twice => {
                return reply::text(
                    StatusCode::BAD_REQUEST,
                    "a header that may be there once is there twice, or two name different hosts\n",
                );
            }
            Refused::Host => {
                "this Host is not served here (hosts = [\"NAME\"] in the configuration)\n"
            }
            Refused::Origin => {
                "this Origin may not (origins = [\"https://…\"] in the configuration)\n"
            }
        };
        reply::text(StatusCode::FORBIDDEN, text)
    }
}

/// A proxy in front may have judged by one of two, so two are refused.
const ONCE: [&str; 12] = [
    "host",
    "origin",
    "authorization",
    "content-type",
    "content-encoding",
    "content-length",
    "transfer-encoding",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "last-event-id",
];

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

pub fn check(config: &Config, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
    if ONCE.iter().any(|name| headers.get_all(*name).iter().nth(1).is_some()) {
        return Err(Refused::Twice);
    }
    // HTTP/2 has it in the request line, as has a request in absolute form.
    let authority = uri.authority().map(|it| it.as_str());
    let header = super::header(headers, "host");
    if let (Some(authority), Some(header)) = (authority, header)
        && !authority.eq_ignore_ascii_case(header)
    {
        return Err(Refused::Twice);
    }
    let named = header.or(authority);
    let host = named.ok_or(Refused::Host)?;
    let name = without_port(host);
    let is_ours = config.hosts.iter().any(|it| it.eq_ignore_ascii_case(name))
        || (config.listen.ip().is_loopback()
            && LOOPBACK.iter().any(|it| it.eq_ignore_ascii_case(name)));
    if !is_ours {
        return Err(Refused::Host);
    }
    match headers.get(header::ORIGIN) {
        None => Ok(()),
        Some(origin) => {
            let origin = origin.to_str().map_err(|_| Refused::Origin)?;
            let is_own = ["http://", "https://"].iter().any(|scheme| {
                origin.strip_prefix(scheme).is_some_and(|rest| rest.eq_ignore_ascii_case(host))
            });
            if is_own || config.origins.iter().any(|it| it == origin) {
                Ok(())
            } else {
                Err(Refused::Origin)
            }
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

pub fn allow_origin(response: &mut Response<Body>, origin: &str) {
    let Ok(origin) = HeaderValue::from_str(origin) else { return };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST, GET, DELETE"),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name",
        ),
    );
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(hosts: &[&str], host: &str, origin: Option<&str>) -> Result<(), Refused> {
        let mut config = Config::single(vec!["x".to_owned()]);
        config.hosts = hosts.iter().map(|it| (*it).to_owned()).collect();
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_str(host).unwrap_or(HeaderValue::from_static("")));
        if let Some(origin) = origin {
            headers.insert(
                "origin",
                HeaderValue::from_str(origin).unwrap_or(HeaderValue::from_static("")),
            );
        }
        check(&config, &headers, &Uri::from_static("/mcp"))
    }

    #[test]
    fn a_name_that_was_pointed_here_is_refused() {
        assert_eq!(judged(&[], "evil.example:8808", None), Err(Refused::Host));
        assert_eq!(judged(&[], "localhost.evil.example", None), Err(Refused::Host));
        for host in ["localhost:8808", "127.0.0.1:1", "[::1]:8808", "LOCALHOST"] {
            assert_eq!(judged(&[], host, None), Ok(()), "{host}");
        }
        assert_eq!(judged(&["mcp.example"], "mcp.example", None), Ok(()));
    }

    #[test]
    fn two_names_of_the_host_are_refused() {
        let config = Config::single(vec!["x".to_owned()]);
        let mut headers = HeaderMap::new();
        let there = Uri::from_static("http://localhost:8808/mcp");
        assert_eq!(check(&config, &headers, &there), Ok(()), "as HTTP/2 says it");
        headers.insert("host", HeaderValue::from_static("localhost:8808"));
        assert_eq!(check(&config, &headers, &there), Ok(()));
        let other = Uri::from_static("http://127.0.0.1:8808/mcp");
        assert_eq!(check(&config, &headers, &other), Err(Refused::Twice));
        headers.append("host", HeaderValue::from_static("localhost:8808"));
        assert_eq!(check(&config, &headers, &there), Err(Refused::Twice));
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        for origin in
            ["https://evil.example", "null", "http://localhost:3000", "http://localhost:8808.evil"]
        {
            assert_eq!(
                judged(&[], "localhost:8808", Some(origin)),
                Err(Refused::Origin),
                "{origin}"
            );
        }
        assert_eq!(judged(&[], "localhost:8808", Some("http://localhost:8808")), Ok(()));
    }
}
