//! Against servers of the tests' own on loopback, which misbehave as real ones do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

mod strangers;
mod tokens;

use super::*;
use crate::Which;
use crate::digest::Digest;
use crate::error::Kind;
use crate::scratch::Scratch;
use crate::store::Descriptor;

/// What was asked, as the server saw it.
#[derive(Debug, Clone)]
struct Asked {
    line: String,
    headers: Vec<(String, String)>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

struct TestRegistry {
    host: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl TestRegistry {
    /// Answers the n-th request with what `answer` says; a connection serves one request.
    fn new(answer: impl Fn(usize, &Asked) -> Vec<u8> + Send + 'static) -> TestRegistry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { return };
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                let mut headers = Vec::new();
                let _ = reader.read_line(&mut line);
                loop {
                    let mut header = String::new();
                    if reader.read_line(&mut header).unwrap_or(0) == 0 || header.trim().is_empty() {
                        break;
                    }
                    let (name, value) = header.trim().split_once(':').unwrap();
                    headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
                }
                let one = Asked { line: line.trim().to_owned(), headers };
                let length =
                    one.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
                let _ = reader.take(length).read_to_end(&mut Vec::new());
                let bytes = answer(number, &one);
                seen.lock().unwrap().push(one);
                let _ = stream.write_all(&bytes);
            }
        });
        TestRegistry { host, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn quick() -> Http {
    let mut http =
        Http::new(|host| Ok((host, 0).to_socket_addrs()?.map(|found| found.ip()).collect()));
    http.retry =
        Retry { attempts: 4, first: Duration::from_millis(1), longest: Duration::from_secs(2) };
    http
}

fn login(scratch: &Scratch, host: &str) -> Kept {
    let kept = Kept { own: Some(scratch.join("config/credentials.json")), others: Vec::new() };
    kept.keep(host, "user", "hunter2").unwrap();
    kept
}

/// `user:hunter2`.
const BASIC: &str = "Basic dXNlcjpodW50ZXIy";

fn blob(content: &[u8]) -> Descriptor {
    Descriptor::of("x", content)
}

#[test]
fn what_passes_is_tried_again_and_what_does_not_is_not() {
    let server = TestRegistry::new(|number, _| match number {
        0 => answer("503 Busy", "", b""),
        1 => answer("429 Slow", "retry-after: 1\r\n", b""),
        _ => answer("200 OK", "", br#"{"name": "a/b", "tags": ["1.0.0"]}"#),
    });
    let (http, kept) = (quick(), Kept::default());
    let before = std::time::Instant::now();
    let tags = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https).tags().unwrap();
    assert_eq!(tags, ["1.0.0"]);
    assert!(before.elapsed() >= Duration::from_secs(1), "Retry-After was not kept");
    assert_eq!(server.asked().len(), 3);

    let gone = TestRegistry::new(|_, _| answer("404 Not Found", "", b""));
    let error = Oci::new(&http, &kept, &gone.host, "a/b", Scheme::Https).manifest("1").unwrap_err();
    assert_eq!((error.kind(), gone.asked().len()), (Kind::NotFound, 1));
    let down = TestRegistry::new(|_, _| answer("500 Broken", "", b""));
    assert!(Oci::new(&http, &kept, &down.host, "a/b", Scheme::Https).tags().is_err());
    assert_eq!(down.asked().len(), 4);
}

#[test]
fn a_download_that_breaks_off_goes_on() {
    let content: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
    let whole = content.clone();
    let server = TestRegistry::new(move |number, asked| match number {
        // More announced than sent.
        0 => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", whole.len());
            [head.as_bytes(), &whole[..40_000]].concat()
        }
        _ => {
            let range = asked.header("range").unwrap_or("");
            let start: usize =
                range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap_or(0);
            let header =
                format!("content-range: bytes {start}-{}/{}\r\n", whole.len() - 1, whole.len());
            answer("206 Partial", &header, &whole[start..])
        }
    });
    let scratch = Scratch::new();
    let (http, kept) = (quick(), Kept::default());
    let to = scratch.join("blob");
    let mut seen = Vec::new();
    let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
    oci.blob(&blob(&content), &to, &mut |done, _| seen.push(done)).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), content);
    assert_eq!(server.asked()[1].header("range"), Some("bytes=40000-"));
    assert_eq!(seen.last(), Some(&100_000));
}

#[test]
fn other_bytes_than_asked_for_are_refused_with_both_digests() {
    let server = TestRegistry::new(|_, _| answer("200 OK", "", b"other"));
    let scratch = Scratch::new();
    let (http, kept) = (quick(), Kept::default());
    let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
    let wanted = blob(b"asked");
    let both = |error: crate::Error| {
        let text = error.to_string();
        assert_eq!(error.kind(), Kind::Untrusted);
        assert!(
            text.contains(&wanted.digest.to_string())
                && text.contains(&Digest::of(b"other").to_string()),
            "{text}"
        );
    };
    both(oci.blob(&wanted, &scratch.join("blob"), &mut |_, _| {}).unwrap_err());
    both(oci.manifest(&wanted.digest.to_string()).unwrap_err());
    both(oci.small_blob(&wanted, 100).unwrap_err());
    let larger = blob(b"as");
    assert!(
        oci.blob(&larger, &scratch.join("blob"), &mut |_, _| {})
            .unwrap_err()
            .to_string()
            .contains("larger")
    );
    let said = TestRegistry::new(|_, _| {
        let digest = Digest::of(b"asked");
        answer("200 OK", &format!("docker-content-digest: {digest}\r\n"), b"other")
    });
    both(Oci::new(&http, &kept, &said.host, "a/b", Scheme::Https).manifest("1.0.0").unwrap_err());
}

