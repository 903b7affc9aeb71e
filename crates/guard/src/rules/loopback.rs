//! Whether a network tool is aimed at this machine's loopback and at nothing else.

use super::matching::Words;
use crate::value::{Field, Piece};

/// Options of the usual tools whose value is the next word, so that it is not taken for an address.
const SHORT_WITH_VALUE: &[(&str, &str)] = &[
    ("curl", "AbCcDdEeFHhKmoPQrTtUuwXxYyz"),
    ("wget", "aABDeEhiIlnoOPQRtTUwX"),
    ("http", "asA"),
    ("https", "asA"),
    ("nc", "iIMmoPpqsTVWwXx"),
    ("ping", "cIiMmpQstTwW"),
    ("nmap", "ops"),
    ("telnet", "Xbeln"),
    ("grpcurl", "dHv"),
];

/// Long options without a value; any other long option is taken to have one unless it holds `=`.
const LONG_WITHOUT_VALUE: &[&str] = &[
    "--silent",
    "--fail",
    "--fail-with-body",
    "--show-error",
    "--location",
    "--insecure",
    "--verbose",
    "--include",
    "--head",
    "--compressed",
    "--no-buffer",
    "--http1.1",
    "--http2",
    "--globoff",
    "--get",
    "--quiet",
    "--spider",
    "--ipv4",
    "--ipv6",
    "--no-progress-meter",
    "--remote-name",
    "--no-check-certificate",
    "--no-verbose",
    "--raw",
    "--plaintext",
    "--retry-connrefused",
    "--path-as-is",
    "--netrc",
    "--tr-encoding",
    "--parallel",
    "--fail-early",
    "--anyauth",
    "--basic",
    "--digest",
    "--http0.9",
    "--retry-all-errors",
    "--print-body",
    "--headers",
    "--follow",
];

/// Options of PowerShell's cmdlets whose value is the next word, and no address.
const CMDLET_WITH_VALUE: &[&str] = &[
    "-method",
    "-contenttype",
    "-body",
    "-headers",
    "-outfile",
    "-timeoutsec",
    "-useragent",
    "-sessionvariable",
    "-websession",
    "-credential",
    "-port",
    "-count",
    "-maximumredirection",
    "-form",
    "-informationlevel",
];

/// Options that lead elsewhere, whatever the address says.
const ELSEWHERE: &[&str] = &[
    "-x",
    "--proxy",
    "--connect-to",
    "--resolve",
    "--socks5",
    "--socks5-hostname",
    "--preproxy",
    "--interface",
];

impl Words<'_> {
    /// At least one address, and all of them are loopback.
    pub(super) fn aims_at_loopback(&self) -> bool {
        let name = self.name();
        let short = SHORT_WITH_VALUE.iter().find(|(tool, _)| *tool == name).map_or("", |(_, s)| s);
        let mut addresses = 0;
        let mut skip = false;
        for field in self.arguments() {
            if std::mem::take(&mut skip) {
                continue;
            }
            let Some(text) = start_of(field) else {
                return false;
            };
            if ELSEWHERE.iter().any(|option| text.split('=').next() == Some(option)) {
                return false;
            }
            if text.starts_with("--") && text.len() > 2 {
                skip = !text.contains('=') && !LONG_WITHOUT_VALUE.contains(&text.as_str());
                continue;
            }
            if text.starts_with('-') && text.len() > 1 {
                let of_cmdlet = || CMDLET_WITH_VALUE.contains(&text.to_lowercase().as_str());
                skip = match name.contains('-') {
                    true if text.eq_ignore_ascii_case("-proxy") => return false,
                    true => of_cmdlet(),
                    false => crate::options::takes_next(&text, short),
                };
                continue;
            }
            // How often, which is `-n 2` on Windows.
            if name == "ping" && text.chars().all(|c| c.is_ascii_digit()) {
                continue;
            }
            let is_port = addresses > 0
                && matches!(name, "nc" | "ncat" | "netcat" | "telnet")
                && text.chars().all(|c| c.is_ascii_digit() || c == '-');
            let is_item = matches!(name, "http" | "https" | "xh") && addresses > 0;
            let is_method = matches!(name, "http" | "https" | "xh")
                && text.chars().all(|c| c.is_ascii_uppercase());
            if is_port || is_item || is_method {
                continue;
            }
            if !is_loopback(&text) {
                return false;
            }
            addresses += 1;
        }
        addresses > 0
    }
}

/// The known start of a word, long enough to hold its host; the rest may be unknown.
fn start_of(field: &Field) -> Option<String> {
    if let Some(text) = field.known() {
        return Some(text.into_owned());
    }
    let is_text = |piece: &Piece| matches!(piece, Piece::Text(_) | Piece::Glob(_));
    if field.value.pieces.iter().all(is_text) {
        // `[::1]` without quotes is a pattern to the shell; no file matches it.
        return Some(field.value.without_unknown());
    }
    let text = match field.value.pieces.first()? {
        Piece::Text(text) => text.clone(),
        _ => return None,
    };
    let host = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
    // `http://localhost:$PORT/` has its host; `http://local$x` has not.
    host.contains([':', '/']).then_some(text)
}

/// `http://localhost:3000/x`, `127.0.0.1:80`, `[::1]`, `:8000/path`.
pub(super) fn is_loopback(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // `http://localhost@evil.example` goes to evil.example.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None if host.matches(':').count() > 1 => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let four =
        host.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified());
    let six =
        host.parse::<std::net::Ipv6Addr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified());
    let short = host.is_empty() && authority.starts_with(':');
    four || six
        || short
        || host == "localhost"
        || host.ends_with(".localhost")
        || host == "ip6-localhost"
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn what_is_this_machine() {
        for address in [
            "localhost",
            "http://localhost:3000/x",
            "127.0.0.1:80",
            "https://[::1]:8443/",
            "::1",
            ":8000/health",
            "http://api.localhost",
            "0.0.0.0:80",
            "localhost.",
        ] {
            assert!(is_loopback(address), "{address}");
        }
        for address in [
            "example.com",
            "http://localhost@evil.example",
            "http://localhost.evil.example",
            "10.0.0.1",
            "http://127.0.0.1.nip.io",
            "",
            "[fe80::1]",
            "localhost:x@evil",
        ] {
            assert!(!is_loopback(address), "{address}");
        }
    }
}
