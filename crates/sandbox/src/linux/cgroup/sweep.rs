//! Removes what launchers that were killed left behind: by their lock, never by a guess.
//!
//! A launcher holds a lock on its directory as long as it lives. One that can be locked by another process
//! else has lost its launcher, and the sandbox in it has died with that.

use super::files::Cgroup;
use super::held::{BOX, LAUNCHER, PREFIX};

/// More than this at once are left for the next run: starting must not take long.
const MOST: usize = 64;

pub fn sweep(above: &Cgroup) {
    for name in above.children(PREFIX, MOST) {
        let Ok(left) = above.child(&name) else {
            continue;
        };
        if !matches!(left.lock(), Ok(true)) || !left.is_child_of(above, &name) {
            continue;
        }
        for child in [BOX, LAUNCHER] {
            if let Ok(cgroup) = left.child(child) {
                let _ = cgroup.write("cgroup.kill", "1");
                let _ = left.remove(child);
            }
        }
        let _ = left.write("cgroup.kill", "1");
        let _ = above.remove(&name);
    }
}
