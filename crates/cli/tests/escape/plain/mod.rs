//! Without user namespaces: Landlock, the filter, the launcher's syscall_proxy and the supervisor.
//!
//! The host here allows user namespaces, so `mcp-probe without` takes them away: for an ordinary user by a user
//! namespace of the test's own in which the kernel makes no others, for root by a filter. Controls run in the same place.

mod attributes;
mod degraded;
mod files;
mod ioctls;
mod life;
mod nested;
mod others;
mod proxy;
mod root;
mod syscall_proxy;

use crate::support::{PLAIN, Run};

/// A sandbox where there are no user namespaces.
fn plain() -> Run {
    Run::new().on(PLAIN)
}

/// The same place without a sandbox.
fn bare() -> Run {
    Run::bare().on(PLAIN)
}
