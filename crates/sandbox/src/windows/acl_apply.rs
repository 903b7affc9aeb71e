//! Adds a container's entries to the DACLs of a directory tree, object by object, and removes them again.
//!
//! SetNamedSecurityInfo recomputes the inheritance of a whole tree: it would hand a container what was excluded from
//! it whenever another run changes a DACL above. This module changes only entries for the run's own SID. It follows
//! no link. It writes a directory's entry before it lists the directory, so that files created meanwhile inherit it.
//!
//! Leaves open: another program that recomputes the inheritance of the tree during the run (`icacls /t`, Explorer),
//! and files that a program outside replaces during the run: both inherit from above.

use std::collections::BTreeMap;
use std::io;
use std::time::SystemTime;

use mcp_policy::WindowsPath;

use crate::windows::access::{Access, Grant};
use crate::windows::dacl::Dacl;
use crate::windows::effective_access::{
    self as effective, Depth, EffectiveAccess, effective_access,
};
use crate::windows::exclusion::{Exclusion, ExclusionKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    /// A symbolic link, a mux endpoint or another reparse point.
    ReparsePoint,
}

/// What the system says about an open object, whatever name it was opened by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectInfo {
    pub kind: Kind,
    /// The number of hard links.
    pub links: u32,
    /// Volume and file index, which all hard links share.
    pub id: (u64, u64),
}

/// The files of a machine, or of a test.
pub trait Objects {
    type Object;
    /// Opens the object at exactly this path; of a link, the link itself.
    fn open(&self, path: &WindowsPath) -> io::Result<Self::Object>;
    fn info(&self, object: &Self::Object) -> io::Result<ObjectInfo>;
    fn dacl(&self, object: &Self::Object) -> io::Result<Dacl>;
    fn set_dacl(&self, object: &Self::Object, dacl: &Dacl) -> io::Result<()>;
    fn has_low_label(&self, object: &Self::Object) -> bool;
    /// Removes the mandatory label Low, which files keep that a process in the container created.
    fn clear_label(&self, path: &WindowsPath) -> io::Result<()>;
    fn children(&self, directory: &WindowsPath) -> io::Result<Vec<String>>;
    /// Those children that are directories and no links. Opens none of them.
    fn subdirectories(&self, directory: &WindowsPath) -> io::Result<Vec<String>>;
    /// When something was added to a directory, or removed from it.
    fn modified(&self, object: &Self::Object) -> io::Result<SystemTime>;
}

/// Gives a SID access to a path and, unless the access is for attributes only, to everything below but the
/// exclusions.
pub fn add_aces<O: Objects>(
    objects: &O,
    sid: &[u8],
    grant: &Grant,
    exclusions: &[Exclusion],
) -> io::Result<()> {
    let hard_links = HardLinks::of(objects, exclusions);
    let root = objects.open(&grant.path)?;
    let info = objects.info(&root)?;
    let access = hard_links.limit(effective_access(&grant.path, grant.access, exclusions), info);
    add_to_object(objects, (&root, info), access, Depth::Root, sid)?;
    let wanted = effective::mask(access);
    if objects.dacl(&root)?.granted_access(sid) & wanted != wanted {
        return Err(io::Error::other(
            "the system accepted the entry, but the DACL does not have it",
        ));
    }
    if grant.access == Access::Attributes || info.kind != Kind::Directory {
        return Ok(());
    }
    objects.children(&grant.path)?;
    walk(objects, &grant.path, |path, object, info| {
        let access = hard_links.limit(effective_access(path, grant.access, exclusions), info);
        // A DACL that this user may not change stays as it is: the container has no access, which is safe.
        let _ = add_to_object(objects, (object, info), access, Depth::Descendant, sid);
        access != EffectiveAccess::Nothing
    });
    Ok(())
}

/// Gives read access to what has come below a directory since everything there had an entry, and says whether something
/// had come. Opens the directories, and of the files those in directories that have changed.
pub fn refresh_aces<O: Objects>(
    objects: &O,
    sid: &[u8],
    path: &WindowsPath,
    since: SystemTime,
) -> io::Result<bool> {
    let whole = |at: &WindowsPath| Grant { path: at.clone(), access: Access::Read };
    let mask = Access::Read.mask();
    let has_entry =
        |dacl: &Dacl| dacl.granted_access(sid) & mask == mask && dacl.is_inherited_by_children(sid);
    let root = objects.open(path)?;
    // An installer that replaced the list of the top has replaced those below.
    if !has_entry(&objects.dacl(&root)?) {
        return add_aces(objects, sid, &whole(path), &[]).map(|()| true);
    }
    let mut has_changed = false;
    let mut pending = vec![path.clone()];
    while let Some(directory) = pending.pop() {
        // What this user may not open has no entry, as at the first time.
        let Ok(object) = objects.open(&directory) else { continue };
        let Ok(dacl) = objects.dacl(&object) else { continue };
        if !has_entry(&dacl) {
            has_changed = true;
            let _ = add_below(objects, sid, &directory, &object);
            continue;
        }
        if objects.modified(&object).is_ok_and(|modified| modified < since) {
            let below = objects.subdirectories(&directory).unwrap_or_default();
            pending.extend(below.iter().filter_map(|name| directory.join(name).ok()));
            continue;
        }
        has_changed = true;
        for name in objects.children(&directory).unwrap_or_default() {
            let Ok(child) = directory.join(&name) else { continue };
            let Ok(object) = objects.open(&child) else { continue };
            let Ok(info) = objects.info(&object) else { continue };
            if info.kind == Kind::Directory {
                pending.push(child);
            } else {
                let access = EffectiveAccess::Whole(Access::Read);
                let _ = add_to_object(objects, (&object, info), access, Depth::Descendant, sid);
            }
        }
    }
    Ok(has_changed)
}

