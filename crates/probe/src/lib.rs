//! Tries an act (read a file, reach a port, make a process, call the kernel) and says what
//! happened. Tests run it inside and outside the sandbox, so a refusal always has a control;
//! `mcp demo` and `mcp doctor` link it and do the same acts in their own process.
//!
//! ```
//! let acts = mcp_probe::Act::parse(["read", "/nonexistent"])?;
//! let outcome = mcp_probe::run(&acts[0]);
//! assert!(!outcome.ok);
//! assert_eq!(outcome.errno.as_deref(), Some("ENOENT"));
//! # Ok::<(), mcp_probe::UsageError>(())
//! ```

mod act;
mod acts;
mod errno;
mod outcome;
mod spec;
#[cfg_attr(windows, path = "sys/windows.rs")]
mod sys;

pub use act::{Act, UsageError, usage};
pub use outcome::Outcome;

/// Does the act in this process and says what happened.
///
/// Acts that change the process itself (`enter`, `chroot`, `personality`, `exec`, `exit` …)
/// change the caller; everything else leaves it as it was.
pub fn run(act: &Act) -> Outcome {
    let (ok, errno, detail) = match act.perform() {
        Ok(detail) => (true, None, detail),
        Err(failure) => (false, Some(failure.errno), failure.detail),
    };
    Outcome { act: act.name().to_owned(), arg: act.argument_text(), ok, errno, detail }
}
