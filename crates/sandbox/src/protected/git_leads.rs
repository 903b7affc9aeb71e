//! Where git's files lead: from the git directories, `.git` files and work trees that a search found, and from the
//! user's own settings, to what git reads as settings or runs. Shared by all systems.
//!
//! A relative path counts in every directory that git may run in: each work tree, linked or not, and the git
//! directory itself, where the hooks of a push run. What lies outside of the places that may be written is read as well,
//! because it can lead back into them.
//!
//! After a run only such settings are read that the command could not change; new ones are removed or harmless.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::git;
use super::git_config::pathname::{Pathname, expand, path, places};
use super::git_config::programs::{self, HOOKS, ValueNames};
use super::git_config::source::Settings;
use super::link_chain::link_chain;
use super::user_settings::UserSettings;
use super::{GIT_LINK, GIT_SETTINGS, inner_links, is_named_git};

const RUNS: &str = "git runs what it holds";
const COPIES: &str = "git copies hooks from it into new repositories";
/// A link that leads to something protected: it is closed itself, not all that it leads to.
pub const ON_THE_WAY: &str = "it leads to something that is protected";

/// Somewhere that git goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lead {
    /// Without links above it.
    pub path: PathBuf,
    pub role: Role,
    pub why: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A git directory.
    Git,
    /// Closed with all that is in it.
    Whole,
    /// A file; a directory of that name does nothing.
    File,
}

/// Which settings a search believes.
#[derive(Debug, Clone, Copy)]
pub enum Believe<'a> {
    /// Before a run: all.
    All,
    /// After it: those outside of what may be written, and those that were read-only.
    ReadOnly(&'a BTreeSet<PathBuf>),
}

impl Believe<'_> {
    fn is_closed(self, path: &Path) -> bool {
        match self {
            Believe::All => true,
            Believe::ReadOnly(known) => path.ancestors().any(|above| known.contains(above)),
        }
    }
}

/// The files of git that a search found.
pub struct GitFiles<'a> {
    /// Git directories, with the top of the work tree where the name says it.
    pub repositories: &'a BTreeMap<PathBuf, Option<PathBuf>>,
    /// `.git` files and links.
    pub git_links: Vec<PathBuf>,
    /// Other protected links, and why they are.
    pub links: Vec<(PathBuf, &'static str)>,
    /// Directories that are closed with all that is in them, and why they are: links in them are followed.
    pub directories: Vec<(PathBuf, &'static str)>,
    /// What may be written.
    pub roots: &'a [&'a Path],
    /// What may be changed although it is on the list.
    pub allowed: &'a [PathBuf],
    pub believe: Believe<'a>,
}

/// Where it leads.
#[derive(Default)]
pub struct Leads {
    pub leads: BTreeSet<Lead>,
    pub unreadable: Vec<Unreadable>,
}

/// Settings that neither git nor we understand: we do not know what they name.
#[derive(Debug)]
pub struct Unreadable {
    /// The git directory that they are of, or the user's own.
    pub directory: Option<PathBuf>,
    pub file: PathBuf,
    pub why: String,
}

impl Unreadable {
    /// A directory that only looks like git's and that nothing leads to, such as one that a test suite carries about, is
    /// closed as a whole, and stops no run.
    pub fn whole(&self) -> Option<&Path> {
        let is_named =
            |directory: &Path| directory.iter().any(|part| part.eq_ignore_ascii_case(".git"));
        self.directory.as_deref().filter(|directory| !is_named(directory))
    }
}

/// Follows all of it, as far as it can be followed without another search.
pub fn follow(found: &GitFiles<'_>, user: &UserSettings) -> Leads {
    let mut follower = Follower {
        found,
        user,
        trees: BTreeMap::new(),
        read: BTreeMap::new(),
        closed: Vec::new(),
        leads: Leads::default(),
    };
    follower.gather();
    follower.settings();
    follower.links_inside();
    follower.leads
}

struct Follower<'a> {
    found: &'a GitFiles<'a>,
    user: &'a UserSettings,
    /// Git directories, here and elsewhere, with their work trees.
    trees: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    read: BTreeMap<PathBuf, Settings>,
    /// What counts with all that is in it, and may hold links.
    closed: Vec<(PathBuf, &'static str)>,
    leads: Leads,
}

