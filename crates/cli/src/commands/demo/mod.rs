//! `mcp demo`: one malicious MCP server, with and without the sandbox, side by side.
//!
//! The client, the stand-ins for the user's secrets and the table live in `stage`; the server is
//! this same binary, started as a guest.

pub mod server;
#[cfg(any(target_os = "linux", windows))]
mod stage;

use crate::args;
use crate::failure::Failure;

pub fn run(args: args::Demo) -> Result<u8, Failure> {
    // Where no launcher is built yet there is nothing to show, and this says so.
    mcp_sandbox::platform::assume_host()?;
    stage::perform(&args)
}

#[cfg(not(any(target_os = "linux", windows)))]
mod stage {
    pub fn perform(_: &crate::args::Demo) -> Result<u8, crate::failure::Failure> {
        Err(crate::failure::Failure::Refused(
            "the demo is built for Linux and Windows only".to_owned(),
        ))
    }
}