#[test]
fn credentials_do_not_follow_a_redirect_to_another_host() {
    let elsewhere = TestRegistry::new(|_, _| answer("200 OK", "", b"content"));
    let to = elsewhere.host.clone();
    let server = TestRegistry::new(move |_, asked| match asked.header("authorization") {
        None => answer("401 Who", "www-authenticate: Basic realm=\"x\"\r\n", b""),
        Some(_) if asked.line.contains("/blobs/") => {
            answer("307 There", &format!("location: http://{to}/file?signature=1\r\n"), b"")
        }
        Some(_) if asked.line.contains("/here") => answer("200 OK", "", b"content"),
        Some(_) => answer("302 Here", "location: /here\r\n", b""),
    });
    let scratch = Scratch::new();
    let (http, kept) = (quick(), login(&scratch, &server.host));
    let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
    assert_eq!(oci.small_blob(&blob(b"content"), 100).unwrap(), b"content");
    assert_eq!(elsewhere.asked().len(), 1);
    assert_eq!(elsewhere.asked()[0].header("authorization"), None);
    // On the same host they do: the positive control.
    assert!(oci.manifest("1.0.0").is_ok());
    let last = server.asked().pop().unwrap();
    assert!(last.line.contains("/here") && last.header("authorization") == Some(BASIC), "{last:?}");
}

#[test]
fn endless_redirects_end() {
    let server = TestRegistry::new(|_, _| answer("302 Round", "location: /round\r\n", b""));
    let (mut http, kept) = (quick(), Kept::default());
    http.retry.attempts = 1;
    let error = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https).tags().unwrap_err();
    assert!(error.to_string().contains("without end"), "{error}");
}

