//! The processes of a run, wherever they have moved to, and their end.
//!
//! A process belongs to the run when it was known before, has a parent in it, is in the command's
//! session or process group, or is in its sandbox by the system's word. The last finds those
//! that have left all of the others: two forks and a new session between two looks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::macos::sys::{self, Membership, Process};

/// How long killing may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Tree {
    root: i32,
    /// When the first of them was started: nothing older is of this run.
    since: u64,
    user: u32,
    membership: Option<Membership>,
    /// By their numbers, with the start that tells them from later ones.
    known: BTreeMap<i32, u64>,
}

impl Tree {
    /// `None` when there is no such process.
    pub fn new(root: i32, membership: Option<Membership>) -> Option<Tree> {
        let process = sys::process(root)?;
        let known = BTreeMap::from([(root, process.started)]);
        Some(Tree { root, since: process.started, user: process.user, membership, known })
    }

    /// Those that live now, the oldest first. `None` where the system does not say.
    pub fn look(&mut self) -> Option<Vec<Process>> {
        let all = sys::processes().ok()?;
        let mut members = self.members(&all);
        self.known = members.iter().map(|process| (process.pid, process.started)).collect();
        members.retain(|process| !process.is_zombie);
        members.sort_by_key(|process| (process.started, process.pid));
        Some(members)
    }

    fn members(&self, all: &[Process]) -> Vec<Process> {
        let candidates: Vec<&Process> = all
            .iter()
            .filter(|p| p.pid > 1 && p.user == self.user && p.started >= self.since)
            .collect();
        let is_known = |p: &Process| self.known.get(&p.pid) == Some(&p.started);
        let is_placed = |p: &Process| p.session == self.root || p.group == self.root;
        let is_inside = |p: &Process| self.membership.as_ref().is_some_and(|m| m.holds(p.pid));
        let mut members: Vec<Process> = Vec::new();
        for process in &candidates {
            if is_known(process) || is_placed(process) || is_inside(process) {
                members.push(**process);
            }
        }
        loop {
            let has = |pid: i32| members.iter().any(|member| member.pid == pid);
            let new: Vec<Process> =
                candidates.iter().filter(|p| has(p.parent) && !has(p.pid)).map(|p| **p).collect();
            if new.is_empty() {
                return members;
            }
            members.extend(new);
        }
    }

    pub fn signal(&mut self, signal: i32) {
        for process in self.look().unwrap_or_default() {
            let _ = sys::send_signal(process.pid, signal);
        }
    }

    /// Ends all of them. They are stopped first, so that none starts another meanwhile. Whether
    /// none is left.
    pub fn kill(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        let mut stopped = Vec::new();
        while Instant::now() < until {
            let Some(members) = self.look() else { break };
            let new: Vec<i32> =
                members.iter().map(|p| p.pid).filter(|pid| !stopped.contains(pid)).collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                let _ = sys::send_signal(pid, libc::SIGSTOP);
                stopped.push(pid);
            }
        }
        loop {
            match self.look() {
                Some(members) if members.is_empty() => return true,
                Some(members) => {
                    for process in members {
                        let _ = sys::send_signal(process.pid, libc::SIGKILL);
                    }
                }
                None => {
                    let _ = sys::send_signal(-self.root, libc::SIGKILL);
                    let _ = sys::send_signal(self.root, libc::SIGKILL);
                }
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
