//! The limits by name: what a policy file and the command line call each, and which values
//! make no sense for it.

use crate::{Bytes, Cores, Duration, Rate, ValueError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Memory,
    Cpu,
    CpuTime,
    Io,
    Processes,
    OpenFiles,
    FileSize,
    TmpSize,
    AddressSpace,
    Timeout,
    Grace,
}

impl Limit {
    pub const KEYS: [&str; 11] = [
        "memory",
        "cpu",
        "cpu_time",
        "io",
        "processes",
        "open_files",
        "file_size",
        "tmp_size",
        "address_space",
        "timeout",
        "grace",
    ];

    pub fn key(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::CpuTime => "cpu_time",
            Self::Io => "io",
            Self::Processes => "processes",
            Self::OpenFiles => "open_files",
            Self::FileSize => "file_size",
            Self::TmpSize => "tmp_size",
            Self::AddressSpace => "address_space",
            Self::Timeout => "timeout",
            Self::Grace => "grace",
        }
    }

    pub fn flag(self) -> &'static str {
        match self {
            Self::Memory => "--max-memory",
            Self::Cpu => "--max-cpu",
            Self::CpuTime => "--max-cpu-time",
            Self::Io => "--max-io",
            Self::Processes => "--max-pids",
            Self::OpenFiles => "--max-fds",
            Self::FileSize => "--max-file-size",
            Self::TmpSize => "--max-tmp",
            Self::AddressSpace => "--max-address-space",
            Self::Timeout => "--timeout",
            Self::Grace => "--grace",
        }
    }

    fn refuse_zero(self, is_zero: bool, hint: &str) -> Result<(), ValueError> {
        if is_zero {
            return Err(ValueError::new(0..0, format!("{} cannot be zero", self.key()), hint));
        }
        Ok(())
    }
}

/// The standard three, and the one that whatever starts a program holds until then.
const LEAST_OPEN_FILES: u32 = 4;

/// A value that a limit can have.
pub(crate) trait LimitValue {
    /// Refuses what no program could run under, or what a kernel would take for "no limit".
    fn check(&self, limit: Limit) -> Result<(), ValueError>;
}

impl LimitValue for Bytes {
    fn check(&self, limit: Limit) -> Result<(), ValueError> {
        // No file may grow: strange, but it works and means what it says.
        if limit == Limit::FileSize {
            return Ok(());
        }
        // A tmpfs of size 0 is one without limit.
        let hint = match limit {
            Limit::TmpSize => "write a small size such as \"1 MiB\"",
            _ => "write \"none\" for no limit",
        };
        limit.refuse_zero(self.0 == 0, hint)
    }
}

impl LimitValue for Rate {
    fn check(&self, limit: Limit) -> Result<(), ValueError> {
        self.0.check(limit)
    }
}

impl LimitValue for Duration {
    fn check(&self, limit: Limit) -> Result<(), ValueError> {
        // No grace is a wish one can have: kill at once.
        let is_zero = limit != Limit::Grace && self.is_zero();
        limit.refuse_zero(is_zero, "write \"none\" for no limit")
    }
}

impl LimitValue for Cores {
    fn check(&self, limit: Limit) -> Result<(), ValueError> {
        limit.refuse_zero(self.millicores() == 0, "write \"none\" for no limit")
    }
}

impl LimitValue for u32 {
    fn check(&self, limit: Limit) -> Result<(), ValueError> {
        limit.refuse_zero(*self == 0, "write \"none\" for no limit")?;
        if limit == Limit::OpenFiles && *self < LEAST_OPEN_FILES {
            return Err(ValueError::new(
                0..0,
                "open_files is too small",
                "a program needs at least 4: its input, its two outputs, and one to start with",
            ));
        }
        Ok(())
    }
}

impl<T: LimitValue> LimitValue for Option<T> {
    fn check(&self, limit: Limit) -> Result<(), ValueError> {
        self.as_ref().map_or(Ok(()), |value| value.check(limit))
    }
}
