//! The launcher's steps on the run's cgroup, each answered by what the kernel says afterwards.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use super::held::RunCgroup;
use super::limits::holds;
use super::mount::own_path;
use crate::core::report::{Answer, Evidence};
use crate::linux::failure::{LaunchFailure, at_step};
use crate::linux::phases::LinuxPlan;
use crate::linux::step::{CgroupSetting, Numbered};

/// Writes every limit before anything is in there.
pub fn set(plan: &LinuxPlan, cgroup: Option<&RunCgroup>) -> Result<Vec<Evidence>, LaunchFailure> {
    let mut evidence = Vec::new();
    let Some(cgroup) = cgroup else {
        return Ok(evidence);
    };
    let settings = plan.cgroup.iter().flat_map(|cgroup| &cgroup.settings);
    for Numbered { number, step: CgroupSetting { file, value }, .. } in settings {
        let answer = read_back(file, value, cgroup.set(file, value));
        let answer = answer.map_err(|e| at_step(*number, &e))?;
        evidence.push(Evidence { step: *number, answer });
    }
    Ok(evidence)
}

/// By what the file says after it was written: a kernel may take a value and keep another.
fn read_back(file: &str, asked: &str, found: io::Result<String>) -> io::Result<Answer> {
    match found {
        Ok(found) if holds(file, asked, &found) => {
            Ok(Answer::Confirmed(format!("{file} {}", found.trim().replace('\n', ", "))))
        }
        Ok(found) => Ok(Answer::Less(format!("{file} stayed {}", found.trim()))),
        // A kernel that does not account for swap.
        Err(e) if file == "memory.swap.max" => {
            Ok(Answer::Less(format!("what is swapped out is not counted ({e})")))
        }
        Err(e) => Err(e),
    }
}

/// The cgroup that the sandbox is cloned into.
pub fn target<'a>(plan: &LinuxPlan, cgroup: Option<&'a RunCgroup>) -> Option<BorrowedFd<'a>> {
    plan.cgroup.as_ref().and(cgroup).map(RunCgroup::fd)
}

/// Where init is, by the kernel's account.
pub fn entered(plan: &LinuxPlan, cgroup: Option<&RunCgroup>, init: i32) -> Option<Evidence> {
    let (step, cgroup) = (plan.cgroup.as_ref()?.enter.number, cgroup?);
    let membership = std::fs::read(format!("/proc/{init}/cgroup")).ok()?;
    Some(Evidence { step, answer: whether_there(&membership, &cgroup.run().path)? })
}

fn whether_there(membership: &[u8], run: &Path) -> Option<Answer> {
    let found = own_path(membership)?;
    // The names that are ours; what is above them the mount may show or not.
    let is_there = run.ends_with(found.file_name()?);
    let shown = found.display();
    Some(match is_there {
        true => Answer::Confirmed(format!("cgroup {shown}")),
        false => Answer::Less(format!("the sandbox is in cgroup {shown}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_by_what_the_kernel_says_of_it() {
        let found = |text: &str| Ok(text.to_owned());
        let refused = || Err(io::Error::from_raw_os_error(libc::ENOENT));
        let held = read_back("pids.max", "21", found("21\n")).unwrap();
        assert!(matches!(held, Answer::Confirmed(_)));
        for (file, asked, said) in
            [("pids.max", "21", "max\n"), ("memory.max", "4096", "8192\n"), ("cpu.max", "1", "")]
        {
            let answer = read_back(file, asked, found(said)).unwrap();
            assert!(matches!(answer, Answer::Less(_)), "{file} {said}");
        }
        assert!(read_back("memory.max", "4096", refused()).is_err());
        let swap = read_back("memory.swap.max", "0", refused()).unwrap();
        assert!(matches!(swap, Answer::Less(_)));
    }

    #[test]
    fn a_sandbox_elsewhere_is_not_said_to_be_in_its_cgroup() {
        let run = Path::new("/sys/fs/cgroup/user.slice/mcp-1");
        let there = |membership: &str| whether_there(membership.as_bytes(), run);
        assert!(matches!(there("0::/user.slice/mcp-1\n"), Some(Answer::Confirmed(_))));
        assert!(matches!(there("0::/user.slice\n"), Some(Answer::Less(_))));
        assert!(matches!(there("0::/user.slice/mcp-12\n"), Some(Answer::Less(_))));
        // Without a name nothing is confirmed, and what is not confirmed is not enforced.
        assert!(there("0::/\n").is_none());
        assert!(there("1:memory:/mcp-1\n").is_none());
    }
}
