//! The operations a Linux plan is made of, in the order in which they run.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use mcp_policy::{Bytes, Duration};
use serde::Serialize;

use crate::core::host::Ids;
use crate::core::plan::{self, Describe};
use crate::core::request::{DeniedKind, PlaceKind, Stdio, lossy, lossy_list};
use crate::core::rlimit::Resource;
use crate::linux::facts::CgroupMeans;
use crate::linux::landlock::{Ports, Rule};
use crate::linux::sandbox_socket::SandboxSocket;
use mcp_seccomp::{Arch, Connects, Ground, NewProcesses, Sockets};

pub type Plan = plan::Plan<Step>;
pub type Planned = plan::Planned<Step>;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkNamespace {
    Own,
    Host,
}

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

/// A path inside that is closed, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mask {
    #[serde(serialize_with = "lossy")]
    pub at: PathBuf,
    pub kind: DeniedKind,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    /// A file of the run's cgroup, and what is written to it.
    SetCgroup {
        file: &'static str,
        value: String,
    },
    /// The sandbox is made in that cgroup: none of it is ever outside.
    EnterCgroup {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
        means: CgroupMeans,
    },
    Namespaces {
        network: NetworkNamespace,
    },
    /// Without a root of its own the command gets a HOME and a TMPDIR here, for this run alone.
    PrivateDirectories {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
        #[serde(serialize_with = "lossy")]
        home: PathBuf,
        #[serde(serialize_with = "lossy")]
        tmp: PathBuf,
        /// Whom they belong to, where that is not the caller.
        owner: Option<Ids>,
    },
    Timeout {
        after: Duration,
        grace: Duration,
    },
    WatchMemory {
        limit: Bytes,
    },
    /// From here on the cgroup is the root of what the sandbox is told of cgroups.
    CgroupRoot,
    /// Carries what is allowed between the sandbox's network and the host's.
    Broker {
        rules: usize,
        listen: Vec<u16>,
    },
    /// The same for a command that shares the host's network: its sockets are connected by the
    /// launcher, to a proxy that variables name by this address.
    Proxy {
        at: SocketAddr,
        rules: usize,
    },
    MapIds {
        uid: u32,
        gid: u32,
        outside_uid: u32,
        outside_gid: u32,
        /// Whose granted trees appear as the sandbox user's own, besides root's.
        invoker: Option<Ids>,
    },
    DieWithLauncher,
    /// Without a pid namespace: orphans of the tree come to the supervisor, who ends them with
    /// the command and with the launcher.
    Subreaper,
    /// A process that has become the command's user carries out what the filter leaves to the launcher.
    SyscallProxy {
        /// Whom it becomes, where that is not the caller.
        user: Option<Ids>,
    },
    /// Started as root, where root cannot be mapped to somebody else.
    Become {
        uid: u32,
        gid: u32,
    },
    HideMemory,
    NewSession,
    NewKeyring,
    /// A user namespace inside would hand out capabilities, and the kernel's widest side with them.
    ForbidNamespaces,
    Hostname {
        name: &'static str,
    },
    Loopback,
    /// Makes every address local to the sandbox's own network, which has these.
    Routes {
        own: Vec<IpAddr>,
    },
    /// Sockets inside that the launcher answers.
    SandboxSockets {
        sandbox_sockets: Vec<SandboxSocket>,
    },
    /// Opens a file that stands on one of the descriptors 0 to 2 again, through a read-only mount.
    Reopen {
        fd: i32,
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
    },
    /// One tmpfs for the root; `scratch` is how much the temporary places in it may hold.
    NewRoot {
        scratch: Bytes,
    },
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
    /// Directories that must stay where they are, or what is masked in them could be made anew.
    Hold {
        #[serde(serialize_with = "lossy_list")]
        places: Vec<PathBuf>,
    },
    /// What can be seen, but not changed, inside something writable.
    Protect {
        #[serde(serialize_with = "lossy_list")]
        places: Vec<PathBuf>,
    },
    /// What deny rules close.
    Mask {
        masks: Vec<Mask>,
    },
    EnterRoot,
    Terminal,
    DropPrivileges,
    /// Each of the three standard descriptors may be opened again, as it was opened.
    Landlock {
        abi: u32,
        rules: Vec<Rule>,
        ports: Ports,
    },
    Limit {
        resource: Resource,
        value: u64,
    },
    /// RLIMIT_NPROC where it counts the user's processes outside too: so many more than there are.
    LimitUserProcesses {
        more: u64,
    },
    Descriptors {
        stdio: [Stdio; 3],
    },
    /// Refuses system calls from here on, the command's own start excepted.
    Filter {
        arch: Arch,
        processes: NewProcesses,
        connects: Connects,
        sockets: Sockets,
        ground: Ground,
    },
    Execute {
        #[serde(serialize_with = "lossy")]
        program: PathBuf,
        #[serde(serialize_with = "lossy")]
        cwd: PathBuf,
    },
}

