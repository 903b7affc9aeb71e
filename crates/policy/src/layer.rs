//! One source's part of the policy: a file, a manifest, or the command line.

use std::path::{Path, PathBuf};

use crate::error::{Error, Position};
use crate::policy::{Env, Filesystem, NetworkMode, Sourced, Subprocess, Trust};
use crate::text;
use crate::{Bytes, Cores, Duration, LayerBuilder, NetRule, Origin, Protect, Rate, Tools, parse};

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

    /// Reads a policy file's text.
    pub fn from_toml(text: &str, source: LayerSource) -> Result<Self, Error> {
        Self::from_toml_beside(text, source, &[])
    }

    /// Every mistake of a policy file's text, in the order of the file.
    pub fn mistakes(bytes: &[u8], source: &LayerSource) -> Vec<Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.len() <= MAX_POLICY_FILE => {
                parse::mistakes(text.strip_prefix('\u{FEFF}').unwrap_or(text), source)
            }
            _ => Self::from_bytes(bytes, source.clone()).err().into_iter().collect(),
        }
    }

    /// Reads a policy out of a file that has other top-level keys, too; `others` are left to
    /// whoever knows them.
    pub fn from_toml_beside(
        text: &str,
        source: LayerSource,
        others: &[&str],
    ) -> Result<Self, Error> {
        if text.len() > MAX_POLICY_FILE {
            return Err(source.too_large());
        }
        parse::layer(text.strip_prefix('\u{FEFF}').unwrap_or(text), source, others)
    }

    /// Reads a policy file as it is on disk.
    pub fn from_bytes(bytes: &[u8], source: LayerSource) -> Result<Self, Error> {
        if bytes.len() > MAX_POLICY_FILE {
            return Err(source.too_large());
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::from_toml(text, source),
            Err(error) => {
                let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let line = valid.matches('\n').count() + 1;
                let column = valid.rsplit('\n').next().unwrap_or("").chars().count() + 1;
                Err(Error::in_file(
                    source.shown_path(),
                    "this is not UTF-8 text",
                    "save the file as UTF-8",
                )
                .at(Position { line, column }, None))
            }
        }
    }

    /// A layer of flags. `cwd` is absolute; relative paths are resolved against it.
    pub fn command_line(cwd: impl Into<PathBuf>, home: Option<PathBuf>) -> LayerBuilder {
        LayerBuilder::command_line(cwd.into(), home)
    }

    /// A layer of what a package asks for, when that is not written in policy syntax.
    /// `place` says where, such as `manifest.json`.
    pub fn manifest(
        place: impl Into<String>,
        base: impl Into<PathBuf>,
        home: Option<PathBuf>,
    ) -> LayerBuilder {
        LayerBuilder::manifest(place.into(), base.into(), home)
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

    fn too_large(&self) -> Error {
        let most = Bytes(MAX_POLICY_FILE as u64);
        let message = format!("this file has more than {most}, too much for a policy");
        Error::in_file(self.shown_path(), message, "split it, or name directories instead of files")
    }
}
