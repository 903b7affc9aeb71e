//! Servers that a registry leads to, and that ask for its credentials.

use super::*;

const CHALLENGES: [&str; 2] =
    ["Basic realm=\"x\"", "Bearer realm=\"http://HOST/token\",service=\"s\""];

/// Wants credentials by this challenge, and has tokens to give for them.
fn stranger(challenge: &'static str) -> TestRegistry {
    TestRegistry::new(move |_, asked| {
        let challenge = challenge.replace("HOST", asked.header("host").unwrap());
        match (asked.line.contains("/token"), asked.header("authorization")) {
            (true, _) => answer("200 OK", "", br#"{"token": "stolen"}"#),
            (false, Some(_)) => answer("200 OK", "", b"content"),
            (false, None) => answer("401 Who", &format!("www-authenticate: {challenge}\r\n"), b""),
        }
    })
}

/// Whether any of the credentials came by, in a header or an address.
fn was_told(server: &TestRegistry) -> bool {
    let secrets = ["hunter2", "dXNlcjpodW50ZXIy", "Bearer"];
    server.asked().iter().any(|one| {
        let values = one.headers.iter().map(|(_, value)| value).chain([&one.line]);
        values.into_iter().any(|text| secrets.iter().any(|secret| text.contains(secret)))
    })
}

fn refused(result: crate::error::Result<Vec<u8>>, by: &TestRegistry) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    assert!(error.to_string().contains(&by.host), "{error}");
}

#[test]
fn a_challenge_of_a_server_that_a_blob_is_redirected_to_gets_nothing() {
    for challenge in CHALLENGES {
        for is_asked_first in [false, true] {
            let thief = stranger(challenge);
            let to = thief.host.clone();
            // As a registry that is open, or that asks for the password before it redirects.
            let server = TestRegistry::new(move |_, asked| match asked.header("authorization") {
                None if is_asked_first => {
                    answer("401 Who", "www-authenticate: Basic realm=\"x\"\r\n", b"")
                }
                _ => answer("307 There", &format!("location: http://{to}/file\r\n"), b""),
            });
            let scratch = Scratch::new();
            let (http, kept) = (quick(), login(&scratch, &server.host));
            let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
            refused(oci.small_blob(&blob(b"content"), 100), &thief);
            assert!(!thief.asked().is_empty() && !was_told(&thief), "{challenge}");
            assert_eq!(was_told(&server), is_asked_first);
        }
    }
    // The control: the same challenge of the registry itself is answered.
    for challenge in CHALLENGES {
        let server = stranger(challenge);
        let scratch = Scratch::new();
        let (http, kept) = (quick(), login(&scratch, &server.host));
        let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
        assert_eq!(oci.small_blob(&blob(b"content"), 100).unwrap(), b"content");
        assert!(was_told(&server));
    }
}

/// A → B → A: who leads back chooses what is asked there, so a challenge to that does not count either.
#[test]
fn a_way_out_and_back_gets_nothing() {
    let between = TestRegistry::new(|_, asked| {
        let home = asked.line.split("home=").nth(1).unwrap().split(' ').next().unwrap();
        answer("302 Back", &format!("location: http://{home}/token\r\n"), b"")
    });
    let by = between.host.clone();
    let server = TestRegistry::new(move |_, asked| {
        let host = asked.header("host").unwrap();
        match asked.line.contains("/token") {
            true => answer("401 Who", "www-authenticate: Basic realm=\"x\"\r\n", b""),
            false => answer("302 Out", &format!("location: http://{by}/?home={host}\r\n"), b""),
        }
    });
    let scratch = Scratch::new();
    let (http, kept) = (quick(), login(&scratch, &server.host));
    let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
    refused(oci.small_blob(&blob(b"content"), 100), &server);
    assert_eq!((between.asked().len(), was_told(&server), was_told(&between)), (1, false, false));
}

