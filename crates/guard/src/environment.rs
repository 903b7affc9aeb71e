//! Which variables of the environment a command of an agent should not get, and why.
//!
//! By name and by the shape of the value: a token is a token under any name. This list is for
//! what a person lets through in bulk (`--env '*'`); what is passed by default is a short list of
//! harmless names, and a variable that a person names is theirs to give.

mod lists;
mod shapes;

use crate::wildcard;

use lists::{CREDENTIALS, HARMLESS, INJECTION, KEYS, Table, WORDS};

/// Why a variable is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Concern {
    /// Opens something that is not the command's.
    Credential,
    /// Makes programs run other code than their own.
    Injection,
}

/// Why a variable is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Held {
    /// Why it is not passed on.
    pub concern: Concern,
    /// The same in words; never the value.
    pub reason: &'static str,
}

/// Whether a variable should be held back, and why. Names are compared as Windows does: `Path` is
/// `PATH`.
pub fn judge(name: &str, value: &str) -> Option<Held> {
    let name = name.to_ascii_uppercase();
    by_name(&name).or_else(|| {
        shapes::secret(value).map(|reason| Held { concern: Concern::Credential, reason })
    })
}

fn by_name(name: &str) -> Option<Held> {
    if HARMLESS.iter().any(|pattern| wildcard::matches(pattern, name)) {
        return None;
    }
    let named = |list: &Table, concern| {
        let found = list
            .iter()
            .find(|(patterns, _)| patterns.iter().any(|pattern| wildcard::matches(pattern, name)));
        found.map(|(_, reason)| Held { concern, reason })
    };
    named(INJECTION, Concern::Injection)
        .or_else(|| named(CREDENTIALS, Concern::Credential))
        .or_else(|| speaks_of_secrets(name))
}

/// Whole words of the name, so that `TOKENIZERS_PARALLELISM` passes.
fn speaks_of_secrets(name: &str) -> Option<Held> {
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    let alone = words.iter().any(|word| WORDS.contains(word));
    let key = words
        .windows(2)
        .any(|pair| pair[1] == "KEY" && KEYS.contains(&pair[0]) || pair == ["ACCESS", "KEYID"]);
    (alone || key).then_some(Held {
        concern: Concern::Credential,
        reason: "its name says that it is a secret",
    })
}

/// An environment sorted.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Sanitized {
    /// What is passed on.
    pub kept: Vec<(String, String)>,
    /// Names only: values are what must not be seen.
    pub held: Vec<(String, Held)>,
}

/// What is left of an environment, and what was held back.
pub fn sanitize(variables: impl IntoIterator<Item = (String, String)>) -> Sanitized {
    let mut sorted = Sanitized::default();
    for (name, value) in variables {
        match judge(&name, &value) {
            Some(why) => sorted.held.push((name, why)),
            None => sorted.kept.push((name, value)),
        }
    }
    sorted
}

#[cfg(test)]
mod tests;
