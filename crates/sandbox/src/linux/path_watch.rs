//! Notes the paths of announced calls, for `mcp learn`. The call always goes on, and the rest of the sandbox decides as in every run.
//!
//! Stops nothing, and must open nothing: the launcher reads a path from the command's memory, which may change before the kernel
//! reads it, so what is read here decides nothing but a proposal. A path is only looked up, never opened for reading, and only
//! inside the command's own root; what the host has at a path is looked up after the run, by the code that makes proposals.
//!
//! The number of places and of bytes is bounded. A command that names more goes on unwatched, and the report says so.
//! Needs Linux 5.5 (continue) and a listener of our own.

mod lookup;
mod reading;
mod record;

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::request::Request;
use crate::core::watched::Watched;
use crate::linux::phases::LinuxPlan;
use crate::linux::step::Filter;
use crate::linux::sys::{self, Notification};
use lookup::Inside;
use mcp_seccomp::{Arch, Watching, watch};
use record::PathRecord;

/// Shared between the thread that answers the filter and the supervisor, which takes the record in the end.
#[derive(Clone)]
pub struct PathWatch(Arc<Mutex<WatchState>>);

struct WatchState {
    arch: Arch,
    /// Calls that are announced for this alone, sorted.
    only: Vec<u32>,
    inside: Inside,
    record: PathRecord,
}

impl PathWatch {
    /// `None` where the plan announces no paths.
    pub fn of(plan: &LinuxPlan, request: &Request) -> Option<PathWatch> {
        let filter = plan.target.filter.as_ref()?;
        let Filter { arch, processes, connects, sockets, ground, watching } = filter.step;
        if watching == Watching::Off {
            return None;
        }
        let only = mcp_seccomp::watched_numbers(arch, processes, connects, sockets, ground);
        let inside = Inside::of(plan);
        let record = PathRecord::new(request);
        Some(PathWatch(Arc::new(Mutex::new(WatchState { arch, only, inside, record }))))
    }

    /// Whether a call was announced to be noted and for nothing else.
    pub fn is_only_watched(&self, number: i32) -> bool {
        u32::try_from(number).is_ok_and(|number| self.state().only.binary_search(&number).is_ok())
    }

    /// Notes the paths of a call whose caller still waits.
    pub fn note(&self, listener: BorrowedFd<'_>, notification: &Notification) {
        let mut state = self.state();
        state.record.announced();
        if state.record.is_full() {
            return;
        }
        let Ok(number) = u32::try_from(notification.number) else { return };
        for argument in watch::paths(state.arch, number) {
            let wanted = match reading::wanted(notification, argument) {
                Ok(Some(wanted)) => wanted,
                Ok(None) => continue,
                Err(_) => {
                    state.record.unread();
                    continue;
                }
            };
            let outcome = state.inside.look(notification.thread, &wanted);
            // Everything above was read of the thread that asks and not of a later one.
            if !sys::still_waits(listener, *notification) {
                return;
            }
            state.record.note(wanted, outcome);
        }
    }

    /// What was noted.
    pub fn finish(self) -> Watched {
        self.state().record.take()
    }

    /// A thread that panicked left a record that is whole: each note is one insertion.
    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
