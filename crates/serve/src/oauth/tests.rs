use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{EncodingKey, Header, encode};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::*;
use crate::config::Scope;

struct Issuer {
    key: EncodingKey,
    jwk: Value,
}

fn issuer(kid: &str) -> Issuer {
    let random = ring::rand::SystemRandom::new();
    let der = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
    let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    let jwk =
        json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": kid, "x": x});
    Issuer { key: EncodingKey::from_ed_der(der.as_ref()), jwk }
}

fn token(issuer: &Issuer, kid: &str, change: impl FnOnce(&mut Value)) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({
        "iss": "https://id.example", "aud": "https://mcp.example/mcp/notes", "sub": "alice",
        "exp": now + 600, "scope": "notes other"});
    change(&mut claims);
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = Some(kid.to_owned());
    encode(&header, &claims, &issuer.key).unwrap()
}

fn check(name: &str, jwk: &Value) -> OAuthCheck {
    let file = std::env::temp_dir().join(format!("mcp-serve-jwks-{}-{name}", std::process::id()));
    std::fs::write(&file, json!({ "keys": [jwk] }).to_string()).unwrap();
    let notes = Scope { servers: vec!["notes".to_owned()], tools: Some(vec!["read".to_owned()]) };
    OAuthCheck::new(OAuth {
        issuer: "https://id.example".to_owned(),
        resource: "https://mcp.example".to_owned(),
        jwks: file.to_string_lossy().into_owned(),
        scopes: BTreeMap::from([("notes".to_owned(), notes)]),
    })
}

#[tokio::test]
async fn a_token_for_this_resource_names_its_principal_and_scopes() {
    let issuer = issuer("k1");
    let check = check("good", &issuer.jwk);
    let principal = check.principal(&token(&issuer, "k1", |_| {}), "notes").await.unwrap();
    assert_eq!(&*principal.name, "https://id.example#alice");
    assert!(principal.may.server("notes") && !principal.may.server("files"));
    assert!(principal.may.tool("notes", "read") && !principal.may.tool("notes", "delete"));
}

#[tokio::test]
async fn a_token_that_is_not_for_us_is_refused() {
    let issuer = issuer("k1");
    let check = check("bad", &issuer.jwk);
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 9] = [
        ("an issuer that differs by a slash", |claims| {
            claims["iss"] = json!("https://id.example/")
        }),
        ("other audiences", |claims| {
            claims["aud"] = json!(["https://a.example", "https://mcp.example.evil"])
        }),
        ("another audience", |claims| claims["aud"] = json!("https://other.example")),
        ("another server's", |claims| claims["aud"] = json!("https://mcp.example/mcp/files")),
        ("another issuer", |claims| claims["iss"] = json!("https://evil.example")),
        ("expired", |claims| claims["exp"] = json!(1_000_000_000)),
        ("not yet", |claims| claims["nbf"] = json!(4_000_000_000_u64)),
        ("not yet, as text", |claims| claims["nbf"] = json!("4000000000")),
        ("without an audience", |claims| drop(claims.as_object_mut().unwrap().remove("aud"))),
    ];
    assert!(check.principal(&token(&issuer, "k1", |_| {}), "notes").await.is_ok());
    let several =
        |claims: &mut Value| claims["aud"] = json!(["https://a.example", "https://mcp.example"]);
    assert!(check.principal(&token(&issuer, "k1", several), "notes").await.is_ok());
    for (what, change) in changes {
        let token = token(&issuer, "k1", change);
        assert_eq!(check.principal(&token, "notes").await.err(), Some(Denied::Invalid), "{what}");
    }
}

#[tokio::test]
async fn another_key_or_a_shared_secret_proves_nothing() {
    let (ours, theirs) = (issuer("k1"), issuer("k1"));
    let check = check("keys", &ours.jwk);
    assert!(check.principal(&token(&theirs, "k1", |_| {}), "notes").await.is_err());
    assert!(check.principal(&token(&ours, "k2", |_| {}), "notes").await.is_err());
    let public = ours.jwk["x"].as_str().unwrap();
    let claims = json!({"iss": "https://id.example", "aud": "https://mcp.example", "sub": "eve", "exp": 4_000_000_000_u64});
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("k1".to_owned());
    let forged = encode(&header, &claims, &EncodingKey::from_secret(public.as_bytes())).unwrap();
    assert!(check.principal(&forged, "notes").await.is_err());
}

