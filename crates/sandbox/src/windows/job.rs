//! The limits of a job object, in its own units. Pure.
//!
//! Since Windows 8 jobs nest, so a job can be created inside another. A job limits the whole process tree, and the
//! system kills the tree with the job's last handle. A job limits neither open handles nor file sizes, and its time
//! limit counts user time only.

use mcp_policy::{Bytes, Cores, Duration, Policy, Subprocess};
use serde::Serialize;

use crate::windows::win32::{
    JOB_OBJECT_LIMIT_ACTIVE_PROCESS, JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
    JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_JOB_TIME, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
};

/// Set on the job before a process is assigned to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct JobLimits {
    /// JOB_OBJECT_LIMIT_JOB_MEMORY: committed bytes of the whole tree.
    pub memory: Option<u64>,
    /// JOB_OBJECT_LIMIT_ACTIVE_PROCESS.
    pub processes: Option<u32>,
    /// JOB_OBJECT_LIMIT_JOB_TIME: user time of the whole tree, in units of 100 ns.
    pub user_time: Option<i64>,
}

impl JobLimits {
    pub fn of(policy: &Policy) -> JobLimits {
        let limits = &policy.limits;
        let processes = match policy.process.subprocess.value {
            Subprocess::Allowed => limits.processes.value,
            Subprocess::Refused => Some(1),
        };
        JobLimits {
            memory: limits.memory.value.map(|Bytes(count)| count),
            processes,
            user_time: limits.cpu_time.value.map(hundreds_of_nanoseconds),
        }
    }

    /// Never a flag that lets a process break away. A process that crashes ends at once, without a dialog.
    pub fn flags(self) -> u32 {
        let mut flags =
            JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
        for (is_set, flag) in [
            (self.memory.is_some(), JOB_OBJECT_LIMIT_JOB_MEMORY),
            (self.processes.is_some(), JOB_OBJECT_LIMIT_ACTIVE_PROCESS),
            (self.user_time.is_some(), JOB_OBJECT_LIMIT_JOB_TIME),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        flags
    }
}

/// At least one: zero would be no limit.
fn hundreds_of_nanoseconds(time: Duration) -> i64 {
    let units = time.as_std().as_nanos().div_ceil(100);
    i64::try_from(units).unwrap_or(i64::MAX).max(1)
}

/// A hard cap, in hundredths of a percent of all processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CpuRate(pub u32);

impl CpuRate {
    /// `None` where the whole machine was asked for.
    pub fn of(cores: Cores, processors: u32) -> Option<CpuRate> {
        let hundredths = u64::from(cores.millicores()) * 10 / u64::from(processors.max(1));
        let hundredths = u32::try_from(hundredths).unwrap_or(u32::MAX).max(1);
        (hundredths < 10_000).then_some(CpuRate(hundredths))
    }
}

/// What programs in the job cannot do to the desktop that they share: read and write the clipboard, change system
/// parameters and display settings, use other desktops, log off. Left out are JOB_OBJECT_UILIMIT_HANDLES and
/// JOB_OBJECT_UILIMIT_GLOBALATOMS: with them PowerShell and Python end at their start (seen by microsoft/mxc). Windows of
/// other programs have a higher integrity level, so that messages to them are refused all the same (UIPI).
#[cfg(any(windows, test))]
pub const UI_RESTRICTIONS: u32 = 0xff & !(UILIMIT_HANDLES | UILIMIT_GLOBALATOMS);
#[cfg(any(windows, test))]
const UILIMIT_HANDLES: u32 = 0x1;
#[cfg(any(windows, test))]
const UILIMIT_GLOBALATOMS: u32 = 0x20;

#[cfg(test)]
mod tests {
    use mcp_policy::{Defaults, Layer, LayerKind, LayerSource};
    use proptest::prelude::*;

    use super::*;

    fn policy(text: &str) -> Policy {
        let source = LayerSource {
            kind: LayerKind::PolicyFile,
            path: "p.toml".into(),
            base: "/".into(),
            home: None,
        };
        Policy::merge(&[Layer::from_toml(text, source).unwrap()], Defaults::run()).unwrap()
    }

    #[test]
    fn limits_are_in_the_jobs_own_units() {
        let text = "[limits]\nmemory = '64M'\nprocesses = 7\ncpu_time = '1500ms'";
        let limits = JobLimits::of(&policy(text));
        let expected =
            JobLimits { memory: Some(64 << 20), processes: Some(7), user_time: Some(15_000_000) };
        assert_eq!(limits, expected);
        assert_eq!(limits.flags(), 0x2000 | 0x400 | 0x200 | 0x8 | 0x4);
    }

    #[test]
    fn what_is_not_asked_for_is_not_set() {
        let none = "[limits]\nmemory = 'none'\nprocesses = 'none'";
        let limits = JobLimits::of(&policy(none));
        assert_eq!(limits, JobLimits::default());
        assert_eq!(
            limits.flags(),
            JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
        );
    }

    #[test]
    fn restrictions_leave_powershell_and_python_alone() {
        assert_eq!(UI_RESTRICTIONS, 0xde);
    }

    #[test]
    fn no_subprocess_is_one_process() {
        let limits = JobLimits::of(&policy("[process]\nsubprocess = false"));
        assert_eq!(limits.processes, Some(1));
    }

    #[test]
    fn a_share_of_all_processors() {
        let rate =
            |millicores, processors| CpuRate::of(Cores::from_millicores(millicores), processors);
        assert_eq!(rate(500, 1), Some(CpuRate(5000)));
        assert_eq!(rate(500, 4), Some(CpuRate(1250)));
        assert_eq!(rate(1, 64), Some(CpuRate(1)));
        assert_eq!(rate(4000, 4), None);
        assert_eq!(rate(8000, 4), None);
        assert_eq!(rate(100, 0), Some(CpuRate(1000)));
    }

    proptest! {
        #[test]
        fn a_rate_is_one_that_windows_takes(millicores in 1u32..u32::MAX, processors in 0u32..4096) {
            if let Some(CpuRate(rate)) = CpuRate::of(Cores::from_millicores(millicores), processors) {
                prop_assert!((1..10_000).contains(&rate));
                // Never more than asked for, but for the smallest that there is.
                let asked = f64::from(millicores) * 10.0 / f64::from(processors.max(1));
                prop_assert!(f64::from(rate) <= asked.max(1.0));
            }
        }

        #[test]
        fn no_flag_lets_anything_out(memory in any::<Option<u64>>(), processes in any::<Option<u32>>(),
                                     user_time in any::<Option<i64>>()) {
            // JOB_OBJECT_LIMIT_BREAKAWAY_OK, JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK.
            const BREAKAWAY: u32 = 0x800 | 0x1000;
            let flags = JobLimits { memory, processes, user_time }.flags();
            prop_assert_eq!(flags & BREAKAWAY, 0);
            prop_assert_ne!(flags & JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, 0);
        }
    }
}
