//! What a measurement was made on, for those who read it later.

use std::fs;

/// The kernel, the number of processors, and how busy they were.
pub struct Machine {
    pub kernel: String,
    pub processors: usize,
    /// Over the last minute, at the start.
    pub load: String,
}

impl Machine {
    pub fn here() -> Machine {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let load = line("/proc/loadavg");
        Machine {
            // What comes after the dash names a build, not the kernel.
            kernel: line("/proc/sys/kernel/osrelease")
                .split('-')
                .next()
                .unwrap_or_default()
                .to_owned(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}
