//! A request and a host as they usually are, for tests to change.

use mcp_policy::{Defaults, Layer, Policy};

use crate::core::host::{Caller, Fact, Ids};
use crate::core::request::Request;
use crate::linux::facts::{CgroupFacts, EntryKind, LinuxFacts, SystemEntry};

pub fn policy(flags: impl FnOnce(&mut mcp_policy::LayerBuilder)) -> Policy {
    let mut builder = Layer::command_line("/srv", Some("/home/me".into()));
    flags(&mut builder);
    Policy::merge(&[builder.build().unwrap()], Defaults::run()).unwrap()
}

/// `true`, with nothing granted.
pub fn request() -> Request {
    Request::bare(policy(|_| {}), "/usr/bin/true".into(), vec!["true".into()])
}

pub fn entry(path: &str, kind: EntryKind) -> SystemEntry {
    SystemEntry { path: path.into(), kind }
}

/// A recent kernel that refuses nothing, with a merged /usr.
pub fn facts(uid: u32) -> LinuxFacts {
    LinuxFacts {
        system: "Linux".to_owned(),
        kernel: "6.8.0-45-generic".to_owned(),
        architecture: "x86_64".to_owned(),
        caller: Caller { uid, gid: uid, invoker: None, rootless: None },
        namespaces: Fact::Works,
        private_root: Fact::Works,
        network_namespace: Fact::Works,
        own_proc: Fact::Works,
        mapped_trees: Fact::Works,
        seccomp: Fact::Works,
        listener: Fact::Works,
        installing: Fact::Works,
        landlock_abi: 4,
        cgroup: CgroupFacts::default(),
        run_directory: "/tmp/mcp-run".into(),
        texts: vec!["/etc/passwd".into()],
        stand_in: (uid == 0).then_some(Ids { uid: 65534, gid: 65534 }),
        entries: vec![
            entry("/usr", EntryKind::Directory),
            entry("/bin", EntryKind::Symlink("usr/bin".into())),
        ],
    }
}
