//! The operations that a Linux plan is made of: a file for each process that carries them out.

mod init;
mod launcher;
mod root;
mod target;

use std::fmt;

use serde::Serialize;

use crate::core::control::Control;
use crate::core::host::Ids;
use crate::core::plan::Describe;

pub use init::{Hostname, MapIds, PrivateDirectories, Reopen, Routes, SandboxSockets};
pub use launcher::{
    CgroupSetting, ConnectionRelay, EnterCgroup, Namespaces, NetworkNamespace, SyscallProxy,
    Timeout, WatchMemory,
};
pub use root::{Access, Hold, Mask, Masks, NewRoot, Owner, Placed, ProcView, Protect};
pub use target::{Descriptors, Execute, Filter, Landlock, Limit};

/// Which process carries a step out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The launcher itself, outside.
    Launcher,
    /// Pid 1 of the sandbox, before the command exists.
    Init,
    /// The process that becomes the command.
    Target,
}

/// A step, its place in the order of all steps, and the controls that rest on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbered<T, C = Vec<Control>> {
    pub number: usize,
    pub step: T,
    pub for_controls: C,
}

/// A step of a plan as it is listed.
pub type ListedStep<'a> = Numbered<Step<'a>, &'a [Control]>;

/// Any step of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step<'a> {
    SetCgroup(&'a CgroupSetting),
    EnterCgroup(&'a EnterCgroup),
    Namespaces(&'a Namespaces),
    Timeout(&'a Timeout),
    WatchMemory(&'a WatchMemory),
    SyscallProxy(&'a SyscallProxy),

    /// From here on the cgroup is the root of what the sandbox is told of cgroups.
    CgroupRoot,
    MapIds(&'a MapIds),
    DieWithLauncher,
    /// Without a pid namespace: orphans of the tree come to the supervisor, who ends them with
    /// the command and with the launcher.
    Subreaper,
    PrivateDirectories(&'a PrivateDirectories),
    /// Started as root, where root cannot be mapped to another user.
    Become(&'a Ids),
    HideMemory,
    NewSession,
    NewKeyring,
    /// A user namespace inside would hand out capabilities, and the kernel's widest side with them.
    ForbidNamespaces,
    Hostname(&'a Hostname),
    Loopback,
    Routes(&'a Routes),
    SandboxSockets(&'a SandboxSockets),
    Reopen(&'a Reopen),
    NewRoot(&'a NewRoot),
    Hold(&'a Hold),
    Protect(&'a Protect),
    Mask(&'a Masks),
    EnterRoot,
    Terminal,
    DropPrivileges,

    Landlock(&'a Landlock),
    Descriptors(&'a Descriptors),
    Filter(&'a Filter),
    Execute(&'a Execute),

    // These name themselves.
    #[serde(untagged)]
    ConnectionRelay(&'a ConnectionRelay),
    #[serde(untagged)]
    Placed(&'a Placed),
    #[serde(untagged)]
    Limit(&'a Limit),
}

impl Describe for Step<'_> {
    fn stage(&self) -> String {
        format!("{:?}", self.stage()).to_lowercase()
    }
}

impl Step<'_> {
    pub fn stage(&self) -> Stage {
        match self {
            Step::SetCgroup(_)
            | Step::EnterCgroup(_)
            | Step::Namespaces(_)
            | Step::SyscallProxy(_)
            | Step::Timeout(_)
            | Step::WatchMemory(_)
            | Step::ConnectionRelay(_) => Stage::Launcher,
            Step::Landlock(_)
            | Step::Limit(_)
            | Step::Descriptors(_)
            | Step::Filter(_)
            | Step::Execute(_) => Stage::Target,
            Step::CgroupRoot
            | Step::MapIds(_)
            | Step::DieWithLauncher
            | Step::Subreaper
            | Step::PrivateDirectories(_)
            | Step::Become(_)
            | Step::HideMemory
            | Step::NewSession
            | Step::NewKeyring
            | Step::ForbidNamespaces
            | Step::Hostname(_)
            | Step::Loopback
            | Step::Routes(_)
            | Step::SandboxSockets(_)
            | Step::Reopen(_)
            | Step::NewRoot(_)
            | Step::Hold(_)
            | Step::Protect(_)
            | Step::Mask(_)
            | Step::EnterRoot
            | Step::Terminal
            | Step::DropPrivileges
            | Step::Placed(_) => Stage::Init,
        }
    }

    /// The step as a failure names it: a verb, without its operand.
    pub fn verb(&self) -> &'static str {
        match self {
            Step::SetCgroup(_) => "set",
            Step::EnterCgroup(_) => "start in cgroup",
            Step::Namespaces(_) => "create namespaces",
            Step::Timeout(_) => "arm the timeout",
            Step::WatchMemory(_) => "watch memory",
            Step::ConnectionRelay(ConnectionRelay::Broker { .. }) => "carry connections",
            Step::ConnectionRelay(ConnectionRelay::Proxy { .. }) => {
                "connect its sockets to a proxy"
            }
            Step::SyscallProxy(_) => "start a syscall proxy",
            Step::CgroupRoot => "make its cgroup the root",
            Step::MapIds(_) => "map user and group ids",
            Step::DieWithLauncher => "tie the sandbox to the launcher",
            Step::Subreaper => "collect the orphans of the tree",
            Step::PrivateDirectories(_) => "make private directories",
            Step::Become(_) => "become another user",
            Step::HideMemory => "hide the init process",
            Step::NewSession => "start a session",
            Step::NewKeyring => "join a new keyring",
            Step::ForbidNamespaces => "forbid user namespaces inside",
            Step::Hostname(_) => "set the host name",
            Step::Loopback => "bring up the loopback interface",
            Step::Routes(_) => "make every address local",
            Step::SandboxSockets(_) => "open sockets for the launcher",
            Step::Reopen(_) => "open read-only",
            Step::NewRoot(_) => "mount a new root",
            Step::Placed(placed) => placed.verb(),
            Step::Hold(_) => "hold in place",
            Step::Protect(_) => "protect",
            Step::Mask(_) => "mask",
            Step::EnterRoot => "enter the new root",
            Step::Terminal => "make a terminal",
            Step::DropPrivileges => "drop privileges",
            Step::Landlock(_) => "restrict file access",
            Step::Limit(_) => "set limit",
            Step::Descriptors(_) => "close file descriptors",
            Step::Filter(_) => "filter system calls",
            Step::Execute(_) => "execute",
        }
    }

    pub fn operand(&self) -> String {
        match self {
            Step::SetCgroup(step) => step.to_string(),
            Step::EnterCgroup(step) => step.to_string(),
            Step::Namespaces(step) => step.to_string(),
            Step::Timeout(step) => step.to_string(),
            Step::WatchMemory(step) => step.to_string(),
            Step::ConnectionRelay(step) => step.to_string(),
            Step::SyscallProxy(step) => step.to_string(),
            Step::MapIds(step) => step.to_string(),
            Step::PrivateDirectories(step) => step.to_string(),
            Step::Become(Ids { uid, gid }) => format!("uid {uid}, gid {gid}"),
            Step::Hostname(step) => step.name.to_owned(),
            Step::Routes(step) => step.to_string(),
            Step::SandboxSockets(step) => step.to_string(),
            Step::Reopen(step) => step.to_string(),
            Step::NewRoot(step) => step.to_string(),
            Step::Placed(step) => step.to_string(),
            Step::Hold(step) => step.to_string(),
            Step::Protect(step) => step.to_string(),
            Step::Mask(step) => step.to_string(),
            Step::DropPrivileges => "all capabilities, no_new_privs".to_owned(),
            Step::Landlock(step) => step.to_string(),
            Step::Limit(step) => step.to_string(),
            Step::Descriptors(step) => step.to_string(),
            Step::Filter(step) => step.to_string(),
            Step::Execute(step) => step.to_string(),
            Step::CgroupRoot
            | Step::DieWithLauncher
            | Step::Subreaper
            | Step::HideMemory
            | Step::NewSession
            | Step::NewKeyring
            | Step::ForbidNamespaces
            | Step::Loopback
            | Step::EnterRoot
            | Step::Terminal => String::new(),
        }
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = self.operand();
        f.write_str(self.verb())?;
        if operand.is_empty() { Ok(()) } else { write!(f, " {operand}") }
    }
}
