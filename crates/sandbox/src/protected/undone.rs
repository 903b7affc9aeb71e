//! Undone changes, as the report lists them.

use super::Undoings;
use crate::core::report::Report;

impl Report {
    /// With what was undone when the command had ended.
    pub(crate) fn with_undone(mut self, undoings: Undoings) -> Report {
        self.more_undone = undoings.more;
        self.replaced.clone_from(&undoings.replaced);
        self.undone = undoings.told();
        self
    }
}
