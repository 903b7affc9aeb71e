//! Requests and hosts of every kind. Paths come from few names, so that they nest.

use std::path::PathBuf;

use mcp_policy::{Bytes, Cores, Duration, Policy, Rate};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::core::host::{Caller, Fact, Ids, Rootless};
use crate::core::report::Answer;
use crate::core::request::{Home, Link, Place, PlaceKind, Request, Stdio};
use crate::linux::facts::{
    CgroupFacts, CgroupMeans, EntryKind, HeldCgroup, LinuxFacts, SystemEntry,
};
use crate::linux::plan::sample;

/// Everything that resolving lets through: never /, /home, /proc or /dev, and of the temporary
/// places only what is below them.
pub fn path() -> impl Strategy<Value = PathBuf> {
    let whole = ["/srv", "/etc", "/usr", "/var", "/etc/ssl", "/usr/share"];
    let above = ["/tmp", "/home", "/home/mcp", "/var/tmp", "/run"];
    let base =
        prop_oneof![(select(whole.to_vec()), 0..=3usize), (select(above.to_vec()), 1..=3usize),];
    (base, vec(select(&["a", "b"][..]), 3)).prop_map(|((base, depth), names)| {
        names.into_iter().take(depth).fold(PathBuf::from(base), |path, name| path.join(name))
    })
}

/// A name that no other path goes through is a file.
pub fn place() -> impl Strategy<Value = Place> {
    (path(), any::<bool>()).prop_map(|(path, is_file)| match is_file {
        true => Place { path: path.join("file"), kind: PlaceKind::File },
        false => Place { path, kind: PlaceKind::Directory },
    })
}

fn places() -> impl Strategy<Value = Vec<Place>> {
    vec(place(), 0..5)
}

/// Links never lead on from a place: places have none in their path.
fn links() -> impl Strategy<Value = Vec<Link>> {
    let link = |(at, to): (PathBuf, PathBuf)| Link { at: at.join("link"), to };
    vec((path(), path()).prop_map(link), 0..3)
}

/// What a policy asks for beyond its grants, each with even odds.
#[derive(Debug, Clone)]
struct Asked {
    deny: bool,
    subprocess: bool,
    network: u8,
    limits: [bool; 8],
}

fn asked() -> impl Strategy<Value = Asked> {
    (any::<bool>(), any::<bool>(), 0..5u8, any::<[bool; 8]>())
        .prop_map(|(deny, subprocess, network, limits)| Asked { deny, subprocess, network, limits })
}

fn policy(asked: &Asked) -> Policy {
    sample::policy(|flags| {
        if asked.deny {
            flags.deny("**/.env");
        }
        if !asked.subprocess {
            flags.no_subprocess();
        }
        match asked.network {
            0 => flags.network_host(),
            1 => flags.allow_net("api.example.com:443".parse().unwrap()),
            2 => flags.allow_unix("/run/x.sock"),
            3 => flags.listen(8080),
            _ => flags,
        };
        let [memory, cpu, cpu_time, io, processes, open_files, file_size, timeout] = asked.limits;
        flags
            .memory(memory.then(|| Bytes::mib(64)))
            .cpu(cpu.then(|| Cores::from_millicores(500)))
            .cpu_time(cpu_time.then(|| Duration::from_millis(1500)))
            .io(io.then(|| Rate(Bytes::mib(10))))
            .processes(processes.then_some(64))
            .open_files(open_files.then_some(256))
            .file_size(file_size.then(|| Bytes::gib(1)))
            .address_space((memory != cpu).then(|| Bytes::gib(4)))
            .timeout(timeout.then(|| Duration::from_secs(300)));
    })
}

fn stdio() -> impl Strategy<Value = Stdio> {
    prop_oneof![
        Just(Stdio::Direct),
        Just(Stdio::ReadOnlyFile("/srv/input".into())),
        Just(Stdio::Terminal),
        Just(Stdio::Relayed),
        Just(Stdio::Filtered),
    ]
}

pub fn request() -> impl Strategy<Value = Request> {
    let home = prop_oneof![Just(Home::Ephemeral), Just(Home::Kept("/data/home".into()))];
    let stdio = [stdio(), stdio(), stdio()];
    (asked(), places(), places(), places(), links(), home, stdio).prop_map(
        |(asked, shown, read, write, links, home, stdio)| Request {
            policy: policy(&asked),
            shown,
            links,
            read,
            write,
            home,
            stdio,
            ..sample::request()
        },
    )
}

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        2 => Just(Fact::Works),
        2 => Just(Fact::Assumed),
        1 => Just(Fact::Fails { why: "Operation not permitted".to_owned() }),
    ]
}

