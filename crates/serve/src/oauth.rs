//! Access tokens of an authorization server: RFC 9068 JWTs, checked by its published keys (JWKS), for this resource only.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;

use crate::config::OAuth;
use crate::principal::{Denied, May, Principal};

/// Keys are asked for again after so long, and for an unknown key and where the last question had no answer, but not more often than
/// `SOONEST`.
const FRESH: Duration = Duration::from_secs(600);
const SOONEST: Duration = Duration::from_secs(30);
const LARGEST: u64 = 1 << 20;

/// Signatures that a public key proves. Shared secrets (HS256) are no part of a JWKS.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

pub struct OAuthCheck {
    pub config: OAuth,
    keys: Mutex<Keys>,
    /// Held by the one request that asks for keys.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default, Clone)]
struct Keys {
    set: Option<JwkSet>,
    asked: Option<Instant>,
    /// The last question had no answer.
    unanswered: bool,
}

impl Keys {
    fn is_due(&self, missing: bool) -> bool {
        match self.asked.map(|asked| asked.elapsed()) {
            None => true,
            Some(age) => age > FRESH || ((missing || self.unanswered) && age > SOONEST),
        }
    }
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    scope: String,
    /// Compared by the library, which passes over one that is no number.
    #[serde(default, rename = "nbf")]
    _not_before: Option<f64>,
}

/// Whether a token wants something understood that is not (RFC 7515, 4.1.11), or its header cannot be read.
fn is_critical(token: &str) -> bool {
    let head = token.split('.').next().unwrap_or_default();
    let head = URL_SAFE_NO_PAD.decode(head).ok();
    let head = head.and_then(|it| serde_json::from_slice::<serde_json::Value>(&it).ok());
    head.is_none_or(|it| it.get("crit").is_some())
}

impl OAuthCheck {
    pub fn new(config: OAuth) -> OAuthCheck {
        OAuthCheck { config, keys: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    /// The URL of a server, as clients know it: what a token must be for (RFC 8707).
    pub fn resource(&self, server: &str) -> String {
        format!("{}/mcp/{server}", self.config.resource.trim_end_matches('/'))
    }

    pub async fn principal(&self, token: &str, server: &str) -> Result<Principal, Denied> {
        let header = decode_header(token).map_err(|_| Denied::Invalid)?;
        if !ALGORITHMS.contains(&header.alg) || is_critical(token) {
            return Err(Denied::Invalid);
        }
        let kid = header.kid.as_deref();
        let mut set = self.keys(false).await.ok_or(Denied::Invalid)?;
        if kid.is_some_and(|kid| set.find(kid).is_none()) {
            set = self.keys(true).await.ok_or(Denied::Invalid)?;
        }
        let jwk = match kid {
            Some(kid) => set.find(kid),
            // Without a name there must be no choice.
            None => set.keys.first().filter(|_| set.keys.len() == 1),
        };
        let key =
            DecodingKey::from_jwk(jwk.ok_or(Denied::Invalid)?).map_err(|_| Denied::Invalid)?;
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_audience(&[self.resource(server), self.config.resource.clone()]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        let claims =
            decode::<Claims>(token, &key, &validation).map_err(|_| Denied::Invalid)?.claims;
        let name = format!("{}#{}", self.config.issuer, claims.sub).into();
        Ok(Principal { name, may: self.may(&claims.scope) })
    }

    fn may(&self, scopes: &str) -> May {
        if self.config.scopes.is_empty() {
            return May::Everything;
        }
        let granted = scopes.split_whitespace().filter_map(|scope| self.config.scopes.get(scope));
        let pairs = granted.flat_map(|scope| {
            scope.servers.iter().map(|server| (server.clone(), scope.tools.clone()))
        });
        May::These(pairs.collect())
    }

    /// The keys; asked for again when they are old, or one is missing.
    async fn keys(&self, missing: bool) -> Option<JwkSet> {
        let now = self.keys.lock().ok()?.clone();
        if !now.is_due(missing) {
            return now.set;
        }
        let _asking = self.asking.lock().await;
        // Another request may have asked meanwhile.
        let now = self.keys.lock().ok()?.clone();
        if !now.is_due(missing) {
            return now.set;
        }
        let place = self.config.jwks.clone();
        let fetched = tokio::task::spawn_blocking(move || fetch(&place)).await.ok().flatten();
        let mut keys = self.keys.lock().ok()?;
        keys.asked = Some(Instant::now());
        keys.unanswered = fetched.is_none();
        // Keys that cannot be had now do not make the old ones wrong.
        if fetched.is_some() {
            keys.set = fetched;
        }
        keys.set.clone()
    }
}

fn fetch(place: &str) -> Option<JwkSet> {
    if !place.starts_with("http") {
        return serde_json::from_slice(&std::fs::read(place).ok()?).ok();
    }
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .max_redirects(0)
        .build()
        .new_agent();
    let mut answer = agent.get(place).call().ok()?;
    let text = answer.body_mut().with_config().limit(LARGEST).read_to_vec().ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
