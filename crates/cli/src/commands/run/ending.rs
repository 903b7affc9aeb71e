//! One line for an ending that was ours.

use mcp_policy::Limits;
use mcp_sandbox::{Ending, Report};

use crate::render;

pub fn tell(report: &Report, limits: &Limits) {
    match (&report.ending, &limits.timeout.value) {
        (Ending::Timeout, Some(limit)) => {
            render::say(&format!("killed: timeout {limit} reached — raise with --timeout"));
        }
        (Ending::SandboxFailed(why), _) => {
            render::say(&format!(
                "killed: the sandbox failed while the command ran: {}",
                render::plain(why)
            ));
        }
        _ => {}
    }
    if report.blocked_processes > 0 {
        render::say("blocked a new process (subprocess is off)");
    }
}
