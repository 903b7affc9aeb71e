//! Steps of init that fill the sandbox's root and close places in it.

use std::fmt;
use std::path::{Path, PathBuf};

use mcp_policy::Bytes;
use serde::Serialize;

use crate::core::request::{DeniedKind, PlaceKind, lossy, lossy_list};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// Whether the owner ids of a bound tree are the sandbox user's own already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    AsOnHost,
    /// Started as root: root's files appear as the sandbox user's, and what is written inside
    /// belongs to root outside.
    CallerMapped,
}

/// Which /proc is shown inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcView {
    /// That of the sandbox's own pid namespace.
    Own,
    /// The same, with those processes only that may be traced: not init. For root of a rootless container, whom the
    /// kernel takes for the owner of what cannot be dumped.
    OwnTraceable,
    /// The host's, where another cannot be mounted. Landlock closes what is inside other processes.
    Host,
    /// An empty directory.
    Empty,
}

/// One tmpfs for the root; `scratch` is how much the temporary places in it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NewRoot {
    pub scratch: Bytes,
}

impl fmt::Display for NewRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "with {} of temporary space", self.scratch)
    }
}

/// One thing that the new root is filled with.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Placed {
    Directory {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
    },
    Link {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
        #[serde(serialize_with = "lossy")]
        to: PathBuf,
    },
    Text {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
        text: String,
    },
    /// A program that the launcher wrote.
    Script {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
        text: String,
    },
    /// A piece of the system, read-only. Only root can change what stands at its path.
    Show {
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        kind: PlaceKind,
    },
    /// Something of the user's.
    Bind {
        #[serde(serialize_with = "lossy")]
        from: PathBuf,
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
        kind: PlaceKind,
        access: Access,
        owner: Owner,
    },
    /// An overlay (overlayfs) over what is shown at `at`: what is written goes to a directory of the launcher's.
    /// Where the kernel refuses it, `at` stays read-only.
    Layer {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
        #[serde(serialize_with = "lossy")]
        kept_in: PathBuf,
        /// `ReadOnly`: what was written is seen, and another run adds to it.
        access: Access,
        owner: Owner,
    },
    /// Writable temporary places, with their modes; the size is the sum over all of them.
    Scratch {
        places: Vec<(PathBuf, u32)>,
    },
    Devices,
    Proc {
        hidden: Vec<&'static str>,
        view: ProcView,
    },
}

impl Placed {
    pub fn verb(&self) -> &'static str {
        match self {
            Placed::Directory { .. } => "make directory",
            Placed::Link { .. } => "make link",
            Placed::Text { .. } | Placed::Script { .. } => "write",
            Placed::Show { .. } => "show read-only",
            Placed::Bind { access: Access::ReadOnly, .. } => "show read-only",
            Placed::Bind { access: Access::ReadWrite, .. } => "show writable",
            Placed::Layer { .. } => "put a layer over",
            Placed::Scratch { .. } => "make temporary",
            Placed::Devices => "make /dev",
            Placed::Proc { .. } => "mount /proc",
        }
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placed::Directory { at }
            | Placed::Text { at, .. }
            | Placed::Script { at, .. }
            | Placed::Show { path: at, .. } => {
                write!(f, "{}", at.display())
            }
            Placed::Link { at, to } => write!(f, "{} -> {}", at.display(), to.display()),
            Placed::Bind { from, at, .. } if from == at => write!(f, "{}", at.display()),
            Placed::Bind { from, at, .. } => write!(f, "{} at {}", from.display(), at.display()),
            Placed::Layer { at, kept_in, access, .. } => {
                let how = if *access == Access::ReadOnly { "read-only, as" } else { "writable," };
                write!(f, "{}, {how} kept in {}", at.display(), kept_in.display())
            }
            Placed::Scratch { places } => {
                let places: Vec<_> =
                    places.iter().map(|(at, _)| at.display().to_string()).collect();
                f.write_str(&places.join(" "))
            }
            Placed::Devices => Ok(()),
            Placed::Proc { view: ProcView::Empty, .. } => f.write_str("empty"),
            Placed::Proc { hidden, view } => {
                let whose = match view {
                    ProcView::Host => "of the host, ",
                    ProcView::OwnTraceable => "of what may be traced, ",
                    ProcView::Own | ProcView::Empty => "",
                };
                write!(f, "{whose}read-only, without {}", hidden.join(" "))
            }
        }
    }
}

/// Directories that must stay where they are, or what is masked in them could be made anew.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hold {
    #[serde(serialize_with = "lossy_list")]
    pub places: Vec<PathBuf>,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        some_of(f, self.places.iter().map(PathBuf::as_path))
    }
}

/// What can be seen, but not changed, inside something writable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Protect {
    #[serde(serialize_with = "lossy_list")]
    pub places: Vec<PathBuf>,
}

impl fmt::Display for Protect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.places.is_empty() {
            true => f.write_str("nothing: none is there"),
            false => some_of(f, self.places.iter().map(PathBuf::as_path)),
        }
    }
}

/// A path inside that is closed, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mask {
    #[serde(serialize_with = "lossy")]
    pub at: PathBuf,
    pub kind: DeniedKind,
}

/// Paths inside that an empty mount closes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Masks {
    pub masks: Vec<Mask>,
}

impl fmt::Display for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.masks.is_empty() {
            true => f.write_str("nothing: no path matches"),
            false => some_of(f, self.masks.iter().map(|mask| mask.at.as_path())),
        }
    }
}

/// Paths for a line of text: the first few, and how many there are.
fn some_of<'a>(
    f: &mut fmt::Formatter<'_>,
    paths: impl ExactSizeIterator<Item = &'a Path>,
) -> fmt::Result {
    const SHOWN: usize = 8;
    let count = paths.len();
    let shown: Vec<_> = paths.take(SHOWN).map(|path| path.display().to_string()).collect();
    let more = if count > SHOWN { " …" } else { "" };
    let noun = if count == 1 { "path" } else { "paths" };
    write!(f, "{count} {noun}: {}{more}", shown.join(" "))
}
