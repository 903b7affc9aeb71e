//! A control that this host does not, or not wholly, enforce.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::core::control::Control;
use crate::core::plan::Intent;

/// A control that is less than what was asked for, with the sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Gap {
    /// The control.
    pub control: Control,
    /// What is missing, and what to do about it where something can be done.
    pub sentence: String,
}

impl Gap {
    /// Of a control and what the plan intends for it.
    pub(crate) fn new((control, intent): (Control, &Intent)) -> Gap {
        let sentence = match intent {
            Intent::Unavailable { why, remedy } => {
                format!("{control} cannot be enforced: {why}; {remedy}")
            }
            Intent::Partial { by, missing, .. } => {
                format!("{control} is only partly enforced by {by}: {missing}")
            }
            Intent::Enforce { by } => format!("{control} is enforced by {by}"),
            Intent::NotRequested => format!("{control} was not asked for"),
        };
        Gap { control, sentence }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
