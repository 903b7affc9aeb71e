//! What a sandboxed program sees of the system: which pieces are shown, which texts are
//! written, how grants become binds. Pure; which pieces exist comes from the host facts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mcp_policy::NetworkMode;

use crate::core::host::Rootless;
use crate::core::lexical_path::lexical;
use crate::core::request::{
    HOME, Home, LayerWriting, Link, Place, PlaceKind, Request, Script, WritableLayer,
};
use crate::linux::facts::{EntryKind, LinuxFacts, SystemEntry};
use crate::linux::landlock;
use crate::linux::step::{Access, Owner, Placed, ProcView};
use crate::linux::well_known::RESOLVER;

/// Parts of /proc that hold secrets of the host: its memory, the keys of its users. What only
/// describes the machine stays, because programs read it; all of /proc is read-only.
pub const PROC_HIDDEN: [&str; 3] = ["kcore", "keys", "key-users"];

/// What the kernel tells the machine's root alone, which the command then is, without its capabilities.
const PROC_OF_ROOT: [&str; 11] = [
    "allocinfo",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "pagetypeinfo",
    "sched_debug",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "vmallocinfo",
];

pub const HOSTNAME: &str = "mcp";

/// A link to /tmp, unless something is to be placed below it.
const VAR_TMP: &str = "/var/tmp";

/// The steps that fill a new root, parents before children.
pub fn steps(request: &Request, facts: &LinuxFacts, uid: u32, gid: u32) -> Vec<Placed> {
    let mut steps = Vec::new();
    for entry in &facts.entries {
        steps.push(match &entry.kind {
            EntryKind::Symlink(to) => Placed::Link { at: entry.path.clone(), to: to.clone() },
            EntryKind::Directory => show(&entry.path, PlaceKind::Directory),
            EntryKind::File => show(&entry.path, PlaceKind::File),
        });
    }
    for (at, text) in texts(uid, gid) {
        steps.push(Placed::Text { at: PathBuf::from(at), text });
    }
    if request.policy.network.mode.value == NetworkMode::Isolated {
        let text = format!("nameserver {}\noptions timeout:5 attempts:2\n", RESOLVER.ip());
        steps.push(Placed::Text { at: "/etc/resolv.conf".into(), text });
    }
    for (at, text) in &request.texts {
        if !facts.entries.iter().any(|entry| at.starts_with(&entry.path)) {
            steps.push(Placed::Text { at: at.clone(), text: text.clone() });
        }
    }
    let binds = binds(request, facts);
    for script in scripts(request, facts, &binds) {
        steps.push(Placed::Script { at: script.at.clone(), text: script.text.clone() });
    }
    let scratch = scratch(request, &binds);
    let links = links(request, facts, &binds, &scratch);
    steps.push(Placed::Devices);
    steps.push(Placed::Scratch { places: scratch });
    steps.push(Placed::Directory { at: "/run".into() });
    let owner = if facts.caller.is_root() { Owner::CallerMapped } else { Owner::AsOnHost };
    if let Home::Kept(from) = &request.home
        && !binds.contains_key(Path::new(HOME))
    {
        steps.push(Placed::Bind {
            from: from.clone(),
            at: HOME.into(),
            kind: PlaceKind::Directory,
            access: Access::ReadWrite,
            owner,
        });
    }
    steps.extend(links.into_iter().map(|Link { at, to }| Placed::Link { at, to }));
    let layer = layer(request, &binds, owner);
    for (path, (kind, access)) in binds {
        steps.push(Placed::Bind { from: path.clone(), at: path, kind, access, owner });
    }
    steps.extend(layer);
    // Over what a grant may show there: the mount is what Landlock's rule is for.
    for Place { path, kind } in &request.unix {
        steps.push(Placed::Bind {
            from: path.clone(),
            at: path.clone(),
            kind: *kind,
            access: Access::ReadOnly,
            owner,
        });
    }
    let mut hidden = PROC_HIDDEN.to_vec();
    if facts.caller.rootless == Some(Rootless::Root) {
        hidden.extend(PROC_OF_ROOT);
    }
    steps.push(Placed::Proc { hidden, view: proc_view(facts) });
    steps
}

