//! The variables that send programs to our proxy.
//!
//! An `http://` proxy everywhere, `ALL_PROXY` included: several libraries stop with an error at a
//! SOCKS proxy that they have no code for, even where they would not use it. The same port speaks
//! SOCKS 5 to clients that begin with it.

/// Read for every connection but those to the names in `NO_PROXY`, which is empty.
const PROXIES: [&str; 11] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "PIP_PROXY",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
];

const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// For the proxy at `place`, which is `host:port` or `name:password@host:port`. They take the place of
/// variables of the same name: whatever else those lead to cannot be reached.
#[must_use]
pub fn variables(place: &str) -> Vec<(&'static str, String)> {
    let url = format!("http://{place}");
    let mut all: Vec<_> = PROXIES.iter().map(|name| (*name, url.clone())).collect();
    all.extend(EXCEPTIONS.map(|name| (name, String::new())));
    // Node looks at the others only if told to.
    all.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    all
}
