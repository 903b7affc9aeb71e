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
    // Another grant of the same run may have added its entries already.
    let wanted = effective::mask(access);
    match dacl.granted_access(sid) & wanted == wanted && !is_directory {
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
