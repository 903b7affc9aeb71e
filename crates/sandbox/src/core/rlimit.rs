//! The resource limits of a process (getrlimit(2)).

use std::fmt;

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

impl Resource {
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "RLIMIT_CPU",
            Resource::Data => "RLIMIT_DATA",
            Resource::AddressSpace => "RLIMIT_AS",
            Resource::Processes => "RLIMIT_NPROC",
            Resource::OpenFiles => "RLIMIT_NOFILE",
            Resource::FileSize => "RLIMIT_FSIZE",
            Resource::Core => "RLIMIT_CORE",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
