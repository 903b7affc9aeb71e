//! The gate in front of file tools: from a path that a model wrote to an open file, or a refusal.
//!
//! A path is never checked first and opened later. The gate walks it name by name from a directory
//! it holds open, never follows a link it has not judged, and hands out the file it arrived at: a
//! link swapped on the way changes nothing but the answer.
//!
//! Stops: paths out of the roots by `..`, links or absolute names; denied names on the way or
//! beneath; control, direction-changing and invisible characters; Windows spellings of other
//! places; devices, pipes and sockets. Leaves open: hard links, which are the same file under a
//! name that was granted, and names that a file system takes for equal beyond their case.
//!
//! Unix: `openat` from a held directory without following, on Linux by `openat2` with
//! RESOLVE_BENEATH where the kernel has it (5.6). Windows: every directory on the way is held open
//! without delete sharing, so no process can put a link in its place; links are refused.

mod deny;
mod forms;
mod gate;
mod refusal;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub use forms::{Style, judge as judge_form};
pub use gate::{Absolute, Gate, GateBuilder, Intent, Opened};
pub use refusal::{Refusal, Why};
