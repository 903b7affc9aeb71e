//! The limits of the command. `None` is no limit.

use std::time::Duration;

use mcp_policy::{Bytes, Cores, Rate};

use super::Sandbox;

fn exact(limit: Duration) -> mcp_policy::Duration {
    mcp_policy::Duration::from_std(limit)
}

impl Sandbox {
    /// Memory of all processes together.
    pub fn memory(&mut self, limit: impl Into<Option<Bytes>>) -> &mut Sandbox {
        self.permissions.memory(limit.into());
        self
    }

    /// Processor share.
    pub fn cpu(&mut self, limit: impl Into<Option<Cores>>) -> &mut Sandbox {
        self.permissions.cpu(limit.into());
        self
    }

    /// Processor time of each process.
    pub fn cpu_time(&mut self, limit: impl Into<Option<Duration>>) -> &mut Sandbox {
        self.permissions.cpu_time(limit.into().map(exact));
        self
    }

    /// Bytes for each second, of each disk with a writable grant; reading and writing apart.
    pub fn io(&mut self, limit: impl Into<Option<Rate>>) -> &mut Sandbox {
        self.permissions.io(limit.into());
        self
    }

    /// Processes and threads.
    pub fn processes(&mut self, limit: impl Into<Option<u32>>) -> &mut Sandbox {
        self.permissions.processes(limit.into());
        self
    }

    /// Open files of each process.
    pub fn open_files(&mut self, limit: impl Into<Option<u32>>) -> &mut Sandbox {
        self.permissions.open_files(limit.into());
        self
    }

    /// Size of each file written.
    pub fn file_size(&mut self, limit: impl Into<Option<Bytes>>) -> &mut Sandbox {
        self.permissions.file_size(limit.into());
        self
    }

    /// Temporary space: /tmp, /dev/shm and HOME together.
    pub fn tmp_size(&mut self, limit: Bytes) -> &mut Sandbox {
        self.permissions.tmp_size(limit);
        self
    }

    /// Address space of each process. Node, Go and Java reserve gigabytes.
    pub fn address_space(&mut self, limit: impl Into<Option<Bytes>>) -> &mut Sandbox {
        self.permissions.address_space(limit.into());
        self
    }

    /// Ends the command after this time, counted from its start: SIGTERM, then after the
    /// [grace](Self::grace) SIGKILL, to everything in the sandbox.
    pub fn timeout(&mut self, limit: impl Into<Option<Duration>>) -> &mut Sandbox {
        self.permissions.timeout(limit.into().map(exact));
        self
    }

    /// Time between SIGTERM and SIGKILL, after a timeout and where the launcher is told to end.
    pub fn grace(&mut self, limit: Duration) -> &mut Sandbox {
        self.permissions.grace(exact(limit));
        self
    }
}
