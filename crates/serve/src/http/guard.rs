//! Host and Origin: a web page that points a name of its own at this machine (DNS rebinding) is refused.

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode, Uri};

use super::reply::{self, Body};
use crate::config::Config;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Host,
    Origin,
}

impl Refused {
    pub fn word(self) -> &'static str {
        match self {
            Refused::Host => "host",
            Refused::Origin => "origin",
        }
    }

    pub fn response(self) -> Response<Body> {
        let text = match self {
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

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

pub fn check(config: &Config, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
    // HTTP/2 has it in the request line.
    let named = super::header(headers, "host").or_else(|| uri.authority().map(|it| it.as_str()));
    let host = named.ok_or(Refused::Host)?;
    let name = without_port(host);
    let is_ours = config.hosts.iter().any(|it| it.eq_ignore_ascii_case(name))
        || (config.listen.ip().is_loopback()
            && LOOPBACK.iter().any(|it| it.eq_ignore_ascii_case(name)));
    if !is_ours {
        return Err(Refused::Host);
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => Ok(()),
        (Some(origin), None) => {
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
        _ => Err(Refused::Origin),
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
