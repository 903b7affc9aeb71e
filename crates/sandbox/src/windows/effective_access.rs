//! The access that a grant with exclusions gives to one object, and the entries for it. Pure.

use mcp_policy::WindowsPath;

use crate::windows::access::Access;
use crate::windows::dacl::{Ace, INHERIT_ONLY_ACE, INHERITED_ACE, INHERITED_BY_CHILDREN};
use crate::windows::exclusion::{Exclusion, ExclusionKind};
use crate::windows::win32::{DELETE, FILE_DELETE_CHILD};

/// The access that a container gets to one file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectiveAccess {
    Nothing,
    Whole(Access),
    /// An exclusion lies below, so the directory can be neither removed nor renamed.
    AboveExclusion(Access),
}

/// What a grant of `access` gives for a path inside it.
pub fn effective_access(
    path: &WindowsPath,
    access: Access,
    exclusions: &[Exclusion],
) -> EffectiveAccess {
    let is_under = |kind: ExclusionKind| {
        exclusions.iter().any(|exclusion| exclusion.kind == kind && path.is_within(&exclusion.path))
    };
    if is_under(ExclusionKind::NoAccess) {
        return EffectiveAccess::Nothing;
    }
    let access = if is_under(ExclusionKind::ReadOnly) { access.min(Access::Read) } else { access };
    let is_above = |exclusion: &Exclusion| {
        exclusion.path.is_within(path)
            && (exclusion.kind == ExclusionKind::NoRename || exclusion.path != *path)
    };
    match exclusions.iter().any(is_above) {
        true => EffectiveAccess::AboveExclusion(access),
        false => EffectiveAccess::Whole(access),
    }
}

/// Whether an object is the granted path itself, or below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Root,
    Descendant,
}

/// The entries for one object. Those of descendants are marked as inherited: a tool that recomputes the inheritance
/// of the tree later removes them, once the entry on the root is gone.
pub fn aces(access: EffectiveAccess, is_directory: bool, depth: Depth, sid: &[u8]) -> Vec<Ace> {
    let inherited = if depth == Depth::Descendant { INHERITED_ACE } else { 0 };
    match access {
        EffectiveAccess::Nothing => Vec::new(),
        EffectiveAccess::Whole(access) => {
            let children =
                if is_directory && access.is_inherited() { INHERITED_BY_CHILDREN } else { 0 };
            vec![Ace::allow(sid, access.mask(), inherited | children)]
        }
        EffectiveAccess::AboveExclusion(access) => {
            let own = access.mask() & !(DELETE | FILE_DELETE_CHILD);
            let children = INHERITED_BY_CHILDREN | INHERIT_ONLY_ACE;
            vec![
                Ace::allow(sid, own, inherited),
                Ace::allow(sid, access.mask(), inherited | children),
            ]
        }
    }
}

/// The access mask that these entries allow on the object itself.
pub fn mask(access: EffectiveAccess) -> u32 {
    match access {
        EffectiveAccess::Nothing => 0,
        EffectiveAccess::Whole(access) => access.mask(),
        EffectiveAccess::AboveExclusion(access) => access.mask() & !(DELETE | FILE_DELETE_CHILD),
    }
}
