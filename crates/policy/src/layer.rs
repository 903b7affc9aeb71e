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
pub enum LayerKind {
    /// What the server's package asks for. It can only ask: see [`crate::Policy::merge`].
    Manifest,
    UserConfig,
    PolicyFile,
    CommandLine,
}

/// Where a layer's text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSource {
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
    pub kind: LayerKind,
    pub filesystem: Filesystem,
    pub protect: Option<Sourced<Protect>>,
    pub network_mode: Option<Sourced<NetworkMode>>,
    pub allow: Vec<Sourced<NetRule>>,
    pub unix: Vec<Sourced<PathBuf>>,
    pub listen: Vec<Sourced<u16>>,
    pub trust: Option<Sourced<Trust>>,
    pub subprocess: Option<Sourced<Subprocess>>,
    pub limits: LayerLimits,
    pub env: Env,
    pub tools: Tools,
}

/// The limits of [`crate::Limits`], each said or not said. `Some(None)` is the word `"none"`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerLimits {
    pub memory: Option<Sourced<Option<Bytes>>>,
    pub cpu: Option<Sourced<Option<Cores>>>,
    pub cpu_time: Option<Sourced<Option<Duration>>>,
    pub io: Option<Sourced<Option<Rate>>>,
    pub processes: Option<Sourced<Option<u32>>>,
    pub open_files: Option<Sourced<Option<u32>>>,
    pub file_size: Option<Sourced<Option<Bytes>>>,
    pub tmp_size: Option<Sourced<Bytes>>,
    pub address_space: Option<Sourced<Option<Bytes>>>,
    pub timeout: Option<Sourced<Option<Duration>>>,
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
