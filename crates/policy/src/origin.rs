//! The origin of a value in the effective policy.

use std::fmt;

use serde::Serialize;

/// The layer, and the place in it, that a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// The default value.
    Default,
    /// `place` is `path:line`.
    UserConfig {
        /// File, line and column.
        place: String,
    },
    /// A policy file.
    PolicyFile {
        /// File, line and column.
        place: String,
    },
    /// The manifest of a package.
    Manifest {
        /// File, line and column.
        place: String,
    },
    /// The command line.
    CommandLine {
        /// The flag.
        flag: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::UserConfig { place } | Self::PolicyFile { place } | Self::Manifest { place } => {
                f.write_str(place)
            }
            Self::CommandLine { flag } => f.write_str(flag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serializes_with_its_kind() {
        let origin = Origin::PolicyFile { place: "policy.toml:3".into() };
        assert_eq!(
            serde_json::to_string(&origin).unwrap(),
            r#"{"kind":"policy_file","place":"policy.toml:3"}"#
        );
        assert_eq!(serde_json::to_string(&Origin::Default).unwrap(), r#"{"kind":"default"}"#);
    }
}
