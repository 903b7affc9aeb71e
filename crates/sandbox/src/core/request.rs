//! A policy and a command, resolved against this host: every path canonical, the program
//! found, the environment chosen. Together with the host facts it is all a plan is made of.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use mcp_policy::{Policy, Protect, Sourced};
use serde::{Serialize, Serializer};

use crate::core::watched::Watching;
use crate::host_files::id::FileId;

/// serde refuses paths that are not UTF-8, and a plan must not fail on a file's name.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

pub(crate) fn lossy_list<S: Serializer>(
    paths: &[PathBuf],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// A path that was there when the request was made, without symlinks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The path.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// What is there.
    pub kind: PlaceKind,
}

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A unix socket that may be connected to.
    Socket,
}

/// Something that a deny rule matched when the request was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Denied {
    /// Without symlinks on the way, but perhaps one itself.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// What is there.
    pub kind: DeniedKind,
    /// Its number in the policy.
    pub rule: usize,
}

/// What is at a denied or protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeniedKind {
    /// A directory.
    Directory,
    /// Or a socket, a device: whatever is opened and not entered.
    File,
    /// A symlink.
    Link,
}

/// A unix socket of the host's that no user allowed, or a directory that may hold some.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stray {
    pub path: PathBuf,
    pub kind: DeniedKind,
}

/// Something inside a writable place that has to stay as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Protected {
    /// Without symlinks on the way, but perhaps one itself.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// What is there.
    pub kind: DeniedKind,
    /// How it is kept.
    pub guarded: Guarded,
    /// Why it is protected.
    pub why: String,
    /// Which file it is; `None` where it could not be looked at, and where the path is what counts.
    #[serde(skip)]
    pub id: Option<FileId>,
}

/// How something protected is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Guarded {
    /// With all that is in it.
    ReadOnly,
    /// A directory that can be written, but neither removed nor renamed.
    InPlace,
}

/// A symlink that was followed on the way to a place, to be made again inside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Link {
    /// Where it is.
    #[serde(serialize_with = "lossy")]
    pub at: PathBuf,
    /// Where it leads.
    #[serde(serialize_with = "lossy")]
    pub to: PathBuf,
}

/// A program of the launcher's, in the sandbox's own root: where nothing of the host is shown. Linux only, with a root
/// of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Script {
    /// Its path inside.
    #[serde(serialize_with = "lossy")]
    pub at: PathBuf,
    /// With the line that names its interpreter.
    pub text: String,
}

impl Script {
    /// A script at a path inside.
    #[must_use]
    pub fn new(at: PathBuf, text: String) -> Script {
        Script { at, text }
    }
}

/// Where HOME is inside.
pub const HOME: &str = "/home/mcp";

/// What HOME is inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Home {
    /// Part of the sized temporary file system; gone after the run.
    Ephemeral,
    /// A directory of ours on the host that later runs of the same name see again.
    Kept(#[serde(serialize_with = "lossy")] PathBuf),
}

/// A layer over something that is shown read-only: the command may change what it sees there, what it wrote is kept
/// in a directory of the launcher's, and what lies below stays as it is. Linux only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WritableLayer {
    /// What is shown, and lies below.
    #[serde(serialize_with = "lossy")]
    pub over: PathBuf,
    /// A directory with two empty directories at first, `upper` and `work`, which belong to this layer alone.
    #[serde(serialize_with = "lossy")]
    pub kept_in: PathBuf,
    /// Whether this run may add to it.
    pub writing: LayerWriting,
}

/// Whether a run may add to a [`WritableLayer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerWriting {
    /// It alone may. The caller holds a lock that says so.
    Allowed,
    /// Another run may now: this one sees what was written, and writes nothing.
    OfAnotherRun,
}

impl WritableLayer {
    /// A layer over `over`, kept in the directory `kept_in`.
    #[must_use]
    pub fn new(over: PathBuf, kept_in: PathBuf, writing: LayerWriting) -> WritableLayer {
        WritableLayer { over, kept_in, writing }
    }
}

/// A variable of the host's that is not passed on. Never its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// Its name.
    pub name: String,
    /// Why it is not passed on.
    pub reason: &'static str,
}

/// Something that is not shown, because the way to it leads out of a place that the command may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unshown {
    /// Where the way begins, or what is said to lead there.
    pub at: PathBuf,
    /// The writable place that it leads out of.
    pub root: PathBuf,
    /// Where it leads.
    pub to: PathBuf,
    /// What a read grant would have to name.
    pub read: PathBuf,
}

impl Unshown {
    /// Why, without where it begins.
    pub fn why(&self) -> String {
        let (root, to) = (self.root.display(), self.to.display());
        format!("leads to {to} by way of {root}, which the command may write")
    }
}

/// What each of the descriptors 0 to 2 is; decides how it gets inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdio {
    /// A pipe, a unix stream socket, /dev/null or a file opened for writing: handed over.
    Direct,
    /// A regular file opened for reading only: opened again through a read-only mount, or
    /// it could be reopened for writing through /proc/self/fd.
    ReadOnlyFile(#[serde(serialize_with = "lossy")] PathBuf),
    /// A terminal: replaced by a pseudo-terminal of the sandbox's own.
    Terminal,
    /// Copied by the launcher: what it is must not get inside.
    Relayed,
    /// Copied by the launcher, but for lines that are not JSON: these go to standard error.
    Filtered,
}

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(OsString);

