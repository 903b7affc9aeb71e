//! What this machine can do, found by trying it in a throw-away child.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::process::{getgid, getuid};

use crate::host::{Caller, CgroupFacts, EntryKind, Fact, HostFacts, SystemEntry};
use crate::linux::landlock::enforce;
use crate::linux::mounts::{Root, Trees, host_tree};
use crate::linux::step::{Access, ProcView};
use crate::linux::{plan, run_directory, sys};

/// Shown read-only, or made again where they are symlinks (merged /usr).
const SYSTEM: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives"];

/// Pieces of /etc that programs need and that tell nothing of the user or the host's secrets.
const ETC: [&str; 12] = [
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/java-11-openjdk",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/java-25-openjdk",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/os-release",
    "/etc/pki",
    "/etc/ssl",
    "/etc/static",
];

/// The facts a run starts from: cheap ones looked up, the rest left for the run to find out.
pub fn assume() -> HostFacts {
    let name = rustix::system::uname();
    HostFacts {
        system: "Linux".to_owned(),
        kernel: name.release().to_string_lossy().into_owned(),
        architecture: name.machine().to_string_lossy().into_owned(),
        caller: Caller { uid: getuid().as_raw(), gid: getgid().as_raw() },
        namespaces: Fact::Assumed,
        private_root: Fact::Assumed,
        network_namespace: Fact::Assumed,
        own_proc: Fact::Assumed,
        mapped_trees: Fact::Assumed,
        seccomp: Fact::Assumed,
        landlock_abi: sys::landlock_abi(),
        cgroup: CgroupFacts::default(),
        run_directory: PathBuf::new(),
        texts: Vec::new(),
        stand_in: None,
        entries: entries(),
    }
}

/// The facts that `mcp doctor` and `--explain` show: each mechanism tried.
pub fn probe() -> HostFacts {
    let mut facts = assume();
    let most = (libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP) as u64;
    facts.network_namespace =
        attempt(most | libc::CLONE_NEWNET as u64, || sys::interface_up(c"lo"));
    facts.namespaces = match facts.network_namespace.usable() {
        true => Fact::Works,
        false => attempt(most, || rustix::system::sethostname(b"mcp").map_err(Into::into)),
    };
    facts.private_root = attempt(most, || private_root(ProcView::Empty));
    facts.own_proc = attempt(most, || private_root(ProcView::Own));
    facts.mapped_trees = match map_to(facts.caller)
        .and_then(|map| host_tree(Path::new("/usr"), Access::ReadOnly, Some(&map)))
    {
        Ok(_) => Fact::Works,
        Err(e) => Fact::Fails { why: e.to_string() },
    };
    facts.seccomp = attempt(0, || match sys::refuse_getppid() {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::Error::other("a filter was accepted and did nothing")),
        Err(e) => Err(e),
    });
    let landlock = attempt(0, || match enforce::refuses_all() {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::Error::other("a ruleset was accepted and did nothing")),
        Err(e) => Err(e),
    });
    if !landlock.usable() {
        facts.landlock_abi = 0;
    }
    facts.cgroup = crate::linux::claim::probe();
    facts.run_directory = run_directory::name();
    facts.texts = plan::plain_texts().filter_map(regular_file).collect();
    if facts.caller.is_root() {
        facts.stand_in = STAND_INS
            .into_iter()
            .find(|id| attempt(0, || sys::become_user(*id, *id, sys::Groups::Drop)).usable());
    }
    facts
}

/// Whom root becomes without a user namespace: the id that no account uses, or, where a container
/// has no such id, nobody.
const STAND_INS: [u32; 2] = [0x7000_6d63, 65534];

fn private_root(proc: ProcView) -> io::Result<()> {
    let mut root = Root::new(Trees::new(), mcp_policy::Bytes::mib(1), 0)?;
    root.devices()?;
    root.proc(&[], proc)?;
    root.enter()
}

fn regular_file(path: &str) -> Option<PathBuf> {
    let real = fs::canonicalize(path).ok()?;
    real.is_file().then_some(real)
}

/// Does something in a child of its own, in new namespaces, and tells how it went.
fn attempt(namespaces: u64, act: impl FnOnce() -> io::Result<()>) -> Fact {
    match try_in_child(namespaces, act) {
        Ok(0) => Fact::Works,
        Ok(errno) => Fact::Fails { why: io::Error::from_raw_os_error(errno).to_string() },
        Err(e) => Fact::Fails { why: e.to_string() },
    }
}

fn try_in_child(namespaces: u64, act: impl FnOnce() -> io::Result<()>) -> io::Result<i32> {
    let (wait, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match sys::clone_process(namespaces)? {
        sys::Cloned::Child => {
            drop(go);
            // The id maps are there once the other end is closed.
            let _ = rustix::io::read(&wait, &mut [0u8; 1]);
            let errno = match act() {
                Ok(()) => 0,
                Err(e) => e.raw_os_error().unwrap_or(libc::EIO),
            };
            sys::exit_now(errno)
        }
        sys::Cloned::Parent { pid, .. } => {
            let mapped = match namespaces & libc::CLONE_NEWUSER as u64 {
                0 => Ok(()),
                _ => map_caller(pid),
            };
            drop(go);
            let waited = sys::wait_for(pid)?;
            mapped?;
            match waited.map(|waited| waited.change) {
                Some(sys::Change::Exited(errno)) => Ok(errno),
                _ => Err(io::Error::other("the probe was killed")),
            }
        }
    }
}

fn map_caller(pid: i32) -> io::Result<()> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
    fs::write(format!("/proc/{pid}/gid_map"), format!("{gid} {gid} 1"))?;
    fs::write(format!("/proc/{pid}/uid_map"), format!("{uid} {uid} 1"))
}

fn map_to(caller: Caller) -> io::Result<OwnedFd> {
    if !caller.is_root() {
        return Err(io::Error::other("only root needs them and may make them"));
    }
    crate::linux::launch::user_namespace("0 1 1\n", "0 1 1\n")
}

fn entries() -> Vec<SystemEntry> {
    SYSTEM.iter().chain(&ETC).filter_map(|path| entry(Path::new(path))).collect()
}

fn entry(path: &Path) -> Option<SystemEntry> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    let kind = if kind.is_symlink() {
        EntryKind::Symlink(fs::read_link(path).ok()?)
    } else if kind.is_dir() {
        EntryKind::Directory
    } else if kind.is_file() {
        EntryKind::File
    } else {
        return None;
    };
    Some(SystemEntry { path: path.to_owned(), kind })
}
