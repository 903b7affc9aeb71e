//! What the helper answers, and how values cross that serde has no exact form for.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::report::Report;

/// In this order: one of `Accepted` and `Failed`, and after `Accepted` one of `Ended` and `Failed`.
#[derive(Serialize, Deserialize)]
pub enum Reply {
    /// The order makes sense on this host and is being carried out.
    Accepted,
    Ended(Box<Report>),
    Failed(Error),
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SetupFailure;

    #[test]
    fn errors_arrive_as_they_were() {
        let name = || "x".to_owned();
        let source = std::io::Error::from_raw_os_error(2);
        for error in [
            Error::NotFound { command: name() },
            Error::NotExecutable { path: "/x".into(), why: name() },
            Error::Grant { flag: name(), path: "/x".into(), why: name() },
            Error::Input { what: name(), why: name() },
            Error::Descriptor { fd: 1, kind: name(), remedy: name() },
            Error::Setup(SetupFailure { step: name(), target: name(), errno: 1, hint: name() }),
            Error::Unsupported(name()),
            Error::NotEnforced { gaps: Vec::new() },
            Error::Guarded { rules: vec![name()] },
            Error::Stopped(name()),
            Error::Io { doing: name(), source },
            Error::Io { doing: name(), source: std::io::Error::other("y") },
        ] {
            let (said, code) = (format!("{error:?}"), error.exit_code());
            let sent = serde_json::to_vec(&Reply::Failed(error)).unwrap();
            let Ok(Reply::Failed(heard)) = serde_json::from_slice(&sent) else {
                panic!("{said} did not arrive");
            };
            if !said.contains("Custom") {
                assert_eq!(format!("{heard:?}"), said);
            }
            assert_eq!(heard.exit_code(), code);
        }
    }

    #[cfg(unix)]
    #[test]
    fn paths_keep_their_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let path = std::path::PathBuf::from(std::ffi::OsStr::from_bytes(b"/a\xff\nb"));
        let error = Error::NotExecutable { path: path.clone(), why: String::new() };
        let sent = serde_json::to_vec(&error).unwrap();
        let heard = serde_json::from_slice(&sent).unwrap();
        assert!(matches!(heard, Error::NotExecutable { path: heard, .. } if heard == path));
    }
}