impl Describe for Step {
    fn stage(&self) -> String {
        format!("{:?}", self.stage()).to_lowercase()
    }
}

impl Step {
    pub fn stage(&self) -> Stage {
        match self {
            Step::SetCgroup { .. }
            | Step::EnterCgroup { .. }
            | Step::Namespaces { .. }
            | Step::SyscallProxy { .. }
            | Step::Timeout { .. }
            | Step::WatchMemory { .. }
            | Step::Broker { .. }
            | Step::Proxy { .. } => Stage::Launcher,
            Step::Landlock { .. }
            | Step::Limit { .. }
            | Step::LimitUserProcesses { .. }
            | Step::Descriptors { .. }
            | Step::Filter { .. }
            | Step::Execute { .. } => Stage::Target,
            _ => Stage::Init,
        }
    }

    /// The step as a failure names it: a verb, without its operand.
    pub fn verb(&self) -> &'static str {
        match self {
            Step::SetCgroup { .. } => "set",
            Step::EnterCgroup { .. } => "start in cgroup",
            Step::Namespaces { .. } => "create namespaces",
            Step::PrivateDirectories { .. } => "make private directories",
            Step::Timeout { .. } => "arm the timeout",
            Step::WatchMemory { .. } => "watch memory",
            Step::CgroupRoot => "make its cgroup the root",
            Step::Broker { .. } => "carry connections",
            Step::Proxy { .. } => "connect its sockets to a proxy",
            Step::MapIds { .. } => "map user and group ids",
            Step::DieWithLauncher => "tie the sandbox to the launcher",
            Step::Subreaper => "collect the orphans of the tree",
            Step::SyscallProxy { .. } => "start a syscall proxy",
            Step::Become { .. } => "become another user",
            Step::HideMemory => "hide the init process",
            Step::NewSession => "start a session",
            Step::NewKeyring => "join a new keyring",
            Step::ForbidNamespaces => "forbid user namespaces inside",
            Step::Hostname { .. } => "set the host name",
            Step::Loopback => "bring up the loopback interface",
            Step::Routes { .. } => "make every address local",
            Step::SandboxSockets { .. } => "open sockets for the launcher",
            Step::Reopen { .. } => "open read-only",
            Step::NewRoot { .. } => "mount a new root",
            Step::Directory { .. } => "make directory",
            Step::Link { .. } => "make link",
            Step::Text { .. } => "write",
            Step::Show { .. } => "show read-only",
            Step::Bind { access: Access::ReadOnly, .. } => "show read-only",
            Step::Bind { access: Access::ReadWrite, .. } => "show writable",
            Step::Layer { .. } => "put a layer over",
            Step::Scratch { .. } => "make temporary",
            Step::Devices => "make /dev",
            Step::Proc { .. } => "mount /proc",
            Step::Hold { .. } => "hold in place",
            Step::Protect { .. } => "protect",
            Step::Mask { .. } => "mask",
            Step::EnterRoot => "enter the new root",
            Step::Terminal => "make a terminal",
            Step::DropPrivileges => "drop privileges",
            Step::Landlock { .. } => "restrict file access",
            Step::Limit { .. } | Step::LimitUserProcesses { .. } => "set limit",
            Step::Descriptors { .. } => "close file descriptors",
            Step::Filter { .. } => "filter system calls",
            Step::Execute { .. } => "execute",
        }
    }

    pub fn operand(&self) -> String {
        match self {
            Step::SetCgroup { file, value } => format!("{file} {value}"),
            Step::EnterCgroup { at, means } => format!("{} ({})", at.display(), means.name()),
            Step::Namespaces { network } => match network {
                NetworkNamespace::Own => "user mount pid net ipc uts cgroup".to_owned(),
                NetworkNamespace::Host => "user mount pid ipc uts cgroup".to_owned(),
            },
            Step::PrivateDirectories { home, tmp, .. } => {
                format!("HOME {}, TMPDIR {}", home.display(), tmp.display())
            }
            Step::SyscallProxy { user: Some(Ids { uid, gid }) } => {
                format!("as uid {uid}, gid {gid}")
            }
            Step::SyscallProxy { user: None } => "as the caller".to_owned(),
            Step::Become { uid, gid } => format!("uid {uid}, gid {gid}"),
            Step::Timeout { after, grace } => format!("{after}, then {grace} of grace"),
            Step::WatchMemory { limit } => format!("of the whole tree, limit {limit}"),
            Step::Broker { rules, listen } => {
                let listen: Vec<_> =
                    listen.iter().map(|port| format!(", from host port {port}")).collect();
                format!("of {rules} rules{}", listen.concat())
            }
            Step::Proxy { at, rules } => format!("of {rules} rules, called {at} inside"),
            Step::MapIds { uid, gid, outside_uid, outside_gid, .. } => {
                format!("uid {uid} = {outside_uid} outside, gid {gid} = {outside_gid} outside")
            }
            Step::Hostname { name } => (*name).to_owned(),
            Step::Routes { own } => {
                let own: Vec<_> = own.iter().map(ToString::to_string).collect();
                format!("with {} as its own", own.join(" and "))
            }
            Step::SandboxSockets { sandbox_sockets } => {
                let sandbox_sockets: Vec<_> =
                    sandbox_sockets.iter().map(ToString::to_string).collect();
                sandbox_sockets.join(", ")
            }
            Step::Reopen { fd, path } => format!("{} for descriptor {fd}", path.display()),
            Step::Directory { at } | Step::Text { at, .. } | Step::Show { path: at, .. } => {
                at.display().to_string()
            }
            Step::Link { at, to } => format!("{} -> {}", at.display(), to.display()),
            Step::Bind { from, at, .. } if from == at => at.display().to_string(),
            Step::Bind { from, at, .. } => format!("{} at {}", from.display(), at.display()),
            Step::Layer { at, kept_in, access, .. } => {
                let how = if *access == Access::ReadOnly { "read-only, as" } else { "writable," };
                format!("{}, {how} kept in {}", at.display(), kept_in.display())
            }
            Step::NewRoot { scratch } => format!("with {scratch} of temporary space"),
            Step::Scratch { places } => {
                let places: Vec<_> =
                    places.iter().map(|(at, _)| at.display().to_string()).collect();
                places.join(" ")
            }
            Step::Proc { view: ProcView::Empty, .. } => "empty".to_owned(),
            Step::Proc { hidden, view } => {
                let whose = match view {
                    ProcView::Host => "of the host, ",
                    ProcView::OwnTraceable => "of what may be traced, ",
                    ProcView::Own | ProcView::Empty => "",
                };
                format!("{whose}read-only, without {}", hidden.join(" "))
            }
            Step::Hold { places } => some_of(places.iter()),
            Step::Protect { places } if places.is_empty() => "nothing: none is there".to_owned(),
            Step::Protect { places } => some_of(places.iter()),
            Step::Mask { masks } if masks.is_empty() => "nothing: no path matches".to_owned(),
            Step::Mask { masks } => some_of(masks.iter().map(|mask| &mask.at)),
            Step::Landlock { abi, rules, ports } => {
                let rules: Vec<_> = rules.iter().map(ToString::to_string).collect();
                let ports = if *ports == Ports::Closed { ", no ports" } else { "" };
                format!("by Landlock version {abi}: {}{ports}", rules.join(", "))
            }
            Step::LimitUserProcesses { more } => {
                format!("{} {more} more than the user has", Resource::Processes)
            }
            Step::Limit { resource, value } => format!("{resource} {value}"),
            Step::Descriptors { stdio } => {
                let kinds: Vec<_> = stdio.iter().map(|kind| kind.name()).collect();
                format!("but 0-2 ({})", kinds.join(", "))
            }
            Step::Filter { processes, connects, sockets, ground, .. } => {
                let refused = [
                    (*processes == NewProcesses::Refused, "new processes"),
                    (*sockets == Sockets::Internet, "unix sockets"),
                    (*sockets == Sockets::None, "sockets"),
                    (*sockets == Sockets::Proxied, "sockets but to the proxy"),
                    (*ground != Ground::Namespaces, "what namespaces would keep apart"),
                ];
                let refused: Vec<_> =
                    refused.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
                let mut more = Vec::new();
                if !refused.is_empty() {
                    more.push(format!("and refuse {}", refused.join(", ")));
                }
                if *connects == Connects::Announced {
                    more.push("and announce connections".to_owned());
                }
                more.join(" ")
            }
            Step::Execute { program, cwd } => {
                format!("{} in {}", program.display(), cwd.display())
            }
            Step::DropPrivileges => "all capabilities, no_new_privs".to_owned(),
            Step::CgroupRoot
            | Step::DieWithLauncher
            | Step::Subreaper
            | Step::HideMemory
            | Step::NewSession
            | Step::NewKeyring
            | Step::ForbidNamespaces
            | Step::Loopback
            | Step::Devices
            | Step::EnterRoot
            | Step::Terminal => String::new(),
        }
    }
}

/// Paths for a line of text: the first few, and how many there are.
fn some_of<'a>(paths: impl ExactSizeIterator<Item = &'a PathBuf>) -> String {
    const SHOWN: usize = 8;
    let count = paths.len();
    let shown: Vec<_> = paths.take(SHOWN).map(|path| path.display().to_string()).collect();
    let more = if count > SHOWN { " …" } else { "" };
    let noun = if count == 1 { "path" } else { "paths" };
    format!("{count} {noun}: {}{more}", shown.join(" "))
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = self.operand();
        f.write_str(self.verb())?;
        if operand.is_empty() { Ok(()) } else { write!(f, " {operand}") }
    }
}
