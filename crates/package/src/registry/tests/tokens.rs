//! Tokens that last, keys with passwords, and servers that say when to come again.

use super::*;

#[test]
fn an_identity_token_is_traded_for_a_token_and_never_sent_to_the_registry() {
    let server = Server::new(|_, asked| {
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
fn a_server_that_wants_more_patience_than_there_is_is_not_waited_for() {
    let server = Server::new(|_, _| answer("503 Busy", "retry-after: 86400\r\n", b""));
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
