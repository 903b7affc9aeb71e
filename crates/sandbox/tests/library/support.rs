//! What the checks share.

use std::error::Error;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mcp_sandbox::Sandbox;

pub type Outcome = Result<(), Box<dyn Error>>;
pub type Check = fn() -> Outcome;

/// A failure instead of a panic: one check must not take the others with it.
#[track_caller]
pub fn same<T: PartialEq + Debug>(found: T, expected: T) -> Outcome {
    holds(found == expected, || format!("found {found:?}, expected {expected:?}"))
}

#[track_caller]
pub fn holds(is_so: bool, why: impl FnOnce() -> String) -> Outcome {
    let at = std::panic::Location::caller();
    if is_so { Ok(()) } else { Err(format!("line {}: {}", at.line(), why()).into()) }
}

/// Waits for something to become true.
pub fn within(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    is_so()
}

pub fn shell(script: &str) -> Sandbox {
    let mut sandbox = Sandbox::new("/bin/sh");
    sandbox.args(["-c", script]);
    sandbox
}

/// A directory that is gone at the end of the check.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> std::io::Result<Scratch> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcp-library-{}-{number}", std::process::id());
        let path = std::env::temp_dir().canonicalize()?.join(name);
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Why no sandbox can be started here; `None` where one can.
pub fn missing() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("these checks know Linux's paths only".to_owned());
    }
    match Sandbox::new("/bin/true").status() {
        Err(error @ mcp_sandbox::Error::NotEnforced { .. }) => Some(error.to_string()),
        // Only a refused namespace is a reason to skip; everything else is for the checks to find.
        Err(mcp_sandbox::Error::Setup(failure)) if failure.step.contains("namespace") => {
            Some(failure.to_string())
        }
        _ => None,
    }
}

pub fn is_required(feature: &str) -> bool {
    let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
    required.split(',').any(|name| name.trim() == feature)
}
