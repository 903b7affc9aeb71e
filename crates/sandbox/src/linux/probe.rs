//! Finds the facts about this machine by trying each in a throw-away child.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{getgid, getuid};

use crate::core::host::{Caller, Fact, Ids, Rootless};
use crate::linux::facts::{CgroupFacts, EntryKind, LinuxFacts, SystemEntry};
use crate::linux::landlock::enforce;
use crate::linux::mounts::{Root, Trees, host_tree};
use crate::linux::step::{Access, ProcView};
use crate::linux::well_known::{ROOT_BECOMES, ROOT_BECOMES_OUTSIDE};
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
pub fn assume() -> LinuxFacts {
    let name = rustix::system::uname();
    let caller = caller();
    LinuxFacts {
        system: "Linux".to_owned(),
        kernel: name.release().to_string_lossy().into_owned(),
        architecture: name.machine().to_string_lossy().into_owned(),
        caller,
        namespaces: Fact::Assumed,
        private_root: Fact::Assumed,
        network_namespace: Fact::Assumed,
        own_proc: Fact::Assumed,
        mapped_trees: Fact::Assumed,
        seccomp: Fact::Assumed,
        listener: Fact::Assumed,
        installing: Fact::Assumed,
        landlock_abi: sys::landlock_abi(),
        cgroup: CgroupFacts::default(),
        run_directory: PathBuf::new(),
        texts: Vec::new(),
        stand_in: None,
        entries: entries(caller),
    }
}

/// The facts that `mcp doctor` and `--explain` show: each mechanism tried.
pub fn probe() -> LinuxFacts {
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
    facts.own_proc = attempt(most, || private_root(ProcView::Own));
    facts.private_root = match facts.own_proc.usable() {
        true => Fact::Works,
        false => attempt(most, || private_root(ProcView::Empty)),
    };
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
    facts.listener = attempt(0, sys::listen_to_nothing);
    facts.installing = attempt(0, sys::can_install_descriptors);
    let landlock = attempt(0, || match enforce::refuses_all() {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::Error::other("a ruleset was accepted and did nothing")),
        Err(e) => Err(e),
    });
    if !landlock.usable() {
        facts.landlock_abi = 0;
    }
    facts.cgroup = crate::linux::reservation::probe();
    facts.run_directory = run_directory::name();
    facts.texts = plan::plain_texts().filter_map(regular_file).collect();
    if facts.caller.is_root() {
        let nobodies = STAND_INS.map(|id| Ids { uid: id, gid: id });
        facts.stand_in =
            facts.caller.invoker.into_iter().chain(nobodies).into_iter().find(|id| {
                attempt(0, || sys::become_user(id.uid, id.gid, sys::Groups::Drop)).usable()
            });
    }
    facts
}

fn caller() -> Caller {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let lacks_ids = || lacks_ids(&fs::read_to_string("/proc/self/uid_map").unwrap_or_default());
    let rootless = (uid == 0 && lacks_ids()).then(rootless);
    let variable = |name| std::env::var(name).ok();
    // For anybody else they are just variables.
    let invoker = match uid {
        0 if rootless.is_none() => {
            invoker(variable("SUDO_UID").as_deref(), variable("SUDO_GID").as_deref())
        }
        _ => None,
    };
    Caller { uid, gid, invoker, rootless }
}

