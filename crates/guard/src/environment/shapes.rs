//! Values that are secrets by their looks.

/// Beginnings that issuers give their tokens, with the least length of the whole.
const PREFIXES: &[(&str, usize)] = &[
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 22),
    ("glpat-", 20),
    ("gldt-", 20),
    ("sk-", 20),
    ("sk_live_", 20),
    ("sk_test_", 20),
    ("rk_live_", 20),
    ("pk_live_", 20),
    ("whsec_", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xoxa-", 20),
    ("xoxs-", 20),
    ("xapp-", 20),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 30),
    ("ya29.", 20),
    ("1//0", 20),
    ("npm_", 30),
    ("pypi-", 20),
    ("dop_v1_", 20),
    ("doo_v1_", 20),
    ("hf_", 20),
    ("SG.", 20),
    ("hvs.", 20),
    ("hvb.", 20),
    ("shpat_", 20),
    ("shpss_", 20),
    ("sq0csp-", 20),
    ("sq0atp-", 20),
    ("AGE-SECRET-KEY-", 20),
    ("dckr_pat_", 20),
    ("lin_api_", 20),
    ("secret_", 30),
    ("ntn_", 30),
    ("sbp_", 20),
    ("figd_", 20),
    ("tskey-", 20),
    ("atlasv1.", 20),
    ("EAACEdEose0cBA", 20),
    ("Bearer ", 20),
    ("Basic ", 16),
    ("pat_", 24),
    ("cfut_", 20),
    ("nvapi-", 20),
    ("gsk_", 20),
    ("r8_", 30),
    ("xai-", 20),
    ("CCIPAT_", 20),
    ("rubygems_", 20),
    ("crates-io:", 20),
    ("cio", 32),
];

/// Why a value is taken for a secret.
pub fn secret(value: &str) -> Option<&'static str> {
    let value = value.trim();
    if value.contains("-----BEGIN") && value.contains("PRIVATE KEY") {
        return Some("its value is a private key");
    }
    let token = |prefix: &str, least: usize| {
        value.len() >= least
            && value.starts_with(prefix)
            && value[prefix.len()..].bytes().all(|byte| byte.is_ascii_graphic())
    };
    if PREFIXES.iter().any(|(prefix, least)| token(prefix, *least)) {
        return Some("its value looks like a token");
    }
    if is_jwt(value) {
        return Some("its value is a signed token (JWT)");
    }
    if has_password(value) {
        return Some("its value is an address with a password in it");
    }
    None
}

/// Three parts of base64, the first of which begins as JSON does.
fn is_jwt(value: &str) -> bool {
    let parts: Vec<&str> = value.split('.').collect();
    let encoded = |part: &&str| {
        part.len() >= 8
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte))
    };
    parts.len() == 3 && value.starts_with("eyJ") && parts.iter().all(encoded)
}

/// `scheme://user:password@host`, anywhere in the value.
fn has_password(value: &str) -> bool {
    value.match_indices("://").any(|(at, _)| {
        let rest = &value[at + 3..];
        let end = rest.find(['/', '?', '#', ' ', ',']).unwrap_or(rest.len());
        rest[..end]
            .rsplit_once('@')
            .and_then(|(login, _)| login.split_once(':'))
            .is_some_and(|(_, password)| !password.is_empty())
    })
}
