//! The verbs that edit the configuration of MCP clients.

use super::{add, unwire, wire};
use crate::args::wire::Clients;
use crate::failure::Failure;

pub fn run(verb: Clients) -> Result<u8, Failure> {
    match verb {
        Clients::Wire(args) => wire::run(&args),
        Clients::Unwire(args) => unwire::run(&args),
        Clients::Add(args) => add::run(args),
    }
}