#[test]
fn a_bearer_token_is_fetched_with_the_password_and_used() {
    let server = TestRegistry::new(|_, asked| {
        let host = asked.header("host").unwrap().to_owned();
        let challenge = format!(
            "www-authenticate: Bearer realm=\"http://{host}/token\",service=\"s\",scope=\"repository:a/b:pull\"\r\n"
        );
        if asked.line.contains("/token?service=s&scope=repository%3Aa%2Fb%3Apull") {
            return match asked.header("authorization") {
                Some(BASIC) => answer("200 OK", "", br#"{"token": "abc"}"#),
                _ => answer("401 No", "", b""),
            };
        }
        match asked.header("authorization") {
            Some("Bearer abc") => answer("200 OK", "", br#"{"tags": ["x"]}"#),
            _ => answer("401 Who", &challenge, b""),
        }
    });
    let scratch = Scratch::new();
    let (http, kept) = (quick(), login(&scratch, &server.host));
    let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
    assert_eq!(oci.tags().unwrap(), ["x"]);
    assert_eq!(server.asked().len(), 3);
    // The token serves the next request, too.
    oci.tags().unwrap();
    assert_eq!(server.asked().len(), 4);
    let none = Kept::default();
    let error = Oci::new(&http, &none, &server.host, "a/b", Scheme::Https).tags().unwrap_err();
    assert_eq!(error.kind(), Kind::Denied);
    assert!(error.to_string().contains("mcp login"), "{error}");
}

#[cfg(unix)]
#[test]
fn credentials_are_kept_for_their_owner_only_and_docker_is_understood() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let kept = login(&scratch, "one.example");
    let mode =
        std::fs::metadata(scratch.join("config/credentials.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = r#"{"auths": {"https://index.docker.io/v1/": {"auth": "dXNlcjpodW50ZXIy"}, "two.example": {"identitytoken": "t"}},
                   "credHelpers": {"three.example": "../evil"}}"#;
    let docker = scratch.file("docker/config.json", text.as_bytes());
    let kept = Kept { others: vec![docker, scratch.join("absent.json")], ..kept };
    for host in ["one.example", "docker.io"] {
        let found = kept.find(host).unwrap().unwrap();
        assert_eq!(found.basic().as_deref(), Some(BASIC), "{host}");
        assert!(!format!("{found:?}").contains("hunter2"));
    }
    assert_eq!(kept.find("two.example").unwrap(), Some(Credentials::Refresh("t".to_owned())));
    assert_eq!(kept.find("four.example").unwrap(), None);
    assert!(kept.find("three.example").is_err());
    assert!(kept.forget("one.example").unwrap());
    assert_eq!(kept.find("one.example").unwrap(), None);
}

#[test]
fn other_hosts_are_spoken_to_by_tls() {
    // Plain http to a name that is not this machine needs the flag; nothing is sent here.
    let (mut http, kept) = (quick(), Kept::default());
    http.retry.attempts = 1;
    let error =
        Oci::new(&http, &kept, "registry.invalid", "a/b", Scheme::Https).tags().unwrap_err();
    assert!(error.to_string().contains("https://registry.invalid/"), "{error}");
    let error =
        Oci::new(&http, &kept, "registry.invalid", "a/b", Scheme::Plain).tags().unwrap_err();
    assert!(error.to_string().contains("http://registry.invalid/"), "{error}");
    assert!(Public::new(&http, "http://registry.example").is_err());
    assert!(Public::new(&http, "http://localhost.evil.example").is_err());
}

/// In the shape of the registry's API v0.1.
fn public() -> TestRegistry {
    TestRegistry::new(|_, asked| {
        let entry = |name: &str| {
            format!(
                r#"{{"server": {{"name": "{name}", "description": "d", "version": "1.0.0", "packages": [{{"registryType": "npm", "identifier": "x", "version": "1.0.0", "transport": {{"type": "stdio"}}}}]}}, "_meta": {{"io.modelcontextprotocol.registry/official": {{"status": "active", "isLatest": true}}}}}}"#
            )
        };
        if asked.line.contains("/v0.1/servers/io.github.user%2Fserver/versions/latest ") {
            answer("200 OK", "", entry("io.github.user/server").as_bytes())
        } else if asked.line.contains("/v0.1/servers/io.github.user%2Fliar/versions/") {
            answer("200 OK", "", entry("io.github.user/other").as_bytes())
        } else if asked.line.contains("/v0.1/servers?search=wea%20ther")
            && asked.line.contains("cursor=next")
        {
            answer(
                "200 OK",
                "",
                format!(r#"{{"servers": [{}], "metadata": {{"count": 1}}}}"#, entry("a.b/second"))
                    .as_bytes(),
            )
        } else if asked.line.contains("/v0.1/servers?search=wea%20ther") {
            answer(
                "200 OK",
                "",
                format!(
                    r#"{{"servers": [{}], "metadata": {{"nextCursor": "next", "count": 1}}}}"#,
                    entry("a.b/first")
                )
                .as_bytes(),
            )
        } else {
            answer("404 Not Found", "", b"{}")
        }
    })
}

#[test]
fn the_public_registry_is_searched_and_resolved() {
    let (http, server) = (quick(), public());
    let public = Public::new(&http, &format!("http://{}/", server.host)).unwrap();
    let names: Vec<String> =
        public.search("wea ther", 10).unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["a.b/first", "a.b/second"]);
    let text = public.server("io.github.user/server", &Which::Latest).unwrap();
    let parsed = crate::manifest::ServerJson::read(&text).unwrap();
    assert_eq!(parsed.name, "io.github.user/server");
    assert_eq!(
        public.server("io.github.user/none", &Which::Latest).unwrap_err().kind(),
        Kind::NotFound
    );
    assert!(
        public
            .server("io.github.user/liar", &Which::Latest)
            .unwrap_err()
            .to_string()
            .contains("another server")
    );
}

#[test]
fn a_signature_is_for_one_package_one_version_one_digest() {
    let scratch = Scratch::new();
    let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
    // As `minisign -G -W` writes it: no password, and said so.
    let mut bytes = pair.sk.to_bytes();
    bytes[2..4].fill(0);
    let text = format!("untrusted comment: x\n{}\n", STANDARD.encode(bytes));
    let secret = scratch.file("key", text.as_bytes());
    assert_eq!(is_locked(&secret).unwrap(), Locked::No);
    let public = scratch.file("key.pub", pair.pk.to_box().unwrap().into_string().as_bytes());
    let key = PublicKey::read(public.to_str().unwrap()).unwrap();
    assert!(PublicKey::read(&pair.pk.to_base64()).is_ok());
    let manifest = b"{\"the\": \"manifest\"}";
    let text = sign(&secret, "", manifest, "acme/test", "1.0.0").unwrap();
    let check = |text: &str, bytes: &[u8], name: &str, version| {
        key.check(text, bytes, |signed| signed == name, version)
    };
    check(&text, manifest, "acme/test", Some("1.0.0")).unwrap();
    check(&text, manifest, "acme/test", None).unwrap();
    for (bytes, name, version) in [
        (&b"{}"[..], "acme/test", None),
        (manifest, "acme/other", None),
        // A tag that was moved to an older version, which was signed as such.
        (manifest, "acme/test", Some("1.0.1")),
    ] {
        let error = check(&text, bytes, name, version).unwrap_err();
        assert_eq!(error.kind(), Kind::Untrusted, "{error}");
    }
    let forged = text.replace("version=1.0.0", "version=1.0.1");
    assert!(check(&forged, manifest, "acme/test", Some("1.0.1")).is_err());
    let other = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
    let other = PublicKey::read(&other.pk.to_base64()).unwrap();
    assert!(other.check(&text, manifest, |_| true, None).is_err());
    assert!(check("nonsense", manifest, "acme/test", None).is_err());
}