#[test]
fn a_token_service_that_redirects_elsewhere_is_not_followed() {
    let thief = stranger(CHALLENGES[0]);
    let to = thief.host.clone();
    let server = TestRegistry::new(move |_, asked| {
        let host = asked.header("host").unwrap();
        let challenge = format!("www-authenticate: Bearer realm=\"http://{host}/token\"\r\n");
        if asked.line.contains("/token/here") {
            return answer("200 OK", "", br#"{"token": "abc"}"#);
        }
        if asked.line.contains("/token") {
            let is_first = asked.line.contains("scope=first");
            let location =
                if is_first { format!("http://{to}/token") } else { "/token/here".into() };
            return answer("302 There", &format!("location: {location}\r\n"), b"");
        }
        match asked.header("authorization") {
            Some("Bearer abc") => answer("200 OK", "", br#"{"tags": ["x"]}"#),
            _ if asked.line.contains("a/first") => {
                let scoped = challenge.replace("\r\n", ",scope=\"first\"\r\n");
                answer("401 Who", &scoped, b"")
            }
            _ => answer("401 Who", &challenge, b""),
        }
    });
    let scratch = Scratch::new();
    let (mut http, kept) = (quick(), login(&scratch, &server.host));
    http.retry.attempts = 1;
    let error = Oci::new(&http, &kept, &server.host, "a/first", Scheme::Https).tags().unwrap_err();
    assert!(error.to_string().contains("redirects to another server"), "{error}");
    assert!(thief.asked().is_empty());
    // The control: a redirect at the same server is followed, with the password.
    let tags = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https).tags().unwrap();
    assert_eq!(tags, ["x"]);
    let last = server.asked().into_iter().rfind(|one| one.line.contains("/token/here")).unwrap();
    assert_eq!(last.header("authorization"), Some(BASIC));
}

#[test]
fn a_token_service_is_known_by_its_address_alone() {
    let known = Credentials::Password { user: "user".into(), password: "hunter2".into() };
    let mut http = quick();
    http.retry.attempts = 1;
    let ask = |realm: &str| {
        let (realm, service) = (realm.to_owned(), "s".to_owned());
        let challenge = auth::Challenge::Bearer { realm, service, scope: String::new() };
        let registry = auth::Registry { host: "h", base: "http://127.0.0.1:5000" };
        auth::answer(&http, &challenge, Some(&known), registry)
    };
    let server = stranger(CHALLENGES[0]);
    for realm in [
        format!("http://user:pw@{}/token", server.host),
        format!("ftp://{}/token", server.host),
        format!("{}/token", server.host),
        "/token".to_owned(),
        String::new(),
    ] {
        assert!(ask(&realm).is_err() && server.asked().is_empty(), "{realm}");
    }
    assert_eq!(ask(&format!("http://{}/token", server.host)).unwrap(), "Bearer stolen");
    assert!(was_told(&server));
}

/// By address, by a name that leads there, by another spelling, by a redirect.
#[test]
fn what_metadata_names_is_reached_in_public_places_only() {
    let server = TestRegistry::new(|_, _| answer("200 OK", "", b"content"));
    let port = server.host.rsplit(':').next().unwrap().to_owned();
    let to = format!("http://localhost:{port}/");
    let redirecting =
        TestRegistry::new(move |_, _| answer("302 There", &format!("location: {to}\r\n"), b""));
    let at = redirecting.host.clone();
    let lookup: Lookup = |_| Ok(vec!["127.0.0.1".parse().unwrap()]);
    let scratch = Scratch::new();
    let get = |http: &Http, url: &str| {
        let to = scratch.join("file");
        http.download(url, &Digest::of(b"content"), 100, &to, &mut |_, _| {})
    };
    let mut none = Http::public_only(lookup, |ip| !ip.is_loopback());
    none.retry.attempts = 1;
    for host in ["127.0.0.1", "localhost", "files.example", "2130706433", "[::ffff:127.0.0.1]"] {
        assert!(get(&none, &format!("http://{host}:{port}/")).is_err(), "{host}");
    }
    assert!(server.asked().is_empty());
    // The redirecting one counts as public here, and where it leads does not.
    let mut all = Http::public_only(lookup, |_| true);
    all.retry.attempts = 1;
    let error = get(&all, &format!("http://{at}/")).unwrap_err().to_string();
    assert!(error.contains("not a public address") && server.asked().is_empty(), "{error}");
    // The control.
    get(&all, &format!("http://files.example:{port}/")).unwrap();
    assert_eq!(server.asked().len(), 1);
}