pub fn proc_view(facts: &LinuxFacts) -> ProcView {
    match facts.own_proc.usable() {
        true if facts.caller.is_rootless() => ProcView::OwnTraceable,
        true => ProcView::Own,
        false if facts.landlock_abi >= landlock::USABLE_FROM => ProcView::Host,
        false => ProcView::Empty,
    }
}

/// Whether `path` can be reached inside, at the same place as outside, or the sandbox has something of its own there.
pub fn is_visible(path: &Path, request: &Request, facts: &LinuxFacts) -> bool {
    let own = ["/dev", "/proc", HOME].iter().any(|own| path.starts_with(own))
        || ["/", "/tmp", VAR_TMP, "/run", "/home"].iter().any(|own| path == Path::new(own))
        || texts(0, 0).iter().any(|(at, _)| path == Path::new(at))
        || request.texts.iter().any(|(at, _)| path == at)
        || request.scripts.iter().any(|script| path == script.at);
    let system = facts.entries.iter().any(|entry| path.starts_with(&entry.path));
    own || system || binds(request, facts).keys().any(|bind| path.starts_with(bind))
}

/// Grants and shown pieces as binds. Write wins over read, and what an ancestor already gives
/// is left out: a further grant must never take something away.
fn binds(request: &Request, facts: &LinuxFacts) -> BTreeMap<PathBuf, (PlaceKind, Access)> {
    let in_system = |place: &&Place| {
        let shows = |entry: &SystemEntry| !matches!(entry.kind, EntryKind::Symlink(_));
        facts.entries.iter().any(|entry| shows(entry) && place.path.starts_with(&entry.path))
    };
    // The system is shown with the host's owners: what only root may read in it stays closed to
    // root's stand-in, unless it was granted.
    let shown = request.shown.iter().filter(|place| !in_system(place));
    let read = request.read.iter().filter(|place| facts.caller.is_root() || !in_system(place));
    let read_only = shown.chain(read).map(|place| (place, Access::ReadOnly));
    let write = request.write.iter().map(|place| (place, Access::ReadWrite));
    let mut wanted: BTreeMap<PathBuf, (PlaceKind, Access)> = BTreeMap::new();
    for (Place { path, kind }, access) in read_only.chain(write) {
        let entry = wanted.entry(path.clone()).or_insert((*kind, access));
        entry.1 = entry.1.max(access);
    }
    let mut kept: BTreeMap<PathBuf, (PlaceKind, Access)> = BTreeMap::new();
    for (path, (kind, access)) in wanted {
        let given = path.ancestors().skip(1).find_map(|a| kept.get(a)).map(|(_, access)| *access);
        if given.is_none_or(|given| given < access) {
            kept.insert(path, (kind, access));
        }
    }
    kept
}

/// The layer over something read-only. None where a person granted or denied something in it: that is what counts
/// then, and the layer would cover it.
fn layer(
    request: &Request,
    binds: &BTreeMap<PathBuf, (PlaceKind, Access)>,
    owner: Owner,
) -> Option<Placed> {
    let WritableLayer { over, kept_in, writing } = request.layer.as_ref()?;
    let shown = over.ancestors().find_map(|path| binds.get(path));
    let is_inside = |path: &Path| path.starts_with(over);
    let something_inside = binds.keys().any(|path| is_inside(path) && path != over)
        || request.unix.iter().any(|place| is_inside(&place.path))
        || request.denied.iter().any(|denied| is_inside(&denied.path));
    let fits = shown.is_some_and(|(_, access)| *access == Access::ReadOnly) && !something_inside;
    let access = match writing {
        LayerWriting::Allowed => Access::ReadWrite,
        LayerWriting::OfAnotherRun => Access::ReadOnly,
    };
    fits.then(|| Placed::Layer { at: over.clone(), kept_in: kept_in.clone(), access, owner })
}

