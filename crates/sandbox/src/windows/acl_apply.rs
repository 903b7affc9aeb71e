//! Lets a container at a directory and what is below, object by object, and takes that back.
//!
//! The system's own way (SetNamedSecurityInfo) puts the lists of a whole tree in order, and so would hand a
//! container what was kept from it whenever another run changes a list above. Here only entries of the run's own
//! SID are touched. No link is followed; a directory's entry is written before it is listed, so what is made
//! meanwhile inherits it.
//!
//! Leaves open: somebody else who puts the lists of the tree in order while the run lasts (`icacls /t`,
//! Explorer), and files that are replaced on the host meanwhile: both inherit from above.

use std::collections::BTreeMap;
use std::io;

use mcp_policy::WindowsPath;

use crate::windows::access::{Access, Grant};
use crate::windows::dacl::List;
use crate::windows::exclusion::{self, Depth, Keep, Kept, Share};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    Link,
}

/// What an object is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub kind: Kind,
    /// How many names it has …
    pub names: u32,
    /// … and what they have in common.
    pub id: (u64, u64),
}

/// The files of a machine, or of a test.
pub trait Objects {
    type Object;
    /// What has just this path; a link itself.
    fn open(&self, path: &WindowsPath) -> io::Result<Self::Object>;
    fn look(&self, object: &Self::Object) -> io::Result<Look>;
    fn list(&self, object: &Self::Object) -> io::Result<List>;
    fn write(&self, object: &Self::Object, list: &List) -> io::Result<()>;
    fn names(&self, directory: &WindowsPath) -> io::Result<Vec<String>>;
}

/// Lets a SID at a path and, where the access is of that kind, what is below, but for what is kept.
pub fn let_in<O: Objects>(
    objects: &O,
    sid: &[u8],
    grant: &Grant,
    keeps: &[Keep],
) -> io::Result<()> {
    let twins = Twins::of(objects, keeps);
    let root = objects.open(&grant.path)?;
    let look = objects.look(&root)?;
    let share = twins.lower(exclusion::share(&grant.path, grant.access, keeps), look);
    put(objects, &root, look, share, Depth::Granted, sid)?;
    if objects.list(&root)?.gives(sid) & exclusion::mask(share) != exclusion::mask(share) {
        return Err(io::Error::other("the entry was accepted, and is not there"));
    }
    if grant.access == Access::Attributes || look.kind != Kind::Directory {
        return Ok(());
    }
    objects.names(&grant.path)?;
    below(objects, &grant.path, |path, object, look| {
        let share = twins.lower(exclusion::share(path, grant.access, keeps), look);
        // What is not ours to change stays closed, which is the safe side.
        let _ = put(objects, object, look, share, Depth::Below, sid);
        share != Share::Nothing
    });
    Ok(())
}

/// Takes every entry of a SID out again, from below to the top: who is killed meanwhile finds the rest by the
/// entry at the top.
pub fn shut_out<O: Objects>(objects: &O, sid: &[u8], path: &WindowsPath) -> io::Result<()> {
    let root = objects.open(path)?;
    let list = objects.list(&root)?;
    if !list.names(sid) {
        return Ok(());
    }
    if list.reaches_below(sid) {
        below(objects, path, |_, object, _| {
            if let Ok(list) = objects.list(object)
                && list.names(sid)
            {
                // One that is not ours to change names a SID that nobody will have again.
                let _ = objects.write(object, &list.without(sid));
            }
            true
        });
    }
    objects.write(&root, &list.without(sid))
}

fn put<O: Objects>(
    objects: &O,
    object: &O::Object,
    look: Look,
    share: Share,
    depth: Depth,
    sid: &[u8],
) -> io::Result<()> {
    let entries = exclusion::entries(share, look.kind == Kind::Directory, depth, sid);
    if entries.is_empty() {
        return Ok(());
    }
    let list = objects.list(object)?;
    // Another grant of the same run may have been here.
    let before = list.gives(sid);
    match before & exclusion::mask(share) == exclusion::mask(share) && look.kind != Kind::Directory
    {
        true => Ok(()),
        false => objects.write(object, &list.with(&entries)),
    }
}

/// Visits all that is below a directory and can be opened; goes into those directories that the visit says.
fn below<O: Objects>(
    objects: &O,
    root: &WindowsPath,
    mut visit: impl FnMut(&WindowsPath, &O::Object, Look) -> bool,
) {
    let mut pending = vec![root.clone()];
    while let Some(directory) = pending.pop() {
        for name in objects.names(&directory).unwrap_or_default() {
            // A name that no path can have was not made by a program that we would let in.
            let Ok(path) = directory.join(&name) else { continue };
            let Ok(object) = objects.open(&path) else { continue };
            let Ok(look) = objects.look(&object) else { continue };
            if visit(&path, &object, look) && look.kind == Kind::Directory {
                pending.push(path);
            }
        }
    }
}

/// Files that are kept and have other names: by none of them is there more.
#[derive(Default)]
struct Twins(BTreeMap<(u64, u64), Kept>);

impl Twins {
    fn of<O: Objects>(objects: &O, keeps: &[Keep]) -> Twins {
        let mut twins = Twins::default();
        for keep in keeps.iter().filter(|keep| keep.kept != Kept::InPlace) {
            let looked = objects.open(&keep.path).and_then(|object| objects.look(&object));
            let Ok(look) = looked else { continue };
            twins.add(look, keep.kept);
            if look.kind == Kind::Directory {
                below(objects, &keep.path, |_, _, look| {
                    twins.add(look, keep.kept);
                    true
                });
            }
        }
        twins
    }

    fn add(&mut self, look: Look, kept: Kept) {
        if look.kind == Kind::File && look.names > 1 && self.0.get(&look.id) != Some(&Kept::Closed)
        {
            self.0.insert(look.id, kept);
        }
    }

    fn lower(&self, share: Share, look: Look) -> Share {
        match (self.0.get(&look.id), share) {
            (Some(_), _) if look.kind != Kind::File => share,
            (Some(Kept::Closed), _) => Share::Nothing,
            (Some(_), Share::Whole(access)) => Share::Whole(access.min(Access::Read)),
            _ => share,
        }
    }
}

#[cfg(test)]
mod tests;
