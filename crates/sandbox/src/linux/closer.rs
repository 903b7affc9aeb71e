//! Closes protected places again whose mounts are gone: the kernel detaches a mount when a program outside removes or
//! replaces what it stands on, as `git config` does with a file when it saves.
//!
//! In a process of its own, which enters the user and mount namespaces of the sandbox: the user who made them may. It does
//! there what init did, and ends.
//!
//! Leaves open: the moment in between. What the command opened in it stays open to it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::linux::mounts::{Again, Root};
use crate::linux::phases::LinuxPlan;
use crate::linux::sys;

/// How long a replacement may take.
const SETTLED: Duration = Duration::from_secs(2);

/// As many places as fit into a message.
pub const MOST: usize = 1000;

#[derive(Debug, Serialize, Deserialize)]
pub enum Reclosed {
    /// Places inside that were open, by their number in [`places`].
    Again(Vec<usize>),
    Failed {
        at: String,
        errno: i32,
    },
}

impl Reclosed {
    pub fn failed(at: &Path, error: &io::Error) -> Reclosed {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Reclosed::Failed { at: at.display().to_string(), errno }
    }
}

/// The protected places of a plan, as paths inside.
pub fn places(plan: &LinuxPlan) -> impl Iterator<Item = &PathBuf> {
    plan.protected().into_iter().flat_map(|protected| &protected.closed.step.places)
}

fn held(plan: &LinuxPlan) -> impl Iterator<Item = &PathBuf> {
    let hold = plan.protected().and_then(|protected| protected.hold.as_ref());
    hold.into_iter().flat_map(|hold| &hold.step.places)
}

/// Closes what is open. The calling process is in the sandbox afterwards.
pub fn close(plan: &LinuxPlan, mounts: &OwnedFd) -> Reclosed {
    let entered = sys::enter_mounts(mounts.as_fd()).and_then(|()| Root::of_this_process());
    let mut root = match entered {
        Ok(root) => root,
        Err(e) => return Reclosed::failed(Path::new("/"), &e),
    };
    for at in held(plan) {
        if let Err(e) = settled(|| root.hold_again(at)) {
            return Reclosed::failed(at, &e);
        }
    }
    let mut again = Vec::new();
    for (number, at) in places(plan).enumerate() {
        match settled(|| root.protect_again(at)) {
            Ok(Again::Closed) => again.push(number),
            Ok(_) => {}
            Err(e) => return Reclosed::failed(at, &e),
        }
    }
    again.truncate(MOST);
    Reclosed::Again(again)
}

/// Waits until a replacement is complete: the kernel detaches the mount first, and shows the new file later.
fn settled(mut close: impl FnMut() -> io::Result<Again>) -> io::Result<Again> {
    let until = Instant::now() + SETTLED;
    loop {
        match close() {
            Ok(Again::Fleeting) => {}
            // Replaced once more, between two looks at it.
            Err(e) if e.raw_os_error() == Some(libc::ESTALE) => {}
            other => return other,
        }
        if Instant::now() > until {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