/// Read access to a directory that came below another one with such entries.
fn add_below<O: Objects>(
    objects: &O,
    sid: &[u8],
    path: &WindowsPath,
    object: &O::Object,
) -> io::Result<()> {
    let access = EffectiveAccess::Whole(Access::Read);
    add_to_object(objects, (object, objects.info(object)?), access, Depth::Descendant, sid)?;
    walk(objects, path, |_, object, info| {
        let _ = add_to_object(objects, (object, info), access, Depth::Descendant, sid);
        true
    });
    Ok(())
}

/// Removes every entry for a SID, descendants first: a run that is killed in between leaves the entry on the root,
/// by which the next run finds the rest.
pub fn remove_aces<O: Objects>(objects: &O, sid: &[u8], path: &WindowsPath) -> io::Result<()> {
    let root = objects.open(path)?;
    let dacl = objects.dacl(&root)?;
    if !dacl.has_ace_for(sid) {
        return Ok(());
    }
    if dacl.is_inherited_by_children(sid) {
        // Where the directory itself is Low, its files are so by the user's choice.
        let clears_labels = !objects.has_low_label(&root);
        walk(objects, path, |path, object, _| {
            if let Ok(dacl) = objects.dacl(object)
                && dacl.has_ace_for(sid)
            {
                if clears_labels && objects.has_low_label(object) {
                    let _ = objects.clear_label(path);
                }
                // An entry that this user may not remove names a SID that no container will have again.
                let _ = objects.set_dacl(object, &dacl.without(sid));
            }
            true
        });
    }
    objects.set_dacl(&root, &dacl.without(sid))
}

/// The same for entries that stay between runs: an installer may have taken them from the top and left those below. Says
/// whether all of them are gone.
pub fn remove_lasting_aces<O: Objects>(
    objects: &O,
    sid: &[u8],
    path: &WindowsPath,
) -> io::Result<bool> {
    let root = objects.open(path)?;
    let mut is_gone = true;
    let mut remove = |object: &O::Object| {
        is_gone &= match objects.dacl(object) {
            Ok(dacl) if dacl.has_ace_for(sid) => {
                objects.set_dacl(object, &dacl.without(sid)).is_ok()
            }
            _ => true,
        };
    };
    walk(objects, path, |_, object, _| {
        remove(object);
        true
    });
    remove(&root);
    Ok(is_gone)
}

fn add_to_object<O: Objects>(
    objects: &O,
    (object, info): (&O::Object, ObjectInfo),
    access: EffectiveAccess,
    depth: Depth,
    sid: &[u8],
) -> io::Result<()> {
    let is_directory = info.kind == Kind::Directory;
    let aces = effective::aces(access, is_directory, depth, sid);
    if aces.is_empty() {
        return Ok(());
    }
    let dacl = objects.dacl(object)?;
    // Another grant of the same run may have added its entries already, or the directory above handed them down.
    let wanted = effective::mask(access);
    let is_there = aces.iter().all(|ace| dacl.has(ace));
    match is_there || (dacl.granted_access(sid) & wanted == wanted && !is_directory) {
        true => Ok(()),
        false => objects.set_dacl(object, &dacl.with(&aces)),
    }
}

/// Visits everything below a directory that can be opened. The visitor says whether to go into a directory.
fn walk<O: Objects>(
    objects: &O,
    root: &WindowsPath,
    mut visit: impl FnMut(&WindowsPath, &O::Object, ObjectInfo) -> bool,
) {
    let mut pending = vec![root.clone()];
    while let Some(directory) = pending.pop() {
        for name in objects.children(&directory).unwrap_or_default() {
            // A name that is not valid in a path gets no entry.
            let Ok(path) = directory.join(&name) else { continue };
            let Ok(object) = objects.open(&path) else { continue };
            let Ok(info) = objects.info(&object) else { continue };
            if visit(&path, &object, info) && info.kind == Kind::Directory {
                pending.push(path);
            }
        }
    }
}

/// Excluded files with several hard links: the exclusion counts for every name.
#[derive(Default)]
struct HardLinks(BTreeMap<(u64, u64), ExclusionKind>);

impl HardLinks {
    fn of<O: Objects>(objects: &O, exclusions: &[Exclusion]) -> HardLinks {
        let mut hard_links = HardLinks::default();
        let whole = |exclusion: &&Exclusion| exclusion.kind != ExclusionKind::NoRename;
        for exclusion in exclusions.iter().filter(whole) {
            let info = objects.open(&exclusion.path).and_then(|object| objects.info(&object));
            let Ok(info) = info else { continue };
            hard_links.add(info, exclusion.kind);
            if info.kind == Kind::Directory {
                walk(objects, &exclusion.path, |_, _, info| {
                    hard_links.add(info, exclusion.kind);
                    true
                });
            }
        }
        hard_links
    }

    fn add(&mut self, info: ObjectInfo, kind: ExclusionKind) {
        let is_denied = self.0.get(&info.id) == Some(&ExclusionKind::NoAccess);
        if info.kind == Kind::File && info.links > 1 && !is_denied {
            self.0.insert(info.id, kind);
        }
    }

    fn limit(&self, access: EffectiveAccess, info: ObjectInfo) -> EffectiveAccess {
        match (self.0.get(&info.id), access) {
            (Some(_), _) if info.kind != Kind::File => access,
            (Some(ExclusionKind::NoAccess), _) => EffectiveAccess::Nothing,
            (Some(_), EffectiveAccess::Whole(access)) => {
                EffectiveAccess::Whole(access.min(Access::Read))
            }
            _ => access,
        }
    }
}

#[cfg(test)]
mod tests;
