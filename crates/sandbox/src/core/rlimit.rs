//! The resource limits of a process (getrlimit(2)).

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    Cpu,
    Data,
    AddressSpace,
    Processes,
    OpenFiles,
    FileSize,
    Core,
}
