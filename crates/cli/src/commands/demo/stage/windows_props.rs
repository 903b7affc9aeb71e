//! Targets of the demo's attacks that only Windows has.

use std::io;

use super::stand_in::TemporaryDirectory;

pub const SHELL_START_UP: &str = "home/profile.ps1";

pub struct Props;

impl Props {
    pub fn put(root: &TemporaryDirectory) -> io::Result<Props> {
        root.put("local/.keep", "").map(|()| Props)
    }
}
