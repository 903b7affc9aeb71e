//! From observations to proposals: grouped, without what is covered, and without what is never proposed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use mcp_policy::NetRule;

use crate::grant::Grant;
use crate::observation::{Access, Concern, Evidence, FileKind, Observations, PathSeen};
use crate::sensitive::{net_reason, path_reason, socket_reason};

/// From this number of files in one directory on, the directory itself is proposed.
const DIRECT: usize = 3;
/// From this number of files at any depth below a directory on, it is proposed as well.
const BELOW: usize = 6;

/// Files that an interpreter runs: what lies beside them belongs to them.
const CODE: &[&str] = &[
    "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx", "py", "pyc", "rb", "pl", "php", "lua",
    "sh", "bash", "jar", "wasm",
];

/// Directories of the system: writing is never proposed there.
const SYSTEM: &[&str] = &[
    "/usr", "/etc", "/bin", "/lib", "/lib32", "/lib64", "/sbin", "/opt", "/nix", "/boot", "/System",
];

/// Whether sensitive places may be proposed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sensitive {
    /// They are named, and not proposed.
    #[default]
    Withheld,
    /// A person asked for them (`--sensitive`).
    Proposed,
}

/// What proposals depend on besides the observations.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The caller's home directory.
    pub home: Option<&'a Path>,
    /// Whether sensitive places may be proposed.
    pub sensitive: Sensitive,
    /// What was granted when the observations were made.
    pub granted: &'a [Grant],
}

/// One line that would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// What would be given.
    pub grant: Grant,
    /// Why.
    pub evidence: Evidence,
    /// The files that were wanted, where a directory stands for them, each with its own evidence.
    pub files: BTreeMap<PathBuf, Evidence>,
    /// The directory that it lies in, where that may be granted in its place.
    pub directory: Option<PathBuf>,
}

/// Something that was asked for and is not proposed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Withheld {
    /// The path, destination or name.
    pub what: String,
    /// Why not.
    pub why: &'static str,
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposals {
    /// Sorted, none covered by another.
    pub proposed: Vec<Proposal>,
    /// Sorted, each once.
    pub withheld: Vec<Withheld>,
}

/// Proposes what was missing.
#[must_use]
pub fn propose(seen: &Observations, scene: &Scene<'_>) -> Proposals {
    let same_as = |seen: &PathSeen| Some((seen.path.clone(), seen.same_as.clone()?));
    let same = seen.paths.iter().filter_map(same_as).collect();
    let mut found = Found { scene, same, wanted: BTreeMap::new(), withheld: BTreeSet::new() };
    for path in &seen.paths {
        found.path(path);
    }
    for host in &seen.hosts {
        found.host(&host.destination, &host.evidence);
    }
    for variable in &seen.variables {
        found.variable(&variable.name, variable.concern, &variable.evidence);
    }
    found.finish(&seen.paths)
}

struct Found<'a> {
    scene: &'a Scene<'a>,
    /// Places by their other names.
    same: BTreeMap<PathBuf, PathBuf>,
    wanted: BTreeMap<Grant, (Evidence, BTreeMap<PathBuf, Evidence>)>,
    withheld: BTreeSet<Withheld>,
}

