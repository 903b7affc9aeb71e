//! The helper's reply.

use serde::{Deserialize, Serialize};

use crate::core::error::Error;
use crate::core::report::Report;
pub use crate::core::wire::Heard;

/// In this order: one of `Accepted` and `Failed`, and after `Accepted` one of `Ended` and `Failed`.
#[derive(Serialize, Deserialize)]
pub enum LauncherReply {
    /// The order makes sense on this host and is being carried out.
    Accepted,
    Ended(Box<Report>),
    Failed(Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::error::SetupFailure;

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
            let sent = serde_json::to_vec(&LauncherReply::Failed(error)).unwrap();
            let Ok(LauncherReply::Failed(heard)) = serde_json::from_slice(&sent) else {
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
