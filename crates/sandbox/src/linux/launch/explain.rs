//! A set-up that failed, in words for the user: what, on what, why, and what to do.

use std::io;

use crate::core::error::{Error, SetupFailure};
use crate::linux::channel::Failed;
use crate::linux::phases::LinuxPlan;
use crate::linux::step::{Execute, ListedStep, Placed, Step};

/// The failed step in the user's words.
pub(super) fn explain(plan: &LinuxPlan, failed: Failed) -> Error {
    let Some(ListedStep { step, .. }) = plan.steps().get(failed.step).copied() else {
        return Error::Setup(SetupFailure {
            step: "set up".to_owned(),
            target: failed.part,
            errno: failed.errno,
            hint: String::new(),
        });
    };
    if let (Step::Execute(Execute { program, .. }), true) = (step, failed.part.is_empty()) {
        return match failed.errno {
            libc::ENOENT => Error::NotExecutable {
                path: program.clone(),
                why:
                    "its interpreter or loader is not visible inside (add --read for its directory)"
                        .to_owned(),
            },
            libc::ENOEXEC => Error::NotExecutable {
                path: program.clone(),
                why: "not a program this machine can run, and no #! line".to_owned(),
            },
            errno => Error::NotExecutable {
                path: program.clone(),
                why: io::Error::from_raw_os_error(errno).to_string(),
            },
        };
    }
    let target = match failed.part.is_empty() {
        true => step.operand(),
        false => failed.part,
    };
    Error::Setup(SetupFailure {
        step: step.verb().to_owned(),
        target,
        errno: failed.errno,
        hint: hint(step, failed.errno).to_owned(),
    })
}

pub(super) const FEW_FILES: &str =
    "the caller's limit of open files is too low; raise it (ulimit -n 4096), or grant fewer paths";

fn hint(step: Step<'_>, errno: i32) -> &'static str {
    match (step, errno) {
        (Step::Namespaces(_), libc::EPERM | libc::ENOSPC | libc::ENOSYS | libc::EINVAL) => {
            "this host refuses namespaces; `mcp doctor` names the setting"
        }
        (Step::Placed(Placed::Proc { .. }), libc::EPERM) => {
            "the /proc of this host is masked, as in a container; `mcp doctor` says more"
        }
        (Step::Filter(_), _) => "this host refuses system call filters; `mcp doctor` says more",
        (Step::Placed(Placed::Bind { .. }), libc::ELOOP) => {
            "the path became a symlink while the sandbox was set up"
        }
        (
            Step::Hold(_) | Step::Protect(_) | Step::Mask(_),
            libc::ELOOP | libc::ESTALE | libc::ENOTDIR,
        ) => "something else was put in its place while the sandbox was set up",
        (Step::Hold(_) | Step::Protect(_) | Step::Mask(_), libc::ENOTUNIQ) => {
            "its file system ignores case in names, so another spelling would lead around the mount that closes it: move it to another file system, or do without (--no-protect, no deny rule)"
        }
        (Step::Landlock(_), libc::EACCES) => {
            "root becomes an ordinary user here, who may not go there: start mcp as an ordinary user, or put it where others may read"
        }
        (Step::Placed(Placed::Bind { .. }), libc::ENOENT) => {
            "the path was removed while the sandbox was set up"
        }
        (_, libc::EMFILE) => FEW_FILES,
        (_, libc::ENOSYS) => "needs a newer kernel, or a filter around mcp refuses it",
        _ => "",
    }
}
