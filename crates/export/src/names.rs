//! Names of objects in Kubernetes, of units and of their files.

use mcp_policy::text;

use crate::error::{Error, Result};

/// The longest suffix that an object gets is `-secrets`, and a label of DNS has 63 characters.
const LONGEST: usize = 63 - "-secrets".len();

/// The name of a server as a label of DNS (RFC 1035), which every engine takes: small letters, digits and `-`, a letter first.
pub fn object_name(server: &str) -> Result<String> {
    let refuse = |why: String| {
        Err(Error::new(format!("servers.{}: {why}; rename it in the file", text::word(server))))
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if server.is_empty() || !server.chars().all(plain) {
        return refuse("a name has letters, digits, - and _ only".to_owned());
    }
    let mut name = server.to_ascii_lowercase().replace('_', "-");
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name = format!("mcp-{}", name.trim_start_matches('-'));
    }
    let name = name.trim_end_matches('-').to_owned();
    if name == "mcp" && server.trim_matches(['-', '_']).is_empty() {
        return refuse("a name has at least one letter or digit".to_owned());
    }
    if name.len() > LONGEST {
        return refuse(format!(
            "{} characters are too many for the names of objects, which have {LONGEST}",
            name.len()
        ));
    }
    Ok(name)
}

/// A namespace, a claim or a secret that a person names.
pub fn checked(what: &str, name: &str) -> Result<()> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = !name.is_empty()
        && name.len() <= 63
        && name.chars().all(inner)
        && name.starts_with(edge)
        && name.ends_with(edge);
    match is_label {
        true => Ok(()),
        false => Err(Error::new(format!(
            "{what} {}: write small letters, digits and - (at most 63)",
            text::word(name)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_labels_or_are_refused() {
        for (server, expected) in [
            ("notes", "notes"),
            ("My_Notes", "my-notes"),
            ("9lives", "mcp-9lives"),
            ("-x-", "mcp-x"),
            ("a".repeat(55).as_str(), "a".repeat(55).as_str()),
        ] {
            assert_eq!(object_name(server).unwrap(), expected);
        }
        for server in ["", "a b", "a\nb", "a.b", "a: b", "é", "---", "_", &"a".repeat(56)] {
            assert!(object_name(server).is_err(), "{server:?}");
        }
    }

    #[test]
    fn a_name_that_a_person_gives_is_a_label() {
        assert!(checked("namespace", "team-a").is_ok());
        for name in ["", "A", "a_b", "-a", "a-", "a\n- x", &"a".repeat(64)] {
            assert!(checked("namespace", name).is_err(), "{name:?}");
        }
    }
}
