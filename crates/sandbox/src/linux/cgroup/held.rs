//! A cgroup of one run: made before the plan, so that the plan rests on what is there and not on
//! what might be; removed when the run is over, however it ends.
//!
//! Inside there is no way to it: no cgroup file system is mounted there and none can be.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::files::Cgroup;
use super::sweep;
use super::usage::{self, CgroupUsage};
use crate::linux::facts::CgroupMeans;

/// The child that holds the sandbox, where the run's directory holds the launcher as well.
pub const BOX: &str = "box";
/// The child that holds the launcher then: processes may only be in leaves.
pub const LAUNCHER: &str = "launcher";
/// What our directories are called.
pub const PREFIX: &str = "mcp-";
/// The directory of ours directly below the root.
pub const SLICE: &str = "mcp";

/// How long dead processes may take to leave: milliseconds, and on a machine that is overloaded or emulated many times that. What
/// is not removed then stays until the next run.
const LEAVING: Duration = Duration::from_secs(20);

pub struct RunCgroup {
    pub means: CgroupMeans,
    pub controllers: Vec<String>,
    pub(super) layout: Layout,
    /// Only this process takes it down: a copy of it has no part in that.
    pub(super) owner: u32,
}

pub(super) enum Layout {
    /// `above/name` holds the sandbox.
    Flat { above: Cgroup, name: String, run: Cgroup },
    /// `above/name/box` holds the sandbox, `above/name/launcher` the launcher.
    Nested { above: Cgroup, name: String, own: Cgroup, run: Cgroup },
    /// As above, in a scope that systemd removes when the launcher has ended.
    Scope { scope: Cgroup, run: Cgroup },
}

impl RunCgroup {
    /// Where the sandbox will be, with the limits on it.
    pub fn run(&self) -> &Cgroup {
        match &self.layout {
            Layout::Flat { run, .. } | Layout::Nested { run, .. } | Layout::Scope { run, .. } => {
                run
            }
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.run().as_fd()
    }

    /// Writes a limit, and gives what the kernel now says.
    pub fn set(&self, file: &str, value: &str) -> io::Result<String> {
        self.run().write(file, value)?;
        self.run().read(file)
    }

    pub fn used(&self) -> CgroupUsage {
        CgroupUsage::read(|file| self.run().read(file).ok())
    }

    /// For kernels that keep no peak.
    pub fn memory_now(&self) -> Option<u64> {
        usage::number(&self.run().read("memory.current").ok()?)
    }

    pub fn keeps_peak(&self) -> bool {
        self.run().read("memory.peak").is_ok()
    }

    /// Kills everything in it (Linux 5.14); before that the pid namespace has to do.
    pub fn kill(&self) {
        let _ = self.run().write("cgroup.kill", "1");
    }

    /// Removes what a killed launcher left beside this.
    pub fn sweep(&self) {
        match &self.layout {
            Layout::Flat { above, .. } | Layout::Nested { above, .. } => sweep::sweep(above),
            Layout::Scope { .. } => {}
        }
    }

    /// For a copy of the launcher: only the descriptors are closed.
    pub fn disown(mut self) {
        self.owner = 0;
    }

    fn take_down(&mut self) {
        match &self.layout {
            Layout::Flat { above, name, run } => {
                remove(above, name, run);
                if self.means == CgroupMeans::TopLevel
                    && let Some(root) = above.path.parent().and_then(|root| Cgroup::open(root).ok())
                {
                    // Not while others have theirs in it.
                    let _ = root.remove(SLICE);
                }
            }
            Layout::Nested { above, name, own, run } => {
                remove(own, BOX, run);
                for cgroup in [own, above] {
                    for controller in &self.controllers {
                        // Refused as long as another run beside this one needs it.
                        let _ = cgroup.write("cgroup.subtree_control", &format!("-{controller}"));
                    }
                }
                if above.enter().is_ok() {
                    let _ = own.remove(LAUNCHER);
                    let _ = above.remove(name);
                }
            }
            Layout::Scope { scope, run } => remove(scope, BOX, run),
        }
    }
}

impl Drop for RunCgroup {
    fn drop(&mut self) {
        if std::process::id() == self.owner {
            self.take_down();
        }
    }
}

/// Waits for the dead to leave: the last of them may still be on its way out.
fn remove(above: &Cgroup, name: &str, run: &Cgroup) {
    let until = Instant::now() + LEAVING;
    while let Err(e) = above.remove(name) {
        if e.raw_os_error() != Some(libc::EBUSY) || Instant::now() > until {
            return;
        }
        let _ = run.write("cgroup.kill", "1");
        std::thread::sleep(Duration::from_millis(1));
    }
}
