//! Words of a command line for others to see: what looks like a secret is not shown.
//!
//! Masked: the value of an option whose name says that it is a secret, a value of the form of a known credential, and a
//! password in an address. Leaves open: a secret that looks like any other word, behind a name that says nothing.

const MASK: &str = "***";

/// Parts of names of options and variables whose values are secrets.
const SECRET: &[&str] = &[
    "apikey",
    "api_key",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pwd",
    "secret",
    "token",
];

pub fn words(command: &[String]) -> Vec<String> {
    let mut shown = Vec::with_capacity(command.len());
    let mut is_value = false;
    for word in command {
        let (masked, next) = match is_value && !word.starts_with("--") {
            true => (MASK.to_owned(), false),
            false => one(word),
        };
        is_value = next;
        shown.push(masked);
    }
    shown
}

/// The word as it is shown, and whether the next one is its value and a secret.
fn one(word: &str) -> (String, bool) {
    if let Some((name, value)) = word.split_once('=') {
        let shown = match is_secret_name(name) && !value.is_empty() {
            true => MASK.to_owned(),
            false => value_of(value),
        };
        return (format!("{name}={shown}"), false);
    }
    if word.starts_with('-') {
        return (word.to_owned(), is_secret_name(word));
    }
    if let Some((name, _)) = word.split_once(": ").filter(|(name, _)| is_secret_name(name)) {
        return (format!("{name}: {MASK}"), false);
    }
    (value_of(word), false)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
    let parts: Vec<&str> = name.split('_').collect();
    let is_key = parts.last() == Some(&"key");
    is_key
        || SECRET
            .iter()
            .any(|secret| parts.contains(secret) || secret.len() > 4 && name.contains(secret))
}

/// Without the password of an address, or not at all where it has the form of a credential.
fn value_of(word: &str) -> String {
    let shown = address(word);
    let looks_secret = || mcp_guard::environment::judge("WORD", word).is_some();
    if shown == word && looks_secret() { MASK.to_owned() } else { shown }
}

/// `scheme://user:password@host` without the password.
fn address(word: &str) -> String {
    let hidden = word.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (user, host) = rest[..end].rsplit_once('@')?;
        let user = user.split(':').next().unwrap_or_default();
        Some(format!("{scheme}://{user}:{MASK}@{host}{}", &rest[end..]))
    });
    hidden.unwrap_or_else(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown_and_the_rest_is() {
        for (line, shown) in [
            ("server --port 3 /home/me/notes", "server --port 3 /home/me/notes"),
            ("server --api-key hunter2 --port 3", "server --api-key *** --port 3"),
            ("server --api-key=hunter2", "server --api-key=***"),
            ("server --token --verbose", "server --token --verbose"),
            ("server -token hunter2", "server -token ***"),
            ("server GITHUB_TOKEN=hunter2 NAME=x", "server GITHUB_TOKEN=*** NAME=x"),
            ("server ghp_abcdefghijklmnopqrstuvwxyz0123456789", "server ***"),
            (
                "server postgresql://me:hunter2@localhost/db",
                "server postgresql://me:***@localhost/db",
            ),
            ("server --url=https://me:hunter2@x.org/a", "server --url=https://me:***@x.org/a"),
            ("server https://x.org/a@b", "server https://x.org/a@b"),
            ("server --keyboard us --path /x", "server --keyboard us --path /x"),
        ] {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(words(&command).join(" "), shown, "{line}");
        }
        assert_eq!(
            words(&["curl".into(), "-H".into(), "Authorization: Bearer hunter2".into()])[2],
            "Authorization: ***"
        );
    }
}