fn entries() -> impl Strategy<Value = Vec<SystemEntry>> {
    let all = vec![
        sample::entry("/usr", EntryKind::Directory),
        sample::entry("/bin", EntryKind::Symlink("usr/bin".into())),
        sample::entry("/lib", EntryKind::Directory),
        sample::entry("/etc/alternatives", EntryKind::Directory),
        sample::entry("/etc/localtime", EntryKind::File),
        sample::entry("/etc/os-release", EntryKind::Symlink("../usr/lib/os-release".into())),
        sample::entry("/etc/ssl", EntryKind::Directory),
    ];
    subsequence(all, 0..=7)
}

/// Some controllers, some disks, or nothing.
fn cgroup() -> impl Strategy<Value = CgroupFacts> {
    let controllers = subsequence(vec!["memory", "pids", "cpu", "io"], 1..=4);
    let held = controllers.prop_map(|controllers| HeldCgroup {
        at: "/sys/fs/cgroup/mcp/mcp-01234567".into(),
        means: CgroupMeans::TopLevel,
        controllers: controllers.into_iter().map(str::to_owned).collect(),
    });
    let disks = subsequence(vec!["8:0".to_owned(), "253:0".to_owned()], 0..=2);
    let unbounded = subsequence(vec![PathBuf::from("/srv/a")], 0..=1);
    (option::of(held), disks, unbounded).prop_map(|(held, disks, unbounded)| CgroupFacts {
        mount: Some("/sys/fs/cgroup".into()),
        why_not: held.is_none().then(|| "not delegated".to_owned()),
        held,
        disks,
        unbounded,
    })
}

/// Every kind of host.
pub fn facts() -> impl Strategy<Value = LinuxFacts> {
    let kernel = select(&["4.18.0", "5.13.19", "5.14.0-70.el9", "6.8.0-45-generic", "odd"][..]);
    let walls = (fact(), fact(), fact(), fact(), fact());
    let stand_in = option::weighted(0.8, Just(Ids { uid: 65534, gid: 65534 }));
    let rootless = Some(Rootless::OrdinaryUser);
    let caller = select(vec![(0u32, None), (0, rootless), (0, Some(Rootless::Root)), (1000, None)]);
    (caller, kernel, walls, 0..12u32, entries(), cgroup(), stand_in, fact()).prop_map(
        |((uid, rootless), kernel, walls, landlock_abi, entries, cgroup, stand_in, listener)| {
            let (namespaces, private_root, network_namespace, own_proc, seccomp) = walls;
            let usual = sample::facts(uid);
            LinuxFacts {
                caller: Caller { rootless, ..usual.caller },
                kernel: kernel.to_owned(),
                landlock_abi,
                cgroup,
                namespaces,
                private_root,
                network_namespace,
                own_proc,
                seccomp,
                listener,
                stand_in: stand_in.filter(|_| uid == 0),
                entries,
                ..usual
            }
        },
    )
}

/// Hosts where a root of its own can be made.
pub fn namespaced() -> impl Strategy<Value = LinuxFacts> {
    facts().prop_map(|facts| LinuxFacts {
        namespaces: Fact::Works,
        private_root: Fact::Assumed,
        ..facts
    })
}

/// Hosts where it cannot.
pub fn plain() -> impl Strategy<Value = LinuxFacts> {
    facts().prop_map(|facts| LinuxFacts {
        namespaces: Fact::Fails { why: "No space left on device".to_owned() },
        ..facts
    })
}

/// An answer to each of the first `steps` steps, or none. Some come twice.
pub fn answers(steps: usize) -> impl Strategy<Value = Vec<(usize, Answer)>> {
    let answer = prop_oneof![
        6 => Just(Answer::Confirmed(String::new())),
        3 => Just(Answer::Confirmed("seen".to_owned())),
        1 => Just(Answer::Less("less".to_owned())),
    ];
    let once = vec(option::weighted(0.95, answer.clone()), steps);
    let again = option::weighted(0.2, (0..steps, answer));
    (once, again).prop_map(|(once, again)| {
        let once = once.into_iter().enumerate().filter_map(|(step, answer)| Some((step, answer?)));
        once.chain(again).collect()
    })
}
