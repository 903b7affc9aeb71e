//! Which certificates are trusted: the system's own list, as PEM.

use std::path::Path;

use mcp_files::Links;
use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

/// Where systems keep it: Debian, Red Hat, SUSE, Alpine and macOS, FreeBSD.
const FILES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

const LARGEST: u64 = 64 << 20;

/// `SSL_CERT_FILE` first, as with other programs. Where there is no such file, as on Windows, the
/// list that browsers ship.
pub fn system() -> RootCerts {
    let named = std::env::var("SSL_CERT_FILE").ok().filter(|name| !name.is_empty());
    let files = named.iter().map(String::as_str).chain(FILES);
    for file in files {
        let pem = mcp_files::read(Path::new(file), LARGEST, Links::Follow);
        let certificates = pem.map(|pem| certificates(&pem)).unwrap_or_default();
        if !certificates.is_empty() {
            return RootCerts::new_with_certs(&certificates);
        }
    }
    RootCerts::WebPki
}

fn certificates(pem: &[u8]) -> Vec<Certificate<'static>> {
    parse_pem(pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect()
}