/// The links on the way to shown places, where nothing shown holds them already.
fn links(
    request: &Request,
    facts: &LinuxFacts,
    binds: &BTreeMap<PathBuf, (PlaceKind, Access)>,
    scratch: &[(PathBuf, u32)],
) -> BTreeSet<Link> {
    let there = |at: &Path| {
        let system = facts.entries.iter().any(|entry| at.starts_with(&entry.path));
        system || binds.keys().any(|bind| at.starts_with(bind))
    };
    let own: Vec<&Path> = scratch
        .iter()
        .map(|(at, _)| at.as_path())
        .chain(["/run", VAR_TMP].map(Path::new))
        .collect();
    let mut links = BTreeSet::new();
    for Link { at, to } in &request.links {
        if !own.iter().any(|own| own.starts_with(at)) {
            links.insert(Link { at: at.clone(), to: to.clone() });
            continue;
        }
        // As on hosts where /home leads to /var/home: it has to be a directory in here, so what
        // is needed of it is linked one level below.
        let target = lexical(&at.parent().unwrap_or(at).join(to));
        let needed = binds.keys().chain(request.links.iter().map(|link| &link.at));
        let names = needed.filter_map(|path| path.strip_prefix(&target).ok()?.iter().next());
        links.extend(names.map(|name| Link { at: at.join(name), to: target.join(name) }));
    }
    let var_tmp = Link { at: VAR_TMP.into(), to: "/tmp".into() };
    if !scratch.iter().any(|(at, _)| *at == var_tmp.at) {
        links.insert(var_tmp);
    }
    links.retain(|link| !there(&link.at));
    links
}

/// Where something of the host is shown, that is what counts.
fn scripts<'a>(
    request: &'a Request,
    facts: &LinuxFacts,
    binds: &BTreeMap<PathBuf, (PlaceKind, Access)>,
) -> impl Iterator<Item = &'a Script> {
    let is_shown = |at: &Path| {
        facts.entries.iter().any(|entry| at.starts_with(&entry.path))
            || binds.keys().any(|bind| at.starts_with(bind) || bind.starts_with(at))
    };
    request
        .scripts
        .iter()
        .filter(move |script| !is_shown(&script.at))
        .collect::<Vec<_>>()
        .into_iter()
}

fn show(path: &Path, kind: PlaceKind) -> Placed {
    Placed::Show { path: path.to_owned(), kind }
}

/// A grant of such a place itself puts the host's in its stead.
fn scratch(
    request: &Request,
    binds: &BTreeMap<PathBuf, (PlaceKind, Access)>,
) -> Vec<(PathBuf, u32)> {
    let mut places = vec![("/tmp".into(), 0o1777), ("/dev/shm".into(), 0o1777)];
    if request.home == Home::Ephemeral {
        places.push((HOME.into(), 0o700));
    }
    let var_tmp = Path::new(VAR_TMP);
    let below = |path: &Path| path.starts_with(var_tmp) && path != var_tmp;
    let linked = |link: &Link| below(&link.at) || var_tmp.starts_with(&link.at);
    if binds.keys().any(|bind| below(bind)) || request.links.iter().any(linked) {
        places.push((VAR_TMP.into(), 0o1777));
    }
    places
}

fn texts(uid: u32, gid: u32) -> [(&'static str, String); 6] {
    [
        (
            "/etc/passwd",
            format!(
                "root:x:0:0:root:/root:/usr/sbin/nologin\n\
                 mcp:x:{uid}:{gid}:mcp:{HOME}:/bin/sh\n\
                 nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        ("/etc/group", format!("root:x:0:\nmcp:x:{gid}:\nnogroup:x:65534:\n")),
        ("/etc/hosts", format!("127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n")),
        ("/etc/protocols", PROTOCOLS.to_owned()),
        ("/etc/services", services()),
        // No LDAP, no systemd, no D-Bus: none of them is inside.
        (
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"
                .to_owned(),
        ),
    ]
}

#[cfg(test)]
mod tests;

const PROTOCOLS: &str =
    "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6 41 IPv6\nipv6-icmp 58 IPv6-ICMP\n";

/// The ports that programs ask for by name.
const SERVICES: [(&str, u16); 20] = [
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("pop3", 110),
    ("ntp", 123),
    ("imap2", 143),
    ("ldap", 389),
    ("https", 443),
    ("submissions", 465),
    ("submission", 587),
    ("ldaps", 636),
    ("imaps", 993),
    ("pop3s", 995),
    ("mysql", 3306),
    ("postgresql", 5432),
    ("amqp", 5672),
    ("redis", 6379),
];

fn services() -> String {
    SERVICES.iter().map(|(name, port)| format!("{name} {port}/tcp\n{name} {port}/udp\n")).collect()
}
