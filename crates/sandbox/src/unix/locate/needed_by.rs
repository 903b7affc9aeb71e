//! Who says that a program is needed. What the command may write says what the command likes: it may choose among
//! programs that hold nothing of the user's, and no others.

use std::path::{Path, PathBuf};

use super::{ProgramSearch, is_compiled};
use crate::core::request::Unshown;
use crate::host_files::walk::{Walked, walk};
use crate::unix::layout;

/// Who says that a program is needed.
#[derive(Debug, Clone)]
pub enum NeededBy {
    /// A file that the command may have written, and the writable place that it is in.
    Inside {
        at: PathBuf,
        root: PathBuf,
    },
    /// A symlink that the command may have made.
    Linked {
        at: PathBuf,
        root: PathBuf,
    },
    Elsewhere,
}

impl NeededBy {
    pub fn by(file: &Path, search: &ProgramSearch<'_>) -> NeededBy {
        let walked = walk(file).ok();
        match walked.as_ref().and_then(|walked| search.writable.touched_by(walked)) {
            Some(root) => NeededBy::Inside { at: file.to_owned(), root: root.to_owned() },
            None => NeededBy::Elsewhere,
        }
    }

    /// With what the way itself adds: a link on it leads where the command likes.
    pub fn on(self, file: &Path, way: &Walked, search: &ProgramSearch<'_>) -> NeededBy {
        match search.writable.left_by(way) {
            Some(root) => NeededBy::Linked { at: file.to_owned(), root: root.to_owned() },
            None => self,
        }
    }

    /// What is not shown, because the command is the one who says it.
    pub fn unshown(
        &self,
        file: &Path,
        way: &Walked,
        search: &ProgramSearch<'_>,
    ) -> Option<Unshown> {
        // A name that was written is found like any other; of a link, only its end counts.
        let (at, root, named) = match self {
            NeededBy::Inside { at, root } => (at, root, Some(file)),
            NeededBy::Linked { at, root } => (at, root, None),
            NeededBy::Elsewhere => return None,
        };
        let may = may_be_chosen(search, named, &way.real);
        (!may).then(|| unshown(search, at, root, &way.real))
    }
}

/// Whether the command may choose that a program is shown, by a file of its own: an interpreter that a version
/// manager installed, or a program on the user's PATH that is no script, for scripts may hold anything.
pub fn may_be_chosen(search: &ProgramSearch<'_>, file: Option<&Path>, real: &Path) -> bool {
    let writable = search.writable;
    if writable.is_given(real) {
        return true;
    }
    let path = search.untouched().path;
    let on_path = |at: &Path| path.iter().any(|d| at.parent() == Some(&search.cwd.join(d)));
    let is_installed = || is_compiled(real) || search.surroundings(real) != [real];
    layout::is_managed(real, search.real_home().as_deref(), search.variable, writable)
        || (file.is_some_and(on_path) || on_path(real)) && is_installed()
}

fn unshown(search: &ProgramSearch<'_>, at: &Path, root: &Path, real: &Path) -> Unshown {
    let read = search.surroundings(real).into_iter().next().unwrap_or_else(|| real.to_owned());
    Unshown { at: at.to_owned(), root: root.to_owned(), to: real.to_owned(), read }
}
