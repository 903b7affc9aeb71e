//! Names of environment variables, and patterns over them.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::ValueError;
use crate::text;
use crate::wildcard;

/// The name of an environment variable: not empty, no `=`, no control character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnvName(String);

/// An [`EnvName`], or a glob over them with `*` for any run of characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnvPattern(String);

impl FromStr for EnvName {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        check(value)?;
        Ok(Self(value.to_owned()))
    }
}

impl FromStr for EnvPattern {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        check(value)?;
        Ok(Self(value.to_owned()))
    }
}

fn check(value: &str) -> Result<(), ValueError> {
    let hint = "write a name such as LANG";
    if value.is_empty() {
        return Err(ValueError::new(0..0, "empty environment variable name", hint));
    }
    match value.char_indices().find(|(_, c)| *c == '=' || c.is_control()) {
        None => Ok(()),
        Some((at, '=')) => Err(ValueError::new(
            at..at + 1,
            "environment variable names have no \"=\"",
            "give the name alone here, and its value where values are set",
        )),
        Some((at, c)) => Err(ValueError::new(
            at..at + c.len_utf8(),
            format!("control character {} in environment variable name", c.escape_unicode()),
            hint,
        )),
    }
}

impl EnvPattern {
    pub(crate) fn built_in(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// Whether the pattern means this name.
    pub fn matches(&self, name: &str) -> bool {
        // Windows does not tell PATH from Path.
        if cfg!(windows) {
            return glob(&self.0.to_uppercase(), &name.to_uppercase());
        }
        glob(&self.0, name)
    }
}

fn glob(pattern: &str, name: &str) -> bool {
    wildcard::matches(pattern.bytes(), name.bytes(), |byte| *byte == b'*', |a, b| a == b)
}

macro_rules! text {
    ($type:ty) => {
        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl $type {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&text::word(&self.0))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

text!(EnvName);
text!(EnvPattern);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_names() {
        for name in ["LANG", "npm_config_cache", "ProgramFiles(x86)", "ÅNGSTRÖM"] {
            assert!(name.parse::<EnvName>().is_ok(), "{name}");
        }
        for name in ["", "A=B", "A\0", "A\nB", "\u{7f}"] {
            assert!(name.parse::<EnvName>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn globs_match() {
        for (pattern, name, expected) in [
            ("LANG", "LANG", true),
            ("LANG", "LANGUAGE", false),
            ("LC_*", "LC_ALL", true),
            ("LC_*", "LC_", true),
            ("LC_*", "XLC_ALL", false),
            ("*", "", true),
            ("*_TOKEN", "GITHUB_TOKEN", true),
            ("*_TOKEN", "GITHUB_TOKENS", false),
            ("A*A", "A", false),
            ("A*A", "AA", true),
            ("A*B*C", "AxxBxxC", true),
            ("A*B*C", "AxxCxxB", false),
            ("A**C", "AC", true),
            ("*a*a*a*a*b", &"a".repeat(10_000), false),
        ] {
            assert_eq!(pattern.parse::<EnvPattern>().unwrap().matches(name), expected, "{pattern}");
        }
    }

    /// The textbook recursive matcher.
    fn matches_slowly(pattern: &[u8], name: &[u8]) -> bool {
        match pattern {
            [] => name.is_empty(),
            [b'*', rest @ ..] => (0..=name.len()).any(|at| matches_slowly(rest, &name[at..])),
            [c, rest @ ..] => name.first() == Some(c) && matches_slowly(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn fast_matcher_agrees_with_the_obvious_one(pattern in "[AB*]{1,8}", name in "[AB]{0,8}") {
            let fast = pattern.parse::<EnvPattern>().unwrap().matches(&name);
            prop_assert_eq!(fast, matches_slowly(pattern.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn no_input_panics(value in "\\PC*|.*", name in ".*") {
            if let Ok(pattern) = value.parse::<EnvPattern>() {
                pattern.matches(&name);
            }
        }
    }
}