impl Secret {
    /// A value that no debug output shows.
    pub fn new(value: OsString) -> Self {
        Secret(value)
    }

    /// For the environment of the command, and nothing else.
    pub fn reveal(&self) -> &OsString {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl Request {
    /// What may be reached, for a sentence: `what is allowed`, and what `public` means where a rule says it.
    pub(crate) fn allowed_in_words(&self) -> String {
        let rules = self.policy.network.allow.iter().map(|rule| &rule.value);
        let meanings: Vec<String> =
            rules.filter_map(|rule| Some(format!("{rule}: {}", rule.meaning()?))).collect();
        match meanings.is_empty() {
            true => "what is allowed".to_owned(),
            false => format!("what is allowed ({})", meanings.join("; ")),
        }
    }

    /// Grants nothing and passes nothing on.
    pub(crate) fn bare(policy: Policy, program: PathBuf, argv: Vec<OsString>) -> Request {
        Request {
            policy,
            program,
            argv,
            shown: Vec::new(),
            links: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
            unix: Vec::new(),
            stray_sockets: Vec::new(),
            denied: Vec::new(),
            withdrawn: Vec::new(),
            protected: Vec::new(),
            other_names: Vec::new(),
            unprotected: Vec::new(),
            held_back: Vec::new(),
            unshown: Vec::new(),
            texts: Vec::new(),
            home: Home::Ephemeral,
            layer: None,
            scripts: Vec::new(),
            watching: Watching::Off,
            cwd: HOME.into(),
            env: Vec::new(),
            secrets: Vec::new(),
            stdio: [Stdio::Direct, Stdio::Direct, Stdio::Direct],
        }
    }

    /// Which protected files can be changed by another name, in words; `None` where none can.
    pub fn told_other_names(&self) -> Option<String> {
        let told = |(file, name): &(PathBuf, PathBuf)| {
            format!("{} can be changed by its other name {}", file.display(), name.display())
        };
        let told: Vec<String> = self.other_names.iter().take(3).map(told).collect();
        (!told.is_empty()).then(|| told.join("; ") + " (remove the other name)")
    }

    /// Whether there is anything to protect: a policy that asks for it, and something to write.
    pub fn protects(&self) -> bool {
        self.policy.protect.value == Protect::Usual && !self.write.is_empty()
    }

    /// The rule that denies a host path or something above it.
    pub fn denying(&self, path: &Path) -> Option<&Sourced<PathBuf>> {
        let over = self.denied.iter().find(|denied| path.starts_with(&denied.path))?;
        self.policy.filesystem.deny.get(over.rule)
    }
}

/// A run whose paths, program and variables were looked up on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What is asked for.
    pub policy: Policy,
    /// What is executed; also its path inside.
    pub program: PathBuf,
    /// The command's words, the first as it was given.
    pub argv: Vec<OsString>,
    /// The program, its interpreter and what they need, read-only.
    pub shown: Vec<Place>,
    /// Symlinks to be made again inside.
    pub links: Vec<Link>,
    /// Grants to read.
    pub read: Vec<Place>,
    /// Grants to write.
    pub write: Vec<Place>,
    /// Unix sockets of the host that may be used.
    pub unix: Vec<Place>,
    /// Unix sockets that lie in granted directories, and are not to be used.
    pub stray_sockets: Vec<Stray>,
    /// What deny rules match; none lies below another.
    pub denied: Vec<Denied>,
    /// Grants that are not in `read` and `write`, because a deny rule takes all of them away.
    pub withdrawn: Vec<PathBuf>,
    /// What is protected in `write`; none lies below something read-only.
    pub protected: Vec<Protected>,
    /// Protected files with other names in `write`, by which they can be changed.
    pub other_names: Vec<(PathBuf, PathBuf)>,
    /// What is not protected, with all that is below.
    pub unprotected: Vec<PathBuf>,
    /// Variables that a pattern lets through, and that the command does not get all the same.
    pub held_back: Vec<HeldBack>,
    /// What programs or variables lead to, and that is not shown all the same.
    pub unshown: Vec<Unshown>,
    /// Files of the sandbox's own: anywhere where it has a root of its own, else below a HOME of its own.
    pub texts: Vec<(PathBuf, String)>,
    /// What HOME is inside.
    pub home: Home,
    /// What may be changed over something read-only, and is kept.
    pub layer: Option<WritableLayer>,
    /// Programs of the launcher's, where the sandbox has a root of its own.
    pub scripts: Vec<Script>,
    /// Whether the paths that the command looks for are noted.
    pub watching: Watching,
    /// Where the command starts, as a path inside.
    pub cwd: PathBuf,
    /// Variables of the command, secrets excepted.
    pub env: Vec<(OsString, OsString)>,
    /// Variables that hold secrets.
    pub secrets: Vec<(OsString, Secret)>,
    /// What the standard descriptors are.
    pub stdio: [Stdio; 3],
}

impl Stdio {
    /// For messages.
    pub fn name(&self) -> &'static str {
        match self {
            Stdio::Direct => "as they are",
            Stdio::ReadOnlyFile(_) => "read-only file",
            Stdio::Terminal => "terminal",
            Stdio::Relayed => "relayed",
            Stdio::Filtered => "relayed, JSON only",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("canary".into());
        assert_eq!(secret.reveal(), "canary");
        assert!(!format!("{secret:?} {:#?}", vec![("NAME", &secret)]).contains("canary"));
    }
}
