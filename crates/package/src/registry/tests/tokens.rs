//! Tokens that last, keys with passwords, and servers that say when to come again.

use super::*;

#[test]
fn an_identity_token_is_traded_for_a_token_and_never_sent_to_the_registry() {
    let server = TestRegistry::new(|_, asked| {
        let host = asked.header("host").unwrap().to_owned();
        if asked.line.starts_with("POST /token ") {
            let is_form = asked.header("content-type") == Some("application/x-www-form-urlencoded");
            return match is_form && asked.header("authorization").is_none() {
                true => answer("200 OK", "", br#"{"access_token": "abc"}"#),
                false => answer("400 Bad", "", b""),
            };
        }
        match asked.header("authorization") {
            Some("Bearer abc") => answer("200 OK", "", br#"{"tags": ["x"]}"#),
            _ => answer(
                "401 Who",
                &format!(
                    "www-authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\r\n"
                ),
                b"",
            ),
        }
    });
    let scratch = Scratch::new();
    let text = format!(r#"{{"auths": {{"{}": {{"identitytoken": "hunter2"}}}}}}"#, server.host);
    let docker = scratch.file("config.json", text.as_bytes());
    let (http, kept) = (quick(), Kept { own: None, others: vec![docker] });
    let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
    assert_eq!(oci.tags().unwrap(), ["x"]);
    let told = |one: &Asked| one.headers.iter().any(|(_, value)| value.contains("hunter2"));
    assert!(!server.asked().iter().any(told));
}

#[test]
fn an_upload_that_is_sent_elsewhere_takes_no_credentials_along() {
    let elsewhere = TestRegistry::new(|_, _| answer("201 Made", "", b""));
    let to = elsewhere.host.clone();
    let server = TestRegistry::new(move |_, asked| match asked.header("authorization") {
        None => answer("401 Who", "www-authenticate: Basic realm=\"x\"\r\n", b""),
        Some(_) if asked.line.starts_with("POST ") => {
            answer("202 There", &format!("location: http://{to}/upload?state=1\r\n"), b"")
        }
        Some(_) => answer("404 Not Found", "", b""),
    });
    let scratch = Scratch::new();
    let (http, kept) = (quick(), login(&scratch, &server.host));
    let mut oci = Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https);
    oci.push_blob(&blob(b"content"), &scratch.file("blob", b"content")).unwrap();
    let asked = elsewhere.asked();
    assert!(asked.len() == 1 && asked[0].line.starts_with("PUT /upload?"), "{asked:?}");
    assert_eq!(asked[0].header("authorization"), None);
    assert_eq!(server.asked().pop().unwrap().header("authorization"), Some(BASIC));
}

#[test]
fn a_token_service_without_tls_is_not_told_the_password() {
    let service = TestRegistry::new(|_, _| answer("200 OK", "", br#"{"token": "abc"}"#));
    let realm = format!("http://{}/token", service.host);
    let challenge = auth::Challenge::Bearer { realm, service: "s".into(), scope: String::new() };
    let (user, password) = ("user".to_owned(), "hunter2".to_owned());
    let known = credentials::Credentials::Password { user, password };
    let http = quick();
    let ask = |base: &str| {
        let registry = auth::Registry { host: "registry.example", base };
        auth::answer(&http, &challenge, Some(&known), registry)
    };
    // Not for a registry with TLS, nor for one in the open on another host than the service.
    for base in ["https://registry.example", "https://127.0.0.1:5000", "http://registry.example"] {
        let error = ask(base).unwrap_err().to_string();
        assert!(error.contains("not https") && service.asked().is_empty(), "{error}");
    }
    // The control: a registry on this machine, spoken to in the open.
    assert_eq!(ask("http://localhost:5000").unwrap(), "Bearer abc");
    assert_eq!(service.asked()[0].header("authorization"), Some(BASIC));
}

#[test]
fn a_redirect_leads_neither_from_tls_nor_with_credentials_to_others() {
    let secret = Some(BASIC);
    let hop = |from, to| http::hop(from, to, secret);
    let here = "https://a.example/v2/x";
    assert!(hop(here, "http://a.example/v2/x").is_err());
    assert!(hop(here, "http://b.example/").is_err());
    assert_eq!(hop(here, "/y").unwrap(), ("https://a.example/y".to_owned(), secret));
    for elsewhere in ["https://b.example/", "https://a.example:444/", "//b.example/"] {
        assert_eq!(hop(here, elsewhere).unwrap().1, None, "{elsewhere}");
    }
    assert!(hop("http://a.example/", "https://a.example/").unwrap().1.is_none());
    // A user in an address would become a header of its own; what is no address has no origin.
    for strange in ["https://user:pw@a.example/", "//user@a.example/", "https://", "y", "HTTP://b/"]
    {
        assert!(hop(here, strange).is_err(), "{strange}");
    }
    // The user's own, in the address of an index, stays where it is.
    let index = "https://user:pw@a.example/simple/x/";
    assert_eq!(hop(index, "/simple/X/").unwrap().0, "https://user:pw@a.example/simple/X/");
}

#[test]
fn a_file_from_anywhere_is_what_its_digest_says() {
    let server = TestRegistry::new(|_, _| answer("200 OK", "", b"other"));
    let (scratch, http) = (Scratch::new(), quick());
    let url = format!("http://{}/file?token=hunter2", server.host);
    let get = |digest: Digest, most: u64| {
        http.download(&url, &digest, most, &scratch.join("file"), &mut |_, _| {})
    };
    get(Digest::of(b"other"), 5).unwrap();
    let error = get(Digest::of(b"asked"), 5).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), Kind::Untrusted);
    for digest in [Digest::of(b"asked"), Digest::of(b"other")] {
        assert!(text.contains(&digest.to_string()) && !text.contains("hunter2"), "{text}");
    }
    let error = get(Digest::of(b"other"), 4).unwrap_err().to_string();
    assert!(error.contains("larger than 4 bytes"), "{error}");
}

#[test]
fn a_server_that_wants_more_patience_than_there_is_is_not_waited_for() {
    let server = TestRegistry::new(|_, _| answer("503 Busy", "retry-after: 86400\r\n", b""));
    let (http, kept) = (quick(), Kept::default());
    let before = std::time::Instant::now();
    assert!(Oci::new(&http, &kept, &server.host, "a/b", Scheme::Https).tags().is_err());
    assert_eq!(server.asked().len(), 1);
    assert!(before.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_key_with_a_password_signs_with_the_password_only() {
    let scratch = Scratch::new();
    let pair = minisign::KeyPair::generate_encrypted_keypair(Some("hunter2".to_owned())).unwrap();
    let text = pair.sk.to_box(None).unwrap().into_string();
    let secret = scratch.file("key", text.as_bytes());
    assert_eq!(is_locked(&secret).unwrap(), Locked::Yes);
    let key = PublicKey::read(&pair.pk.to_base64()).unwrap();
    let signed = sign(&secret, "hunter2", b"{}", "acme/test", "1.0.0").unwrap();
    key.check(&signed, b"{}", |name| name == "acme/test", Some("1.0.0")).unwrap();
    let error = sign(&secret, "wrong", b"{}", "acme/test", "1.0.0").unwrap_err();
    assert!(error.to_string().contains("password"), "{error}");
}
