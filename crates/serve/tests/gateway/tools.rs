//! A token whose scope names the tools: no other is called, however the call is written.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::support::{Client, Gateway, call};

const OAUTH: &str = "[auth.oauth]\nissuer = \"https://id.example\"\nresource = \"https://mcp.example\"\njwks = \"jwks.json\"\n\
                     [auth.oauth.scopes.few]\nservers = [\"one\"]\ntools = [\"echo\"]\n";

/// With a token that may call `echo` only.
fn start(name: &str) -> (Gateway, Client) {
    let gateway = Gateway::start(name, &[], OAUTH);
    let der = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
    let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    let jwk =
        json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "k", "x": x});
    let keys = json!({ "keys": [jwk] }).to_string();
    std::fs::write(gateway.directory.join("jwks.json"), keys).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({"iss": "https://id.example", "aud": "https://mcp.example", "sub": "alice", "exp": now + 600, "scope": "few"});
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = Some("k".to_owned());
    let mut client = gateway.client(0);
    client.token = Some(encode(&header, &claims, &EncodingKey::from_ed_der(der.as_ref())).unwrap());
    (gateway, client)
}

#[test]
fn a_tool_that_was_not_granted_is_not_called_in_any_writing() {
    let (_gateway, client) = start("tools");
    let session = client.initialize("2025-03-26");
    assert_eq!(session.post(&call(1, "echo", &json!({}))).status, 200);
    assert_eq!(session.post(&json!([call(2, "echo", &json!({}))])).status, 200);
    let crash = call(3, "crash", &json!({}));
    let mut told = crash.clone();
    told.as_object_mut().unwrap().remove("id");
    assert_eq!(session.post(&crash).status, 403);
    assert_eq!(session.post(&json!([call(4, "echo", &json!({})), crash])).status, 403);
    assert_eq!(session.post(&told).status, 403, "a call that wants no answer");
    let nested = session.post(&json!([[crash]]));
    assert_eq!((nested.status, nested.last()["error"]["code"].clone()), (400, json!(-32600)));
    let plain = call(5, "echo", &json!({})).to_string();
    for (from, to) in [
        ("\"name\":", "\"Name\":\"crash\",\"name\":"),
        ("\"method\":", "\"METHOD\":\"x\",\"method\":"),
        ("\"params\":", "\"Params\":{\"name\":\"crash\"},\"params\":"),
        ("\"params\":", "\"param\\u017f\":{\"name\":\"crash\"},\"params\":"),
    ] {
        let text = plain.replacen(from, to, 1);
        assert_ne!(text, plain);
        assert_eq!(session.send("POST", &text).status, 400, "{text}");
    }
    // Keys of the arguments are the tool's own.
    let answer: Value = session.post(&call(6, "echo", &json!({"Name": "crash", "me": "a"}))).last();
    assert_eq!(answer["result"]["me"], "a");
}

#[test]
fn metrics_are_told_to_those_with_a_token() {
    let (_gateway, mut client) = start("metrics");
    client.path = "/metrics";
    let told = client.send("GET", "");
    assert!(told.status == 200 && told.body.contains("mcp_serve"), "{}", told.body);
    client.token = None;
    assert_eq!(client.send("GET", "").status, 401);
}
