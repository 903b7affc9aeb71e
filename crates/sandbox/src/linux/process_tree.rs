//! The processes below another one, where no pid namespace holds them together.
//!
//! A process that has collected orphans since before the first of them existed (a subreaper) has the whole tree
//! below it: a process whose parent ends becomes its child. So when it has no children left, nothing
//! is left of the tree; that is the proof that [`end_all`] waits for.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::linux::sys;

/// How often a tree that grows while it is stopped is looked at again.
const ROUNDS: usize = 64;
const PAUSE: Duration = Duration::from_millis(1);

/// What /proc/PID/stat tells of a process.
struct Stat {
    parent: i32,
    group: i32,
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    // The name before it may hold anything, parentheses and spaces too.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(1);
    let mut number = || fields.next()?.parse().ok();
    Some(Stat { parent: number()?, group: number()? })
}

pub fn group(pid: i32) -> Option<i32> {
    stat(pid).map(|stat| stat.group)
}

/// Every process below `top`, parents before their children. One that is just being made or
/// handed on to another parent may be missed: who needs all of them looks again.
pub fn below(top: i32) -> Vec<i32> {
    let mut found = vec![top];
    let mut next = 0;
    let mut all: Option<BTreeMap<i32, Vec<i32>>> = None;
    while let Some(pid) = found.get(next).copied() {
        let more = match (&mut all, children(pid)) {
            (None, Some(more)) => more,
            // A kernel without such lists: found by what every process says of its parent.
            (all, _) => all.get_or_insert_with(by_parent).remove(&pid).unwrap_or_default(),
        };
        found.extend(more.into_iter().filter(|child| *child != top));
        next += 1;
        if next > MOST {
            break;
        }
    }
    found.remove(0);
    found
}

/// No host has more processes.
const MOST: usize = 1 << 22;

/// The kernel's own list; `None` where it was built without. A process that is gone has none.
fn children(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_whitespace().filter_map(|p| p.parse::<i32>().ok())),
            // A thread that has just ended has none; its children are another thread's.
            Err(_) if thread.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(found)
}

fn by_parent() -> BTreeMap<i32, Vec<i32>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some((pid, stat)) = pid.and_then(|pid| Some((pid, stat(pid)?))) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    children
}

/// Whether a process is below `top`.
pub fn is_below(pid: i32, top: i32) -> bool {
    let mut at = pid;
    // No tree is deeper than there are processes.
    for _ in 0..1 << 16 {
        match stat(at) {
            Some(stat) if stat.parent == top => return true,
            Some(stat) if stat.parent > 1 => at = stat.parent,
            _ => return false,
        }
    }
    false
}

/// A handle of a process that is below `top`, and stays that process whatever becomes of its number.
pub fn handle(pid: i32, top: i32) -> Option<OwnedFd> {
    let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    is_below(pid, top).then_some(handle)
}

/// Sends a signal to every process below `top`; how many got it.
pub fn signal_all(top: i32, signal: i32) -> usize {
    let Some(signal) = Signal::from_named_raw(signal) else {
        return 0;
    };
    let handles = below(top).into_iter().filter_map(|pid| handle(pid, top));
    handles.filter(|handle| pidfd_send_signal(handle, signal).is_ok()).count()
}

/// Ends everything below this process and collects it. `within`: when to give up.
pub fn end_all(within: Option<Duration>) -> io::Result<()> {
    let me = std::process::id() as i32;
    let since = Instant::now();
    loop {
        stop_all(me);
        signal_all(me, libc::SIGKILL);
        loop {
            match sys::wait_any() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(e) if e.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        if within.is_some_and(|within| since.elapsed() > within) {
            return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        }
        std::thread::sleep(PAUSE);
    }
}

/// What stands still cannot fork: stopped first, a tree cannot outrun its end.
fn stop_all(top: i32) {
    let mut stopped = 0;
    for _ in 0..ROUNDS {
        let now = signal_all(top, libc::SIGSTOP);
        if now <= stopped {
            return;
        }
        stopped = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn finds_what_is_below_and_nothing_else() {
        let mut child = Command::new("sh").args(["-c", "sleep 30 & wait"]).spawn().unwrap();
        let (me, shell) = (std::process::id() as i32, child.id() as i32);
        let two = Instant::now() + Duration::from_secs(20);
        while below(shell).len() != 1 && Instant::now() < two {
            std::thread::sleep(PAUSE);
        }
        let [sleeper] = below(shell)[..] else { panic!("{:?}", below(shell)) };
        assert!(is_below(sleeper, me) && is_below(sleeper, shell) && is_below(shell, me));
        assert!(!is_below(me, shell) && !is_below(sleeper, sleeper) && !is_below(1, me));
        assert!(handle(sleeper, me).is_some() && handle(me, shell).is_none());
        assert_eq!(signal_all(shell, libc::SIGKILL), 1);
        let _ = child.kill();
        child.wait().unwrap();
    }
}