impl Follower<'_> {
    fn gather(&mut self) {
        for (directory, top) in self.found.repositories {
            self.trees.entry(directory.clone()).or_default().extend(top.clone());
        }
        for link in &self.found.git_links {
            self.link(link);
        }
        for (link, why) in &self.found.links {
            self.lead(link, Role::Whole, why);
        }
        // A repository that begins above what may be written.
        for above in self.found.roots.iter().flat_map(|root| root.ancestors().skip(1)) {
            let named = above.join(".git");
            match std::fs::symlink_metadata(&named) {
                Ok(looked) if looked.is_dir() => {
                    self.trees.entry(named).or_default().insert(above.to_owned());
                }
                Ok(_) => self.link(&named),
                Err(_) if git::is_directory(above) => {
                    self.trees.entry(above.to_owned()).or_default();
                }
                Err(_) => {}
            }
        }
        // What these share, until nothing is new.
        loop {
            let is_new = |at: &&PathBuf| !self.read.contains_key(*at);
            let new: Vec<PathBuf> = self.trees.keys().filter(is_new).cloned().collect();
            if new.is_empty() {
                break;
            }
            new.iter().for_each(|directory| self.directory(directory));
        }
        self.share_work_trees();
    }

    /// A `.git` that is no directory.
    fn link(&mut self, link: &Path) {
        let Some(top) = link.parent() else { return };
        let target = match link_chain(link).end.is_dir() {
            true => Some(link.to_owned()),
            // Perhaps by another link.
            false => self
                .lead(link, Role::File, GIT_LINK)
                .filter(|_| self.may_read(link))
                .and_then(|_| git::pointer(link, git::GITDIR)),
        };
        let Some(target) = target else { return };
        if let Some(directory) = self.lead(&target, Role::Git, GIT_LINK) {
            self.trees.entry(directory).or_default().insert(top.to_owned());
        }
    }

    /// What a git directory says about others: the one that it shares, and work trees.
    fn directory(&mut self, directory: &Path) {
        let common = directory.join("commondir");
        if let Some(common) = git::pointer(&common, "").filter(|_| self.may_read(&common))
            && let Some(common) = self.lead(&common, Role::Git, GIT_LINK)
        {
            self.trees.entry(common).or_default();
        }
        let mut tops: BTreeSet<PathBuf> = BTreeSet::new();
        tops.extend(git::top_of_worktree(directory));
        let worktrees = std::fs::read_dir(directory.join("worktrees"));
        for worktree in worktrees.into_iter().flatten().flatten() {
            tops.extend(git::top_of_worktree(&worktree.path()));
        }
        let settings = self.settings_of(directory);
        for value in settings.values(b"core.worktree") {
            tops.insert(link_chain(&directory.join(path(value))).end);
        }
        self.read.insert(directory.to_owned(), settings);
        if let Some(known) = self.trees.get_mut(directory) {
            known.extend(tops);
        }
    }

    /// Settings of a repository hold in all of its work trees.
    fn share_work_trees(&mut self) {
        let shared: Vec<(PathBuf, BTreeSet<PathBuf>)> = self
            .trees
            .iter()
            .filter_map(|(directory, tops)| {
                let common = git::pointer(&directory.join("commondir"), "")?;
                Some((link_chain(&common).end, tops.clone()))
            })
            .collect();
        for (common, tops) in shared {
            self.trees.entry(common).or_default().extend(tops);
        }
    }

    fn settings_of(&self, directory: &Path) -> Settings {
        let mut settings = Settings::default();
        for file in ["config", "config.worktree"] {
            let may_read = |file: &Path| self.may_read(file);
            settings.read(&directory.join(file), &self.user.homes, &may_read);
        }
        settings
    }

    fn settings(&mut self) {
        let trees = std::mem::take(&mut self.trees);
        let all_tops: BTreeSet<PathBuf> = trees.values().flatten().cloned().collect();
        for (directory, settings) in std::mem::take(&mut self.read) {
            let tops = trees.get(&directory).into_iter().flatten().map(PathBuf::as_path);
            let bases: Vec<&Path> = tops.chain([directory.as_path()]).collect();
            self.refuse(&settings, Some(&directory));
            self.named(&settings, &bases, &all_tops);
            // Of another place they may be links into this one.
            self.hooks(&directory.join("hooks"), &all_tops);
        }
        let mut own = Settings::default();
        for file in &self.user.files {
            own.read(file, &self.user.homes, &|file: &Path| self.may_read(file));
        }
        self.refuse(&own, None);
        let tops = trees.values().flatten().chain(trees.keys()).map(PathBuf::as_path);
        let bases: BTreeSet<&Path> = tops.chain(self.found.roots.iter().copied()).collect();
        self.named(&own, &bases.into_iter().collect::<Vec<_>>(), &all_tops);
    }

    /// Settings that neither git nor we understand.
    fn refuse(&mut self, settings: &Settings, directory: Option<&Path>) {
        let closed = settings.closed.iter().filter(|file| self.is_writable(file));
        let closed = closed.map(|file| (file, "it may not be read"));
        let broken = settings.unreadable.iter().map(|(file, why)| (file, why.as_str()));
        let all = closed.chain(broken).filter(|(file, _)| !is_within(file, self.found.allowed));
        let refused: Vec<Unreadable> = all
            .map(|(file, why)| Unreadable {
                directory: directory.map(Path::to_owned),
                file: file.clone(),
                why: why.to_owned(),
            })
            .collect();
        self.leads.unreadable.extend(refused);
    }

    /// What settings name.
    fn named(&mut self, settings: &Settings, bases: &[&Path], all_tops: &BTreeSet<PathBuf>) {
        for file in &settings.files {
            self.lead(file, Role::File, GIT_SETTINGS);
        }
        for name in &settings.elsewhere {
            self.all(name, bases, Role::File, GIT_SETTINGS);
        }
        let homes = &self.user.homes;
        for (_, setting) in &settings.settings {
            let Some(value) = &setting.value else { continue };
            match programs::names(&setting.key, value) {
                Some(ValueNames::Hooks) => {
                    let all = expand(value, homes).into_iter();
                    for place in all.flat_map(|name| places(&name, bases, self.found.roots)) {
                        self.hooks(&place, all_tops);
                    }
                }
                Some(ValueNames::Templates) => {
                    for name in expand(value, homes) {
                        self.all(&name, bases, Role::Whole, COPIES);
                    }
                }
                Some(ValueNames::Command) => {
                    for name in programs::files(value, homes) {
                        self.all(&name, bases, Role::File, RUNS);
                    }
                }
                None => {}
            }
        }
    }

    fn all(&mut self, name: &Pathname, bases: &[&Path], role: Role, why: &'static str) {
        for place in places(name, bases, self.found.roots) {
            self.lead(&place, role, why);
        }
    }

    /// A directory of hooks. One that is a whole work tree, or holds what may be written, cannot be closed: the hooks in
    /// it are.
    fn hooks(&mut self, place: &Path, all_tops: &BTreeSet<PathBuf>) {
        let end = link_chain(place).end;
        let is_tree =
            all_tops.contains(&end) || self.found.roots.iter().any(|root| root.starts_with(&end));
        if !is_tree {
            self.lead(place, Role::Whole, RUNS);
            // husky's hooks are one script, that runs the one of the same name in the directory above.
            if place.file_name().is_some_and(|name| name == "_")
                && let Some(above) = place.parent()
            {
                self.hooks(above, all_tops);
            }
            return;
        }
        for hook in HOOKS {
            self.lead(&place.join(hook), Role::File, RUNS);
            #[cfg(windows)]
            self.lead(&place.join(format!("{hook}.exe")), Role::File, RUNS);
        }
    }

    /// A link in a directory that is closed is closed with it, and what it leads to is not: that may be anywhere in what may
    /// be written, or be made there. What it leads to may hold links in turn.
    fn links_inside(&mut self) {
        self.closed.extend(self.found.directories.iter().cloned());
        let mut walked: BTreeSet<PathBuf> = BTreeSet::new();
        while let Some((directory, why)) = self.closed.pop() {
            let is_root = self.found.roots.iter().any(|root| root.starts_with(&directory));
            let is_allowed = is_within(&directory, self.found.allowed);
            // What the command has made leads nowhere: it is removed.
            if is_root || is_allowed || !self.may_read(&directory) {
                continue;
            }
            let reach = match self.is_writable(&directory) {
                true => inner_links::SearchDepth::All,
                false => inner_links::SearchDepth::Near,
            };
            if walked.insert(directory.clone()) {
                for link in inner_links::of(&directory, reach) {
                    self.lead(&link, Role::Whole, why);
                }
            }
        }
    }

    /// Notes a place and the links on the way to it; the place without links, if the command could not choose it.
    fn lead(&mut self, path: &Path, role: Role, why: &'static str) -> Option<PathBuf> {
        let chain = link_chain(path);
        for link in chain.links {
            let is_new = self.is_writable(&link) && !self.found.believe.is_closed(&link);
            // The `.git` itself is on the list.
            if !(is_named_git(&link) && link == path) {
                self.note(link, Role::Whole, ON_THE_WAY);
            }
            if is_new {
                return None;
            }
        }
        self.note(chain.end.clone(), role, why);
        if role == Role::Whole {
            self.closed.push((chain.end.clone(), why));
        }
        Some(chain.end)
    }

    fn note(&mut self, path: PathBuf, role: Role, why: &'static str) {
        let is_root = self.found.roots.iter().any(|root| root.starts_with(&path));
        if self.is_writable(&path) && !is_root && !is_within(&path, self.found.allowed) {
            self.leads.leads.insert(Lead { path, role, why });
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.found.roots.iter().any(|root| path.starts_with(root))
    }

    fn may_read(&self, file: &Path) -> bool {
        let chain = link_chain(file);
        let is_safe = |at: &PathBuf| !self.is_writable(at) || self.found.believe.is_closed(at);
        chain.links.iter().chain([&chain.end]).all(is_safe)
    }
}

fn is_within(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}