#[tokio::test]
async fn a_token_that_names_its_own_key_or_none_is_refused() {
    let (ours, theirs) = (issuer("k1"), issuer("k1"));
    let check = check("tricks", &ours.jwk);
    let good = token(&ours, "k1", |_| {});
    assert!(check.principal(&good, "notes").await.is_ok());
    let claims = good.split('.').nth(1).unwrap();
    let signature = good.split('.').nth(2).unwrap();
    let with = |head: Value| {
        let signed = format!("{}.{claims}", URL_SAFE_NO_PAD.encode(head.to_string()));
        let theirs = jsonwebtoken::crypto::sign(signed.as_bytes(), &theirs.key, Algorithm::EdDSA);
        [
            format!("{signed}."),
            format!("{signed}.{signature}"),
            format!("{signed}.{}", theirs.unwrap()),
        ]
    };
    let heads = [
        json!({"alg": "none"}),
        json!({"alg": "None", "kid": "k1"}),
        json!({"alg": "EdDSA", "jwk": theirs.jwk}),
        json!({"alg": "EdDSA", "kid": "k1", "jwk": theirs.jwk}),
        json!({"alg": "EdDSA", "kid": "k1", "jku": "http://127.0.0.1:1/jwks", "x5u": "http://127.0.0.1:1/x"}),
        json!({"alg": "EdDSA", "kid": "../../../../dev/null"}),
        json!({"alg": "EdDSA", "kid": "k1' OR '1'='1"}),
        json!({"alg": "EdDSA", "kid": "k".repeat(1 << 20)}),
        json!({"alg": "RS256", "kid": "k1"}),
    ];
    for head in heads {
        for forged in with(head.clone()) {
            let denied = check.principal(&forged, "notes").await.err();
            assert_eq!(denied, Some(Denied::Invalid), "{:.200}", head.to_string());
        }
    }
    for broken in ["", ".", "..", "a.b.c", &good[..good.len() - 2], &format!("{good}.{good}")] {
        assert!(check.principal(broken, "notes").await.is_err(), "{broken:.50}");
    }
}

#[tokio::test]
async fn what_a_token_calls_critical_must_be_understood() {
    let issuer = issuer("k1");
    let check = check("critical", &issuer.jwk);
    let plain = token(&issuer, "k1", |_| {});
    assert!(check.principal(&plain, "notes").await.is_ok());
    let claims = plain.split('.').nth(1).unwrap();
    let head = json!({"alg": "EdDSA", "kid": "k1", "crit": ["x"], "x": 1}).to_string();
    let signed = format!("{}.{claims}", URL_SAFE_NO_PAD.encode(head));
    let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &issuer.key, Algorithm::EdDSA);
    let critical = format!("{signed}.{}", signature.unwrap());
    assert_eq!(check.principal(&critical, "notes").await.err(), Some(Denied::Invalid));
}

/// As if the keys had been asked for long ago, but not so long that they are old.
fn later(check: &OAuthCheck) {
    let mut keys = check.keys.lock().unwrap();
    keys.asked = Instant::now().checked_sub(SOONEST + Duration::from_secs(1));
}

#[tokio::test]
async fn a_new_key_is_found_and_an_old_one_that_is_gone_is_not() {
    let (old, new) = (issuer("k1"), issuer("k2"));
    let check = check("rotated", &old.jwk);
    let is_taken = async |issuer: &Issuer, kid: &str| {
        check.principal(&token(issuer, kid, |_| {}), "notes").await.is_ok()
    };
    assert!(is_taken(&old, "k1").await && !is_taken(&new, "k2").await);
    std::fs::write(&check.config.jwks, json!({ "keys": [new.jwk] }).to_string()).unwrap();
    assert!(!is_taken(&new, "k2").await, "an unknown key is no reason to ask at every request");
    later(&check);
    assert!(is_taken(&new, "k2").await && !is_taken(&old, "k1").await);
}

#[tokio::test]
async fn keys_that_cannot_be_had_at_first_are_asked_for_again_soon() {
    let issuer = issuer("k1");
    let check = check("unreachable", &issuer.jwk);
    let keys = std::fs::read(&check.config.jwks).unwrap();
    let is_taken = async || check.principal(&token(&issuer, "k1", |_| {}), "notes").await.is_ok();
    std::fs::remove_file(&check.config.jwks).unwrap();
    assert!(!is_taken().await);
    std::fs::write(&check.config.jwks, keys).unwrap();
    assert!(!is_taken().await, "not at every request");
    later(&check);
    assert!(is_taken().await);
    // Later they are kept while they cannot be had.
    std::fs::remove_file(&check.config.jwks).unwrap();
    check.keys.lock().unwrap().asked = Instant::now().checked_sub(FRESH * 2);
    assert!(is_taken().await);
}
