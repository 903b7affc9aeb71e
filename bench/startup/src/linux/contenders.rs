//! The ways of starting a command that are compared, as plain command lines.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use bench_common::launchers::{
    bubblewrap, bubblewrap_all_of_etc, failure, firejail, mcp, mcp_exec, srt,
};

use super::{Result, sys};

/// The hidden mode of this program that is the `floor` contender.
pub const FLOOR: &str = "__floor";

/// One contender: its name, and its command line made ready for spawning.
pub struct Contender {
    pub name: &'static str,
    spawn: sys::Spawn,
}

/// A contender, or why it is not there.
pub enum Entry {
    Ready(Contender),
    Skipped { name: &'static str, why: String },
}

impl Entry {
    pub fn ready(&self) -> Option<&Contender> {
        match self {
            Self::Ready(contender) => Some(contender),
            Self::Skipped { .. } => None,
        }
    }

    /// Tries the command once, because a sandbox that fails at start-up is fast.
    fn try_out(name: &'static str, words: &[OsString]) -> Result<Self> {
        Ok(match failure(words) {
            None => Self::Ready(Contender { name, spawn: sys::Spawn::new(words)? }),
            Some(why) => Self::Skipped { name, why },
        })
    }
}

impl Contender {
    pub fn time_once(&self) -> Result<Duration> {
        let run = self.spawn.run()?;
        if run.exit_code != Some(0) {
            return Err(format!("{} failed in the middle of the rounds", self.name).into());
        }
        Ok(run.took)
    }
}

/// `project`: a directory that an agent's command may write.
pub fn all(command: &Path, launcher: &Path, project: &Path, peers: bool) -> Result<Vec<Entry>> {
    let command = command.as_os_str();
    let bare = vec![command.to_owned()];
    if let Some(why) = failure(&bare) {
        return Err(format!("{} does not run bare: {why}", command.display()).into());
    }
    let own = std::env::current_exe()?;
    // What `mcp exec` starts, bare.
    let shell = [OsStr::new("/bin/bash"), OsStr::new("-c"), command];
    let floor = vec![own.into_os_string(), FLOOR.into(), command.to_owned()];
    let mut entries = vec![
        Entry::try_out("bare", &bare)?,
        Entry::try_out("floor", &floor)?,
        Entry::try_out("bubblewrap", &bubblewrap(&[], [command.to_owned()]))?,
        Entry::try_out("bubblewrap /etc", &bubblewrap_all_of_etc([command.to_owned()]))?,
        Entry::try_out("mcp", &mcp(launcher, [command.to_owned()]))?,
        Entry::try_out("bare shell", &shell.map(OsString::from))?,
        Entry::try_out("mcp exec", &mcp_exec(launcher, project, command))?,
    ];
    if peers {
        entries.push(Entry::try_out("firejail", &firejail([command.to_owned()]))?);
        entries.push(Entry::try_out("srt", &srt([command.to_owned()])?)?);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_launcher_is_skipped_not_fatal() {
        let words = mcp(Path::new("/does/not/exist"), ["/bin/true".into()]);
        assert!(Entry::try_out("mcp", &words).unwrap().ready().is_none());
    }
}
