//! Escape tests in a virtual machine: for what this machine may lack, cgroups of version 2.

use std::path::Path;
use std::time::Duration;

use super::suites::GuestUser;
use crate::Result;
use crate::vm::guest::{Cgroup, Guest, Output, User};
use crate::vm::kernel::Kernel;

/// Everything is emulated there, and slow; a test that waits in vain waits for three of these.
const PATIENCE: u64 = 40;
/// Until the guest is given up.
const LIMIT: Duration = Duration::from_secs(900);

/// What the test harness says.
pub fn run(stage: &Path, user: GuestUser, tests: &[&str]) -> Result<String> {
    let (user, required) = match user {
        GuestUser::Ordinary => (User::Ordinary, "userns,cgroup"),
        GuestUser::Root => (User::Root, "userns,cgroup,root"),
    };
    let guest = Guest {
        kernel: Kernel::V6_12,
        sysctls: Vec::new(),
        append: Vec::new(),
        cgroup: Cgroup::Delegate,
        user,
        memory: 1024,
        processors: 1,
        limit: LIMIT,
    };
    let cache = crate::target_directory().join("vm");
    std::fs::create_dir_all(&cache)?;
    let log = cache.join("switches.log");
    let finished = guest.run(&cache, &script(stage, required, tests), Output::Logged(&log))?;
    Ok(finished.stdout)
}

/// None of the tests may be skipped. The guest's own disk is faster than ours is there.
fn script(stage: &Path, required: &str, tests: &[&str]) -> String {
    format!(
        "bin=/scratch/bin; mkdir $bin && cp '{stage}'/mcp '{stage}'/mcp-probe '{stage}'/escape $bin || exit\n\
         chmod 755 $bin $bin/*; cd /scratch\n\
         export MCP_BIN=$bin/mcp MCP_PROBE_BIN=$bin/mcp-probe\n\
         export MCP_REQUIRE={required} MCP_TEST_PATIENCE={PATIENCE}\n\
         exec $bin/escape --test-threads 2 --exact {tests} 2>&1\n",
        stage = stage.display(),
        tests = tests.join(" "),
    )
}
