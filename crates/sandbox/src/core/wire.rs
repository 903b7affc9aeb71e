//! How values cross from one of our processes to another that serde has no exact form for.

/// What came of waiting for the launcher.
pub enum Heard {
    Message(Vec<u8>),
    /// The launcher has ended, and everything it said was heard.
    End,
    /// Neither, until the time was up.
    Nothing,
}

/// serde refuses paths that are not UTF-8; as an `OsString` they keep every byte.
pub mod path {
    use std::ffi::{OsStr, OsString};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        let text: &OsStr = path.as_os_str();
        text.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}

/// By the word that a config file has for it.
pub mod fallback {
    use mcp_policy::Fallback;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub fn serialize<S: Serializer>(fallback: &Fallback, serializer: S) -> Result<S::Ok, S::Error> {
        fallback.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fallback, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = Fallback::WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, fallback)| *fallback).ok_or_else(|| D::Error::custom("unknown fallback"))
    }
}

/// The number where there is one, so that its kind stays known; else the words.
pub mod io_error {
    use std::io;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(error: &io::Error, serializer: S) -> Result<S::Ok, S::Error> {
        (error.raw_os_error(), error.to_string()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<io::Error, D::Error> {
        let (number, words) = <(Option<i32>, String)>::deserialize(deserializer)?;
        Ok(number.map_or_else(|| io::Error::other(words), io::Error::from_raw_os_error))
    }
}