/// Whether a user namespace with this map has not every id. The last one is the overflow id, and is in no map.
fn lacks_ids(map: &str) -> bool {
    !map.is_empty() && !map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Settings of the kernel belong to the machine's root, and show with the overflow id where that has no name.
fn rootless() -> Rootless {
    match fs::metadata("/proc/sys/kernel/ostype") {
        Ok(setting) if setting.uid() != 0 => Rootless::OrdinaryUser,
        _ => Rootless::Root,
    }
}

/// What sudo says of who called it: two plain numbers of an ordinary user, or nothing.
fn invoker(uid: Option<&str>, gid: Option<&str>) -> Option<Ids> {
    let id = |text: Option<&str>| {
        let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        // As many as an account can have; above are ids that stand for others.
        text.parse::<u32>().ok().filter(|id| (1..ROOT_BECOMES_OUTSIDE).contains(id))
    };
    Some(Ids { uid: id(uid)?, gid: id(gid)? })
}

/// Whom root becomes without a user namespace: the id that no account uses, or, where a container
/// has no such id, the overflow id.
const STAND_INS: [u32; 2] = [ROOT_BECOMES_OUTSIDE, 65534];

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
    let caller = caller();
    match sys::clone_process(namespaces)? {
        sys::Cloned::Child => {
            drop(go);
            // The id maps are there once the other end is closed.
            let _ = rustix::io::read(&wait, &mut [0u8; 1]);
            let is_mapped = namespaces & libc::CLONE_NEWUSER as u64 != 0;
            let groups = if caller.is_root() { sys::Groups::Drop } else { sys::Groups::Keep };
            let became = match caller.uid == 0 && is_mapped {
                true => sys::become_user(ROOT_BECOMES, ROOT_BECOMES, groups),
                false => Ok(()),
            };
            let errno = match became.and_then(|()| act()) {
                Ok(()) => 0,
                Err(e) => e.raw_os_error().unwrap_or(libc::EIO),
            };
            sys::exit_now(errno)
        }
        sys::Cloned::Parent { pid, .. } => {
            let mapped = match namespaces & libc::CLONE_NEWUSER as u64 {
                0 => Ok(()),
                _ => map_caller(pid, caller),
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

/// As a run does it: root becomes another user.
fn map_caller(pid: i32, caller: Caller) -> io::Result<()> {
    let Caller { uid, gid, .. } = caller;
    let (uid_map, gid_map) = if caller.is_root() {
        let map = format!("{ROOT_BECOMES} {ROOT_BECOMES_OUTSIDE} 1");
        (map.clone(), map)
    } else {
        fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
        match caller.is_rootless() {
            true => (format!("{ROOT_BECOMES} {uid} 1"), format!("{ROOT_BECOMES} {gid} 1")),
            false => (format!("{uid} {uid} 1"), format!("{gid} {gid} 1")),
        }
    };
    fs::write(format!("/proc/{pid}/gid_map"), gid_map)?;
    fs::write(format!("/proc/{pid}/uid_map"), uid_map)
}

fn map_to(caller: Caller) -> io::Result<OwnedFd> {
    if !caller.is_root() {
        return Err(io::Error::other("only root needs them and may make them"));
    }
    crate::linux::owner_map::user_namespace("0 1 1\n", "0 1 1\n")
}

fn entries(caller: Caller) -> Vec<SystemEntry> {
    let system = SYSTEM.iter().filter_map(|path| entry(Path::new(path)));
    let pieces = ETC.iter().map(Path::new);
    match caller.is_rootless() {
        true => system.chain(pieces.flat_map(open_to_others)).collect(),
        false => system.chain(pieces.filter_map(entry)).collect(),
    }
}

/// The parts of a place that everybody may read, as few as there can be. Keys of servers, mostly
/// (/etc/ssl/private), are files of the caller's own to the root of a rootless container, and so to what it starts.
fn open_to_others(path: &Path) -> Vec<SystemEntry> {
    const READ: u32 = 0o4;
    const ENTER: u32 = 0o5;
    let Some(own) = entry(path) else {
        return Vec::new();
    };
    let mode = fs::symlink_metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    match own.kind {
        EntryKind::Symlink(_) => vec![own],
        EntryKind::File if mode & READ != 0 => vec![own],
        EntryKind::Directory if mode & ENTER == ENTER => {
            let names = fs::read_dir(path).into_iter().flatten().flatten();
            let (mut parts, mut is_whole) = (Vec::new(), true);
            for name in names {
                let part = open_to_others(&name.path());
                is_whole &= matches!(&part[..], [only] if only.path == name.path());
                parts.extend(part);
            }
            if is_whole { vec![own] } else { parts }
        }
        EntryKind::File | EntryKind::Directory => Vec::new(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_without_every_id_has_an_ordinary_root() {
        assert!(!lacks_ids("         0          0 4294967295\n"));
        // Below `unshare -r` of an ordinary user and of root; a rootless container; one of a range; a part of all.
        for map in [
            "         0       1000          1\n",
            "0 0 1\n",
            "0 1000 1\n1 100000 65536\n",
            "0 100000 65536\n",
            "0 0 65536\n65537 65537 4294901758\n",
        ] {
            assert!(lacks_ids(map), "{map}");
        }
        // Without /proc nothing is known of it.
        assert!(!lacks_ids(""));
    }

    #[test]
    fn what_others_may_not_read_is_left_out() {
        let top = std::env::temp_dir().join(format!("mcp-open-{}", std::process::id()));
        fs::create_dir_all(top.join("certs/deep")).unwrap();
        fs::create_dir_all(top.join("private")).unwrap();
        fs::write(top.join("certs/a.pem"), "").unwrap();
        fs::write(top.join("private/key"), "").unwrap();
        std::os::unix::fs::symlink("certs", top.join("link")).unwrap();
        let mode = |path: &str, mode| {
            fs::set_permissions(top.join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        for (path, open) in [("", 0o755), ("certs", 0o755), ("certs/deep", 0o755)] {
            mode(path, open);
        }
        mode("certs/a.pem", 0o644);
        mode("private", 0o755);
        mode("private/key", 0o644);
        let found = |path: &str| -> Vec<PathBuf> {
            let mut found: Vec<_> =
                open_to_others(&top.join(path)).into_iter().map(|entry| entry.path).collect();
            found.sort();
            found
        };
        assert_eq!(found(""), [top.join("")]);
        mode("private", 0o710);
        assert_eq!(found(""), [top.join("certs"), top.join("link")]);
        mode("private", 0o755);
        mode("private/key", 0o640);
        fs::write(top.join("private/public"), "").unwrap();
        mode("private/public", 0o644);
        assert_eq!(found(""), [top.join("certs"), top.join("link"), top.join("private/public")]);
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn who_called_sudo_is_two_plain_numbers() {
        assert_eq!(invoker(Some("1000"), Some("100")), Some(Ids { uid: 1000, gid: 100 }));
        for (uid, gid) in [
            (None, None),
            (Some("1000"), None),
            (None, Some("1000")),
            (Some("0"), Some("0")),
            (Some("0"), Some("1000")),
            (Some(""), Some("1")),
            (Some("+1000"), Some("1000")),
            (Some("-1"), Some("1000")),
            (Some("1000 "), Some("1000")),
            (Some("0x10"), Some("16")),
            (Some("4294967295"), Some("1000")),
            (Some("99999999999999999999"), Some("1000")),
            (Some("1879076195"), Some("1000")),
        ] {
            assert_eq!(invoker(uid, gid), None, "{uid:?} {gid:?}");
        }
    }
}
