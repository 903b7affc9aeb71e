//! The command's environment: what the policy sets, and what it lets through of the host's.

use std::ffi::OsString;

use mcp_policy::{EnvPattern, Policy};

use crate::core::request::HeldBack;

/// What arrives of the host's environment and the policy's, and what was held back though a pattern fits: a
/// pattern lets through in bulk, and a person who means a credential names it.
pub fn inherited(policy: &Policy) -> (Vec<(OsString, OsString)>, Vec<HeldBack>) {
    let set = &policy.env.set;
    let taken = |name: &str| {
        let mut keys = set.keys().chain(policy.env.secrets.keys());
        keys.any(|key| is_same(key.as_ref(), name))
    };
    let (mut env, mut held_back) = (Vec::new(), Vec::new());
    for (name, value) in std::env::vars_os() {
        let Some(text) = name.to_str().filter(|name| !taken(name)) else {
            continue;
        };
        let upper = text.to_ascii_uppercase();
        let fits =
            |allow: &EnvPattern| allow.matches(text) || cfg!(windows) && allow.matches(&upper);
        let fitting = policy.env.allow.iter().filter(|allow| fits(&allow.value));
        let fitting: Vec<&str> = fitting.map(|allow| allow.value.as_str()).collect();
        if fitting.is_empty() {
            continue;
        }
        let is_named = fitting.iter().any(|pattern| is_same(pattern, text));
        // A name that was given is not weighed at all: most are, and it takes long.
        let judged = || mcp_guard::environment::judge(text, &value.to_string_lossy());
        match (!is_named).then(judged).flatten() {
            Some(held) => {
                held_back.push(HeldBack { name: text.to_owned(), reason: held.reason });
            }
            None => env.push((name, value)),
        }
    }
    env.extend(set.iter().map(|(name, value)| (name.as_ref().into(), value.value.clone().into())));
    (env, held_back)
}

/// Names of variables have no case on Windows.
fn is_same(a: &str, b: &str) -> bool {
    if cfg!(windows) { a.eq_ignore_ascii_case(b) } else { a == b }
}
