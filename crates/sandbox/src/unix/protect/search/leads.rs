//! Goes where links, `.git` files and git's settings lead, in writable places.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::FileType;

use super::{At, Mode, ProtectedPlace, Search, Within};
use crate::core::request::{DeniedKind, Guarded};
use crate::host_files::id as file_id;
use crate::protected::git_leads::{self, Believe, Lead, Leads, ON_THE_WAY, Role, Unreadable};
use crate::protected::user_settings::UserSettings;
use crate::protected::{GIT_LINK, TO_SETTINGS, UNREAD, is_named_git, settings_beyond};
use crate::unix::listing;

impl Search {
    /// What git directories point to may be git directories in turn.
    pub(super) fn follow_leads(&mut self, within: &mut Within<'_, '_>) {
        let known = match &within.mode {
            Mode::Find => None,
            Mode::Undo(undoing) => Some(undoing.unchanged()),
        };
        let user = UserSettings::of_the_caller();
        let mut done: BTreeSet<Lead> = BTreeSet::new();
        loop {
            let Leads { leads, unreadable } = self.leads(within, known.as_ref(), &user);
            // What is removed leads nowhere any more: their number says nothing.
            let fresh: Vec<Lead> = leads.difference(&done).cloned().collect();
            if fresh.is_empty() {
                return self.refuse(unreadable, within);
            }
            done.extend(fresh.iter().cloned());
            fresh.into_iter().for_each(|lead| self.follow(lead, within));
        }
    }

    fn leads(
        &self,
        within: &Within<'_, '_>,
        known: Option<&BTreeSet<PathBuf>>,
        user: &UserSettings,
    ) -> Leads {
        let mut found = git_leads::GitFiles {
            repositories: &self.repositories,
            git_links: Vec::new(),
            links: Vec::new(),
            directories: Vec::new(),
            roots: within.roots,
            allowed: within.allowed,
            believe: known.map_or(Believe::All, Believe::ReadOnly),
        };
        for (path, ProtectedPlace { kind, guarded, why, .. }) in &self.found {
            match kind {
                _ if *guarded == Guarded::InPlace => {}
                _ if *why == GIT_LINK && is_named_git(path) => found.git_links.push(path.clone()),
                DeniedKind::Link if *why == TO_SETTINGS => {
                    found.links.extend(settings_beyond(path))
                }
                DeniedKind::Link if *why != ON_THE_WAY => found.links.push((path.clone(), *why)),
                DeniedKind::Directory if *why != UNREAD => {
                    found.directories.push((path.clone(), *why));
                }
                _ => {}
            }
        }
        git_leads::follow(&found, user)
    }

    fn follow(&mut self, lead: Lead, within: &mut Within<'_, '_>) {
        if lead.role == Role::Git {
            if !self.repositories.contains_key(&lead.path) {
                self.enter_path(&lead.path, At::Git, within);
            }
            return;
        }
        // Closed with the directory that it lies in.
        let is_closed = |above: &std::path::Path| {
            self.found.get(above).is_some_and(|found| found.guarded == Guarded::ReadOnly)
        };
        if lead.path.ancestors().skip(1).any(is_closed) {
            return;
        }
        let (Some(parent), Some(name)) = (lead.path.parent(), lead.path.file_name()) else {
            return;
        };
        let Ok(name) = CString::new(name.as_bytes()) else {
            return;
        };
        let Ok(descent) = within.descend(parent) else {
            return;
        };
        let kind = descent.here().ok().and_then(|here| listing::kind(here, &name).ok().flatten());
        if let Some(kind) = kind
            && (lead.role == Role::Whole || kind != FileType::Directory)
        {
            self.add(&descent, &name, kind, Guarded::ReadOnly, lead.why, within);
        }
    }

    /// We do not know what such settings name. After a run they are old, or gone.
    fn refuse(&mut self, unreadable: Vec<Unreadable>, within: &Within<'_, '_>) {
        if let Mode::Undo(_) = within.mode {
            return;
        }
        for settings in unreadable {
            match settings.whole().filter(|directory| within.holds(directory)) {
                Some(path) => {
                    let (kind, guarded) = (DeniedKind::Directory, Guarded::ReadOnly);
                    let id = file_id::of(path);
                    self.found
                        .insert(path.to_owned(), ProtectedPlace { kind, guarded, why: UNREAD, id });
                }
                None => self.unread.push((settings.file, settings.why)),
            }
        }
    }
}
