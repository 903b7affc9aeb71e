//! The plan of a run: the steps and promises for a request on this host, made before anything is changed.
//!
//! A plan is data, made by a pure function of the request and the host facts. It compiles
//! and is tested on every system; `mcp run --explain` prints it and the launcher executes it.

use std::collections::btree_map::{self, BTreeMap};
use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use crate::core::control::Control;

/// What the plan intends for one control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Intent {
    /// It will be enforced.
    Enforce {
        /// By which mechanism.
        by: String,
    },
    /// A part of it will be enforced.
    Partial {
        /// By which mechanism.
        by: String,
        /// What will not.
        missing: String,
        /// Whether a person agreed to that.
        #[serde(skip)]
        known: Known,
    },
    /// It cannot be enforced on this host.
    Unavailable {
        /// Why not.
        why: String,
        /// What to do about it.
        remedy: String,
    },
    /// It was not asked for.
    NotRequested,
}

/// Whether a person has said that a gap is all right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// By a rule of the policy that means nothing else.
    Agreed,
    Unasked,
}

impl Intent {
    /// It will be enforced by this.
    pub fn enforce(by: impl Into<String>) -> Self {
        Intent::Enforce { by: by.into() }
    }

    /// A part of it will be enforced by this.
    pub fn partial(by: impl Into<String>, missing: impl Into<String>) -> Self {
        Intent::Partial { by: by.into(), missing: missing.into(), known: Known::Unasked }
    }

    /// A part of it will be enforced by this, and a rule of the policy agrees to that.
    pub fn agreed(by: impl Into<String>, missing: impl Into<String>) -> Self {
        Intent::Partial { by: by.into(), missing: missing.into(), known: Known::Agreed }
    }

    /// It cannot be enforced on this host.
    pub fn unavailable(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Intent::Unavailable { why: why.into(), remedy: remedy.into() }
    }

    /// Whether it is less than what was asked for.
    pub fn is_gap(&self) -> bool {
        matches!(self, Intent::Partial { .. } | Intent::Unavailable { .. })
    }
}

/// What a step of any system tells about itself.
pub trait Describe: fmt::Display {
    /// Which process carries it out.
    fn stage(&self) -> String;

    /// What is too long for a line: a title and a text.
    fn attachment(&self) -> Option<(&'static str, String)> {
        None
    }
}

/// A step and the controls that rest on it: a control is reported as enforced only when
/// each of its steps was confirmed by the kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Planned<S> {
    /// The step.
    #[serde(flatten)]
    pub step: S,
    /// The controls that rest on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub for_controls: Vec<Control>,
}

/// What is intended for each control.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Intents(BTreeMap<Control, Intent>);

impl Intents {
    /// Controls that were asked for and will not, or not wholly, be enforced.
    pub fn gaps(&self) -> impl Iterator<Item = (Control, &Intent)> {
        self.0.iter().filter(|(_, intent)| intent.is_gap()).map(|(c, i)| (*c, i))
    }

    /// Gaps that stop a run under the default fallback.
    pub fn boundary_gaps(&self) -> impl Iterator<Item = (Control, &Intent)> {
        self.gaps().filter(|(control, intent)| control.is_boundary() && !is_told(*control, intent))
    }

    /// Boundaries that hold but for what the report tells; a run starts and says so.
    pub fn told_gaps(&self) -> impl Iterator<Item = (Control, &Intent)> {
        self.gaps().filter(|(control, intent)| is_told(*control, intent))
    }
}

impl Deref for Intents {
    type Target = BTreeMap<Control, Intent>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<(Control, Intent)> for Intents {
    fn from_iter<I: IntoIterator<Item = (Control, Intent)>>(intents: I) -> Intents {
        Intents(intents.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Intents {
    type Item = (&'a Control, &'a Intent);
    type IntoIter = btree_map::Iter<'a, Control, Intent>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// A plan as a list. The steps are those of one system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan<S> {
    /// What is intended for each control.
    pub controls: Intents,
    /// What is done, in order.
    pub steps: Vec<Planned<S>>,
}

/// What was agreed to, and what can be had without user namespaces: no file can be read or changed and no process reached
/// that was not granted, but names and sizes of files, the list of processes, and the one way to
/// outlive a run are left. Stopping there would stop every run on such a host.
fn is_told(control: Control, intent: &Intent) -> bool {
    let by_degree =
        matches!(control, Control::Filesystem | Control::ProcessIsolation | Control::TreeKill);
    match intent {
        Intent::Partial { known, .. } => by_degree || *known == Known::Agreed,
        _ => false,
    }
}
