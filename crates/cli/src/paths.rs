//! Where `mcp` keeps its own files, by the custom of each system.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use mcp_policy::windows_path;

/// A path without links, in the spelling that programs know.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map(windows_path::plain)
}

pub fn home() -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    absolute(name)
}

pub fn config_file() -> Option<PathBuf> {
    Some(directory("XDG_CONFIG_HOME", ".config", "APPDATA")?.join("config.toml"))
}

/// Homes that outlive a run, one for each name.
pub fn homes() -> Option<PathBuf> {
    Some(written("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")?.join("homes"))
}

/// What packages keep between their runs.
pub fn package_data() -> Option<PathBuf> {
    Some(written("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")?.join("data"))
}

/// The packages.
pub fn store() -> Option<PathBuf> {
    Some(written("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")?.join("store"))
}

/// What installations downloaded.
pub fn downloads() -> Option<PathBuf> {
    Some(written("XDG_CACHE_HOME", ".cache", "LOCALAPPDATA")?.join("downloads"))
}

/// What `mcp wire` changed, and the files as they were.
pub fn wire() -> Option<PathBuf> {
    Some(written("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")?.join("wire"))
}

/// Credentials for registries.
pub fn credentials() -> Option<PathBuf> {
    Some(written("XDG_CONFIG_HOME", ".config", "APPDATA")?.join("credentials.json"))
}

/// What was run. Without HOME it is in the home of the account: a log that an empty environment turns off would be none.
pub fn audit_log() -> Option<PathBuf> {
    let known = written("XDG_STATE_HOME", ".local/state", "LOCALAPPDATA");
    let of_account = || {
        let below =
            if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/state" };
        Some(account::own_home()?.join(below).join("mcp"))
    };
    Some(known.or_else(of_account)?.join("log.jsonl"))
}

fn directory(variable: &str, below_home: &str, windows: &str) -> Option<PathBuf> {
    let base = if cfg!(windows) {
        absolute(windows)
    } else {
        let named = absolute(variable).filter(|_| cfg!(not(target_os = "macos")));
        named.or_else(|| Some(existing(home()?)?.join(below(below_home))))
    };
    base.map(|base| base.join("mcp"))
}

/// For what is written. Root by way of `sudo` or `su -m` has the HOME of another user, who could use nothing of
/// what root made there afterwards, not even the log: root then has its own.
fn written(variable: &str, below_home: &str, windows: &str) -> Option<PathBuf> {
    let directory = directory(variable, below_home, windows)?;
    match account::is_of_another(&directory) {
        true => Some(existing(account::home_of_root()?)?.join(below(below_home)).join("mcp")),
        false => Some(directory),
    }
}

fn below(below_home: &str) -> &str {
    if cfg!(target_os = "macos") { "Library/Application Support" } else { below_home }
}

/// A home that is not there is not made: system accounts name one on purpose.
fn existing(home: PathBuf) -> Option<PathBuf> {
    home.is_dir().then_some(home)
}

/// Relative values are against the XDG rules, and would depend on where one stands.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(unix)]
mod account {
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use mcp_files::Links;

    /// Whether we are root, and another user has a say in where this leads: owns a directory on the way, or
    /// a link. What a user namespace does not map is owned by no user that could act in it.
    pub fn is_of_another(directory: &Path) -> bool {
        if !rustix::process::geteuid().is_root() {
            return false;
        }
        let found = |path: &'_ Path| Some(std::fs::symlink_metadata(path).ok()?.uid());
        let owners = directory.ancestors().filter_map(|path| Some((path, found(path)?)));
        let mut others = owners.filter(|(_, owner)| *owner != 0).peekable();
        // Only where there are any: everybody else need not read the map.
        others.peek().is_some() && {
            let map =
                mcp_files::read_text(Path::new("/proc/self/uid_map"), 64 << 10, Links::Follow);
            others.any(|(path, owner)| {
                map.as_ref().map_or(true, |map| is_mapped(owner, map))
                    && !(owner == OVERFLOW && is_unmapped(path))
            })
        }
    }

