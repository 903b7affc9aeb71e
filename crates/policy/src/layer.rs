//! One source's part of the policy: a file, a manifest, or the command line.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::policy::{Env, Filesystem, NetworkMode, Sourced, Subprocess, Trust};
use crate::text;
use crate::{Bytes, Cores, Duration, NetRule, Origin, Protect, Rate, Tools};

/// The largest policy file that is read. A thousand rules are a hundredth of it.
pub const MAX_POLICY_FILE: usize = 1 << 20;

/// Whose words a layer holds, in the order in which later ones replace earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LayerKind {
    /// What the server's package asks for. It can only ask: see [`crate::Policy::merge`].
    Manifest,
    /// The user's own config.
    UserConfig,
    /// A file named with `--policy`.
    PolicyFile,
    /// Flags, or a program that uses the library.
    CommandLine,
}

/// Where a layer's text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSource {
    /// Which kind of layer the file makes.
    pub kind: LayerKind,
    /// Named in messages and origins.
    pub path: PathBuf,
    /// Absolute; relative paths in the text are resolved against it.
    pub base: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

/// What one source says. Nothing said is `None` or an empty list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Where it comes from, which decides what it may say.
    pub kind: LayerKind,
    /// Grants and denials of files.
    pub filesystem: Filesystem,
    /// Whether settings that other programs act on are protected.
    pub protect: Option<Sourced<Protect>>,
    /// An own network, or the host's.
    pub network_mode: Option<Sourced<NetworkMode>>,
    /// Hosts that may be reached.
    pub allow: Vec<Sourced<NetRule>>,
    /// Unix sockets of the host that may be used.
    pub unix: Vec<Sourced<PathBuf>>,
    /// Ports of the command that the host may reach.
    pub listen: Vec<Sourced<u16>>,
    /// Whether the certificate service of macOS may be used.
    pub trust: Option<Sourced<Trust>>,
    /// Whether the command may start others.
    pub subprocess: Option<Sourced<Subprocess>>,
    /// Limits.
    pub limits: LayerLimits,
    /// Environment variables and secrets.
    pub env: Env,
    /// What an agent's own tools may touch.
    pub tools: Tools,
}

/// The limits of [`crate::Limits`], each said or not said. `Some(None)` is the word `"none"`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerLimits {
    /// Memory of all processes together.
    pub memory: Option<Sourced<Option<Bytes>>>,
    /// Share of the processor.
    pub cpu: Option<Sourced<Option<Cores>>>,
    /// Processor time of each process.
    pub cpu_time: Option<Sourced<Option<Duration>>>,
    /// Bytes each second to and from disks.
    pub io: Option<Sourced<Option<Rate>>>,
    /// Processes and threads.
    pub processes: Option<Sourced<Option<u32>>>,
    /// Open files of each process.
    pub open_files: Option<Sourced<Option<u32>>>,
    /// Size of each file that is written.
    pub file_size: Option<Sourced<Option<Bytes>>>,
    /// Temporary space.
    pub tmp_size: Option<Sourced<Bytes>>,
    /// Address space of each process.
    pub address_space: Option<Sourced<Option<Bytes>>>,
    /// Time until the command is ended.
    pub timeout: Option<Sourced<Option<Duration>>>,
    /// Time between the request to end and the kill.
    pub grace: Option<Sourced<Duration>>,
}

impl Layer {
    pub(crate) fn empty(kind: LayerKind) -> Self {
        Self {
            kind,
            filesystem: Filesystem::default(),
            protect: None,
            network_mode: None,
            allow: Vec::new(),
            unix: Vec::new(),
            listen: Vec::new(),
            trust: None,
            subprocess: None,
            limits: LayerLimits::default(),
            env: Env::default(),
            tools: Tools::default(),
        }
    }
}

impl Layer {
    /// The layer as it counts for commands of agents.
    pub fn for_commands(mut self) -> Layer {
        self.filesystem.write.append(&mut self.tools.allowed_roots);
        self.filesystem.deny.append(&mut self.tools.denied_patterns);
        self
    }
}

impl LayerSource {
    /// Short and safe to print: below the home directory it starts with `~`.
    pub(crate) fn shown_path(&self) -> String {
        let home = self.home.as_deref().filter(|home| *home != Path::new(""));
        let below = home.and_then(|home| self.path.strip_prefix(home).ok());
        let path = match below {
            Some(below) => Path::new("~").join(below),
            None => self.path.clone(),
        };
        text::word(&path.to_string_lossy())
    }

    pub(crate) fn origin(&self, line: usize) -> Origin {
        let place = format!("{}:{line}", self.shown_path());
        match self.kind {
            LayerKind::Manifest => Origin::Manifest { place },
            LayerKind::UserConfig => Origin::UserConfig { place },
            LayerKind::PolicyFile => Origin::PolicyFile { place },
            LayerKind::CommandLine => Origin::CommandLine { flag: place },
        }
    }

    pub(crate) fn too_large(&self) -> Error {
        let most = Bytes(MAX_POLICY_FILE as u64);
        let message = format!("this file has more than {most}, too much for a policy");
        Error::in_file(self.shown_path(), message, "split it, or name directories instead of files")
    }
}