impl Found<'_> {
    fn path(&mut self, seen: &PathSeen) {
        let PathSeen { path, same_as, kind, access, evidence } = seen;
        let is_write = matches!(access, Access::Write | Access::WriteEntries);
        if is_write && self.is_given(&Grant::Write(path.clone())) {
            self.withhold(path.display(), "protected inside what may be written (--unprotect)");
            return;
        }
        let (grant, reason) = match access {
            Access::Connect => {
                let reason = self.reason(path, socket_reason);
                (Grant::Unix(path.clone()), reason)
            }
            Access::Write | Access::WriteEntries if is_of_system(path) => {
                self.withhold(path.display(), "the system's own files");
                return;
            }
            Access::Write | Access::WriteEntries => {
                (Grant::Write(path.clone()), self.reason(path, path_reason))
            }
            Access::Look | Access::Read => {
                (Grant::Read(path.clone()), self.reason(path, path_reason))
            }
        };
        if let Some(why) = reason.filter(|_| !self.is_offered(path)) {
            // A link to credentials is named by them.
            let is_harmless = path_reason(path, self.scene.home).is_none();
            let what = same_as.as_ref().filter(|_| is_harmless).unwrap_or(path);
            self.withhold(what.display(), why);
            return;
        }
        let script_home = self.script_home(path, *kind, *access);
        self.want(script_home.unwrap_or(grant), evidence, Some(path));
    }

    /// The directory of a script, which reads what lies beside it; or the directory of installed modules, which read each other.
    fn script_home(&self, path: &Path, kind: FileKind, access: Access) -> Option<Grant> {
        if matches!(access, Access::Look | Access::Read)
            && let Some(modules) = modules(path).filter(|modules| self.may_group(modules))
        {
            return Some(Grant::Read(modules));
        }
        let is_read = matches!(access, Access::Look | Access::Read) && kind == FileKind::File;
        let ending = path.extension()?.to_str()?.to_lowercase();
        let directory = path.parent()?;
        (is_read && CODE.contains(&ending.as_str()) && self.may_group(directory))
            .then(|| Grant::Read(directory.to_owned()))
    }

    fn host(&mut self, destination: &str, evidence: &Evidence) {
        let Ok(rule) = destination.parse::<NetRule>() else {
            self.withhold(destination, "no destination that a rule can name");
            return;
        };
        match net_reason(&rule).filter(|_| self.scene.sensitive == Sensitive::Withheld) {
            Some(why) => self.withhold(destination, why),
            None => self.want(Grant::Net(rule), evidence, None),
        }
    }

    fn variable(&mut self, name: &str, concern: Option<Concern>, evidence: &Evidence) {
        let Ok(parsed) = name.parse() else { return };
        let is_offered = self.scene.sensitive == Sensitive::Proposed;
        match concern {
            Some(Concern::Credential) if is_offered => {
                self.want(Grant::Secret(parsed), evidence, None);
            }
            Some(Concern::Credential) => {
                self.withhold(name, "a variable that holds a credential");
            }
            Some(Concern::Injection) if !is_offered => {
                self.withhold(name, "a variable that makes programs run other code");
            }
            _ => self.want(Grant::Variable(parsed), evidence, None),
        }
    }

    /// Why a place is not proposed, by any of its names. Below a directory with another name each place has one too.
    fn reason(
        &self,
        path: &Path,
        judge: impl Fn(&Path, Option<&Path>) -> Option<&'static str>,
    ) -> Option<&'static str> {
        let other = |(seen, same): (&PathBuf, &PathBuf)| {
            let below = seen.strip_prefix(path).ok()?;
            let is_below = below.as_os_str().is_empty() || same.ends_with(below);
            let other = same.ancestors().nth(below.components().count()).filter(|_| is_below)?;
            judge(other, self.scene.home)
        };
        let below = || {
            let from = self.same.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
            from.take_while(|(seen, _)| seen.starts_with(path))
        };
        judge(path, self.scene.home).or_else(|| below().find_map(other))
    }

    /// With `--sensitive` everything is, but for what no grant is meant for.
    fn is_offered(&self, path: &Path) -> bool {
        let never = path.parent().is_none()
            || ["/proc", "/sys", "/dev"].iter().any(|kernel| path.starts_with(kernel));
        self.scene.sensitive == Sensitive::Proposed && !never
    }

    fn withhold(&mut self, what: impl ToString, why: &'static str) {
        self.withheld.insert(Withheld { what: what.to_string(), why });
    }

    fn want(&mut self, grant: Grant, evidence: &Evidence, path: Option<&Path>) {
        let (kept, files) = self.wanted.entry(grant).or_default();
        kept.add(evidence);
        if let Some(path) = path {
            files.entry(path.to_owned()).or_default().add(evidence);
        }
    }

    fn is_given(&self, grant: &Grant) -> bool {
        self.scene.granted.iter().any(|given| given.covers(grant))
    }

    /// Whether a directory may stand for files in it.
    fn may_group(&self, directory: &Path) -> bool {
        self.reason(directory, path_reason).is_none() && !is_of_system(directory)
    }

    fn finish(mut self, seen: &[PathSeen]) -> Proposals {
        self.drop_ways(seen);
        self.group();
        let all: Vec<Grant> = self.wanted.keys().cloned().collect();
        let is_covered = |grant: &Grant| {
            all.iter().any(|other| other != grant && other.covers(grant)) || self.is_given(grant)
        };
        let mut proposed: Vec<Proposal> = Vec::new();
        let mut covered = Vec::new();
        for (grant, (evidence, files)) in &self.wanted {
            let directory = path_of(grant).and_then(Path::parent);
            let directory =
                directory.filter(|directory| self.reason(directory, path_reason).is_none());
            let proposal = Proposal {
                grant: grant.clone(),
                evidence: evidence.clone(),
                files: files.clone(),
                directory: directory.map(Path::to_owned),
            };
            if is_covered(grant) { covered.push(proposal) } else { proposed.push(proposal) }
        }
        for gone in covered {
            if let Some(kept) = proposed.iter_mut().find(|kept| kept.grant.covers(&gone.grant)) {
                kept.evidence.add(&gone.evidence);
                add_files(&mut kept.files, gone.files);
            }
        }
        for proposal in &mut proposed {
            // A path stands for itself.
            proposal.files.retain(|file, _| Some(file.as_path()) != path_of(&proposal.grant));
        }
        Proposals { proposed, withheld: self.withheld.into_iter().collect() }
    }

    /// Programs look at every directory on the way to a file. These come with what is granted below them.
    fn drop_ways(&mut self, seen: &[PathSeen]) {
        let targets: Vec<PathBuf> =
            self.wanted.keys().filter_map(path_of).map(Path::to_owned).collect();
        let given: Vec<PathBuf> =
            self.scene.granted.iter().filter_map(path_of).map(Path::to_owned).collect();
        let looked_at = |path: &Path| {
            let mut all = seen.iter().filter(|seen| seen.path == path).peekable();
            all.peek().is_some() && all.all(|seen| seen.access == Access::Look)
        };
        let is_way = |path: &Path| {
            looked_at(path)
                && targets.iter().chain(&given).any(|to| to != path && to.starts_with(path))
        };
        self.wanted.retain(|grant, (_, files)| {
            let stands_for_itself = |path: &Path| files.keys().all(|file| file == path);
            !path_of(grant).is_some_and(|path| stands_for_itself(path) && is_way(path))
        });
        self.withheld.retain(|withheld| !is_way(Path::new(&withheld.what)));
    }

    /// Many files of one directory stand for the directory.
    fn group(&mut self) {
        let mut below: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (grant, (_, files)) in &self.wanted {
            let Grant::Read(path) = grant else { continue };
            // A grant of a directory is one already.
            if files.contains_key(path) {
                for above in path.ancestors().skip(1) {
                    below.entry(above.to_owned()).or_default().insert(path.clone());
                }
            }
        }
        let mut directories: Vec<_> = below.into_iter().collect();
        // The deepest first: the smallest directory that holds them.
        directories.sort_by_key(|(path, _)| std::cmp::Reverse(path.components().count()));
        for (directory, files) in directories {
            let files: Vec<PathBuf> = files
                .into_iter()
                .filter(|file| self.wanted.contains_key(&Grant::Read(file.clone())))
                .collect();
            let direct = files.iter().filter(|file| file.parent() == Some(&directory)).count();
            if (direct < DIRECT && files.len() < BELOW) || !self.may_group(&directory) {
                continue;
            }
            let mut whole = (Evidence::default(), BTreeMap::new());
            for file in files {
                if let Some((evidence, files)) = self.wanted.remove(&Grant::Read(file)) {
                    whole.0.add(&evidence);
                    add_files(&mut whole.1, files);
                }
            }
            let (kept, all) = self.wanted.entry(Grant::Read(directory)).or_default();
            kept.add(&whole.0);
            add_files(all, whole.1);
        }
    }
}

fn add_files(to: &mut BTreeMap<PathBuf, Evidence>, files: BTreeMap<PathBuf, Evidence>) {
    for (file, evidence) in files {
        to.entry(file).or_default().add(&evidence);
    }
}

fn path_of(grant: &Grant) -> Option<&Path> {
    match grant {
        Grant::Read(path) | Grant::Write(path) | Grant::Unix(path) => Some(path),
        _ => None,
    }
}

/// The outermost directory of installed modules that a path lies in.
fn modules(path: &Path) -> Option<PathBuf> {
    let is_modules = |part: &Path| {
        let name = part.file_name().unwrap_or_default();
        ["node_modules", "site-packages", "dist-packages"].iter().any(|known| name == *known)
    };
    path.ancestors().filter(|part| is_modules(part)).last().map(Path::to_owned)
}

fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

#[cfg(test)]
mod tests;