    /// The kernel's number for owners that a user namespace does not map. Root of a rootless container has 65,536
    /// ids, and this is one of them too.
    const OVERFLOW: u32 = 65_534;

    /// Whether a directory's owner is not mapped: the capabilities to read everywhere and to act as the owner of every
    /// file do not hold for it then. O_NOATIME is the owner's alone, and asks without changing anything.
    #[cfg(target_os = "linux")]
    fn is_unmapped(directory: &Path) -> bool {
        use rustix::fs::{Mode, OFlags, open};
        use rustix::io::Errno;
        use rustix::thread::{CapabilitySet, capabilities};

        let needed = CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER;
        let is_able = capabilities(None).is_ok_and(|held| held.effective.contains(needed));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = open(directory, flags | OFlags::NOATIME, Mode::empty());
        is_able && matches!(opened, Err(Errno::PERM | Errno::ACCESS))
    }

    #[cfg(not(target_os = "linux"))]
    fn is_unmapped(_: &Path) -> bool {
        false
    }

    /// Lines of: first inside, first outside, how many.
    fn is_mapped(uid: u32, map: &str) -> bool {
        map.lines().any(|line| {
            let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
            let (first, length) = (numbers.next().flatten(), numbers.nth(1).flatten());
            let (Some(first), Some(length)) = (first, length) else {
                return true;
            };
            (first..first.saturating_add(length)).contains(&u64::from(uid))
        })
    }

    pub fn home_of_root() -> Option<PathBuf> {
        Some(home_of(0).unwrap_or_else(|| "/root".into()))
    }

    /// The caller's, as the account database has it, where that directory is there.
    #[cfg(target_os = "linux")]
    pub fn own_home() -> Option<PathBuf> {
        home_of(rustix::process::getuid().as_raw()).filter(|home| home.is_dir())
    }

    #[cfg(not(target_os = "linux"))]
    pub fn own_home() -> Option<PathBuf> {
        std::env::home_dir().filter(|home| home.is_absolute() && home.is_dir())
    }

    /// Read here: a static program must not load the modules that a look-up may take.
    fn home_of(uid: u32) -> Option<PathBuf> {
        let accounts = mcp_files::read(Path::new("/etc/passwd"), 16 << 20, Links::Follow).ok()?;
        home_in(&String::from_utf8_lossy(&accounts), uid)
    }

    /// The sixth field of the first line whose third is the number, as for the C library.
    fn home_in(accounts: &str, uid: u32) -> Option<PathBuf> {
        let home = accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_own = fields.nth(2)?.parse() == Ok(uid);
            fields.nth(2).filter(|_| is_own)
        })?;
        Some(PathBuf::from(home)).filter(|home| home.is_absolute())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn homes_of_accounts() {
            let accounts = "root:x:0:0:root:/root:/bin/bash\nbroken\n# 7:7\n\
                            daemon:x:1:1::relative:/x\nme:x:1000:1000:Me,,,:/home/me:/bin/sh\ntoor:x:0:0::/x:/bin/sh";
            assert_eq!(home_in(accounts, 0), Some("/root".into()));
            assert_eq!(home_in(accounts, 1000), Some("/home/me".into()));
            assert_eq!(home_in(accounts, 1), None);
            assert_eq!(home_in(accounts, 7), None);
        }

        #[test]
        fn what_a_namespace_does_not_map_is_nobodys() {
            let whole = "         0          0 4294967295\n";
            let one = "         0       1000          1\n";
            assert!(is_mapped(1000, whole) && is_mapped(65534, whole));
            assert!(is_mapped(0, one) && !is_mapped(65534, one));
            assert!(is_mapped(5, "nonsense") && !is_mapped(5, ""));
        }
    }
}

#[cfg(not(unix))]
mod account {
    use std::path::{Path, PathBuf};

    pub fn is_of_another(_: &Path) -> bool {
        false
    }

    pub fn home_of_root() -> Option<PathBuf> {
        None
    }

    pub fn own_home() -> Option<PathBuf> {
        None
    }
}
