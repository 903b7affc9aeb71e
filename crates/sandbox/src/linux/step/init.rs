//! Steps of init, pid 1 of the sandbox, before the command exists. The steps that fill its root are in `root`.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::Serialize;

use crate::core::host::Ids;
use crate::core::request::lossy;
use crate::linux::sandbox_socket::SandboxSocket;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MapIds {
    pub uid: u32,
    pub gid: u32,
    pub outside_uid: u32,
    pub outside_gid: u32,
    /// Whose granted trees appear as the sandbox user's own, besides root's.
    pub invoker: Option<Ids>,
}

impl fmt::Display for MapIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MapIds { uid, gid, outside_uid, outside_gid, .. } = self;
        write!(f, "uid {uid} = {outside_uid} outside, gid {gid} = {outside_gid} outside")
    }
}

/// Without a root of its own the command gets a HOME and a TMPDIR here, for this run alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrivateDirectories {
    #[serde(serialize_with = "lossy")]
    pub at: PathBuf,
    #[serde(serialize_with = "lossy")]
    pub home: PathBuf,
    #[serde(serialize_with = "lossy")]
    pub tmp: PathBuf,
    /// Whom they belong to, where that is not the caller.
    pub owner: Option<Ids>,
}

impl fmt::Display for PrivateDirectories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HOME {}, TMPDIR {}", self.home.display(), self.tmp.display())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Hostname {
    pub name: &'static str,
}

/// Makes every address local to the sandbox's own network, which has these; without any, for TCP alone, so that a
/// connection is refused at once, and heard of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Routes {
    pub own: Vec<IpAddr>,
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.own.is_empty() {
            return f.write_str("for tcp, where all is refused");
        }
        let own: Vec<_> = self.own.iter().map(ToString::to_string).collect();
        write!(f, "with {} as its own", own.join(" and "))
    }
}

/// Sockets inside that the launcher answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SandboxSockets {
    pub sandbox_sockets: Vec<SandboxSocket>,
}

impl fmt::Display for SandboxSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sockets: Vec<_> = self.sandbox_sockets.iter().map(ToString::to_string).collect();
        f.write_str(&sockets.join(", "))
    }
}

/// Opens a file that stands on one of the descriptors 0 to 2 again, through a read-only mount.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reopen {
    pub fd: i32,
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
}

impl fmt::Display for Reopen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for descriptor {}", self.path.display(), self.fd)
    }
}
