//! The DACL entries that a container gets: one for each grant, and one for attributes on each directory above. Pure.
//!
//! A process in an AppContainer can open a file only if the file's DACL has an entry for the container's SID, or for
//! ALL APPLICATION PACKAGES (S-1-15-2-1), which Windows and Program Files have. Files below inherit the entry. Each
//! run has a new SID, so that runs at the same time do not remove each other's entries.

use std::fmt;
use std::path::Path;

use mcp_policy::WindowsPath;
use mcp_policy::windows_path::Spelling;
use serde::Serialize;

use crate::windows::win32::{
    DELETE, FILE_APPEND_DATA, FILE_DELETE_CHILD, FILE_EXECUTE, FILE_READ_ATTRIBUTES,
    FILE_READ_DATA, FILE_READ_EA, FILE_WRITE_ATTRIBUTES, FILE_WRITE_DATA, FILE_WRITE_EA,
    READ_CONTROL, SYNCHRONIZE,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// FILE_READ_ATTRIBUTES, not inherited: Node calls `lstat` on every directory above its script.
    Attributes,
    Read,
    Write,
}

impl Access {
    /// The access mask of the entry. It never includes WRITE_DAC or WRITE_OWNER.
    pub fn mask(self) -> u32 {
        const READ: u32 = FILE_READ_DATA
            | FILE_READ_EA
            | FILE_EXECUTE
            | FILE_READ_ATTRIBUTES
            | READ_CONTROL
            | SYNCHRONIZE;
        const WRITE: u32 = FILE_WRITE_DATA
            | FILE_APPEND_DATA
            | FILE_WRITE_EA
            | FILE_DELETE_CHILD
            | FILE_WRITE_ATTRIBUTES
            | DELETE;
        match self {
            Access::Attributes => FILE_READ_ATTRIBUTES | SYNCHRONIZE,
            Access::Read => READ,
            Access::Write => READ | WRITE,
        }
    }

    pub fn is_inherited(self) -> bool {
        self != Access::Attributes
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Attributes => "read attributes of",
            Access::Read => "read",
            Access::Write => "read and write",
        })
    }
}

/// What cmd.exe, PowerShell and Node ask of a drive's root: its attributes, not the names in it (microsoft/mxc grants the
/// same mask by its host-prep).
#[cfg(any(windows, test))]
pub const DRIVE_ROOT: u32 = FILE_READ_ATTRIBUTES | FILE_READ_EA | READ_CONTROL | SYNCHRONIZE;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    pub path: WindowsPath,
    pub access: Access,
}

/// A path of this system as Windows reads it.
pub fn parsed(path: &Path) -> Result<WindowsPath, &'static str> {
    let text = path.to_str().ok_or("is not valid Unicode")?;
    WindowsPath::parse(text, Spelling::Resolved)
}

/// The grants that need an entry: without those that another one covers, and with the directories above.
pub fn needed(wanted: Vec<Grant>, is_readable: impl Fn(&WindowsPath) -> bool) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for grant in wanted {
        let is_covered =
            |other: &Grant| grant.path.is_within(&other.path) && other.access >= grant.access;
        let is_open = grant.access == Access::Read && is_readable(&grant.path);
        if is_open || grants.iter().any(is_covered) {
            continue;
        }
        grants.retain(|other| !(other.path.is_within(&grant.path) && other.access <= grant.access));
        grants.push(grant);
    }
    let mut above: Vec<WindowsPath> = Vec::new();
    for path in grants.iter().flat_map(|grant| grant.path.ancestors()) {
        let is_seen = grants.iter().any(|grant| path.is_within(&grant.path));
        if !is_seen && !path.is_root() && !above.contains(&path) {
            above.push(path);
        }
    }
    grants.extend(above.into_iter().map(|path| Grant { path, access: Access::Attributes }));
    grants
}

#[cfg(test)]
mod tests {
    use mcp_policy::windows_path::Spelling;
    use proptest::prelude::*;

    use super::*;
    use crate::windows::win32::{WRITE_DAC, WRITE_OWNER};

    fn path(text: &str) -> WindowsPath {
        WindowsPath::parse(text, Spelling::Resolved).unwrap()
    }

    fn shown(grants: &[Grant]) -> Vec<String> {
        grants.iter().map(|grant| format!("{} {}", grant.access, grant.path)).collect()
    }

    fn grant(access: Access, text: &str) -> Grant {
        Grant { path: path(text), access }
    }

    #[test]
    fn directories_above_get_attributes_only() {
        let wanted = vec![grant(Access::Read, r"C:\a\b"), grant(Access::Write, r"C:\a\c\d")];
        assert_eq!(
            shown(&needed(wanted, |_| false)),
            [
                r"read C:\a\b",
                r"read and write C:\a\c\d",
                r"read attributes of C:\a",
                r"read attributes of C:\a\c"
            ]
        );
    }

    #[test]
    fn a_covered_path_needs_no_entry() {
        let wanted = vec![
            grant(Access::Read, r"C:\a\b"),
            grant(Access::Write, r"C:\A"),
            grant(Access::Read, r"C:\a\c"),
            grant(Access::Read, r"C:\Windows\System32"),
            grant(Access::Write, r"C:\Windows\Temp"),
        ];
        let windows = path(r"C:\Windows");
        assert_eq!(
            shown(&needed(wanted, |path| path.is_within(&windows))),
            [
                r"read and write C:\A",
                r"read and write C:\Windows\Temp",
                r"read attributes of C:\Windows"
            ]
        );
    }

    #[test]
    fn a_write_below_a_read_stays() {
        let wanted = vec![grant(Access::Read, r"C:\a"), grant(Access::Write, r"C:\a\b")];
        assert_eq!(shown(&needed(wanted, |_| false)), [r"read C:\a", r"read and write C:\a\b"]);
    }

    #[test]
    fn no_mask_changes_the_dacl_or_the_owner() {
        for access in [Access::Attributes, Access::Read, Access::Write] {
            assert_eq!(access.mask() & (WRITE_DAC | WRITE_OWNER), 0, "{access:?}");
        }
        assert_eq!(DRIVE_ROOT, 0x12_0088);
        assert_eq!(Access::Read.mask(), 0x1200a9);
        assert_eq!(Access::Write.mask(), 0x1301ff);
        assert_eq!(Access::Read.mask() & (Access::Write.mask() ^ Access::Read.mask()), 0);
    }

    proptest! {
        /// An entry at least as strong covers everything wanted; no path gets more than was wanted for it.
        #[test]
        fn entries_are_what_was_wanted(wanted in prop::collection::vec(
            (prop::collection::vec("[a-cA-C]", 0..5), any::<bool>()), 0..8)) {
            let wanted: Vec<Grant> = wanted.into_iter().map(|(names, is_write)| Grant {
                path: path(&format!(r"C:\{}", names.join("\\"))),
                access: if is_write { Access::Write } else { Access::Read },
            }).collect();
            let made = needed(wanted.clone(), |_| false);
            for grant in &wanted {
                prop_assert!(made.iter().any(|e| grant.path.is_within(&e.path) && e.access >= grant.access));
            }
            for entry in made.iter().filter(|entry| entry.access != Access::Attributes) {
                prop_assert!(wanted.contains(entry) || wanted.iter().any(|w| w.path == entry.path && w.access == entry.access));
            }
        }
    }
}
