//! What an attacker tried: each of these got through once.

use serde_json::json;

use super::support::{Gateway, call};

#[test]
fn no_sandbox_keeps_a_home_that_another_principal_gets() {
    let gateway = Gateway::start("ephemeral", &["alice"], "");
    let client = gateway.client(0).initialize("2025-06-18");
    let answer = client.post(&call(1, "echo", &json!({}))).last();
    assert_eq!(answer["result"]["arguments"], json!(["run", "--ephemeral", "x"]));
    let (client, body) = gateway.client(0).stateless("echo", &json!(1), &json!({}));
    let answer = client.send("POST", &body).last();
    assert_eq!(answer["result"]["arguments"], json!(["run", "--ephemeral", "x"]));
}
