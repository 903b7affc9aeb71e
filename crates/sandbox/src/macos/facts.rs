//! What a Mac can do, and what belongs to one run on it.

use std::path::PathBuf;

use serde::Serialize;

use crate::core::host::{Caller, Fact};
use crate::core::request::{lossy, lossy_list};

/// Everything below `/usr/bin/sandbox-exec` that a plan rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MacFacts {
    pub system: String,
    pub kernel: String,
    pub architecture: String,
    pub caller: Caller,
    /// `/usr/bin/sandbox-exec` is there, no sandbox is around us already, and a profile closed a file.
    pub seatbelt: Fact,
    /// `sandbox_check` tells the processes of one run from all others. It is no public interface.
    pub membership: Fact,
    /// Limits set in a child were read back there, and held.
    pub rlimits: Fact,
    /// RLIMIT_AS is accepted; many releases answer EINVAL.
    pub address_space: Fact,
    /// Processes can be listed and their memory asked for.
    pub accounting: Fact,
    /// How many processes the caller has: RLIMIT_NPROC counts all of them.
    pub user_processes: u32,
    /// The command's own HOME and TMPDIR are made in here, and removed with it.
    #[serde(serialize_with = "lossy")]
    pub scratch: PathBuf,
    /// The loopback port of the run's own proxy, where it has one.
    pub proxy: Option<u16>,
    /// A name that no other run has.
    pub nonce: String,
    /// What sets the limits inside: this very program.
    #[serde(serialize_with = "lossy")]
    pub helper: PathBuf,
    /// The paths of regular files that descriptors 0 to 2 are.
    #[serde(skip)]
    pub redirected: Vec<PathBuf>,
    /// Prefixes of Homebrew, MacPorts and Nix that exist here.
    #[serde(serialize_with = "lossy_list")]
    pub toolchains: Vec<PathBuf>,
    /// rustup's directory, and the one with its stand-ins: they look for it in HOME, which is another.
    #[serde(skip)]
    pub rustup: Option<(PathBuf, PathBuf)>,
    /// Where Xcode or the command line tools are; `/usr/bin/git` and its like only lead there.
    #[serde(serialize_with = "optional")]
    pub developer: Option<PathBuf>,
}

fn optional<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

impl MacFacts {
    /// A Mac as it usually is, for plans that are made elsewhere.
    pub fn usual() -> MacFacts {
        MacFacts {
            system: "macOS".to_owned(),
            kernel: "unknown".to_owned(),
            architecture: "arm64".to_owned(),
            caller: Caller { uid: 501, gid: 20, invoker: None, rootless: None },
            seatbelt: Fact::Assumed,
            membership: Fact::Assumed,
            rlimits: Fact::Assumed,
            address_space: Fact::Assumed,
            accounting: Fact::Assumed,
            user_processes: 400,
            scratch: PathBuf::from("/private/var/folders/xx/user/T/mcp-run"),
            proxy: Some(50_123),
            nonce: "run".to_owned(),
            helper: PathBuf::from("/usr/local/bin/mcp"),
            redirected: Vec::new(),
            toolchains: ["/opt/homebrew", "/usr/local"].map(PathBuf::from).to_vec(),
            rustup: None,
            developer: None,
        }
    }

    pub fn home(&self) -> PathBuf {
        self.scratch.join("home")
    }

    pub fn temporary(&self) -> PathBuf {
        self.scratch.join("tmp")
    }

    /// A file that the self-check must not be able to create.
    pub fn created(&self) -> PathBuf {
        self.scratch.join("created")
    }

    /// A file outside every grant, for the self-check to be refused at.
    pub fn canary(&self) -> PathBuf {
        self.scratch.join("canary")
    }
}
