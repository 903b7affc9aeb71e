//! `mcp learn`: from what a confined program asked for to the policy that it needs.

pub mod from_log;
mod outcome;

use crate::args::learn::Learn;
use crate::failure::Failure;

pub fn run(args: Learn) -> Result<u8, Failure> {
    from_log::run(&args)
}
