//! What a container is let at: entries for its own SID, one for each grant, and the least there is on the
//! directories above. Pure.
//!
//! A process in an AppContainer gets at a file only where an entry names its SID (or all containers, as
//! Windows and Program Files do). Entries are inherited by what is below. The SID is new with each run, so
//! runs at the same time do not withdraw each other's entries.

use std::fmt;

use mcp_policy::WindowsPath;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Only that a directory is there, and what kind of thing it is: Node asks that of every directory
    /// above its script. Not inherited.
    Attributes,
    Read,
    Write,
}

impl Access {
    /// The rights of the entry. Nothing that changes entries or owners.
    pub fn mask(self) -> u32 {
        const SYNCHRONIZE: u32 = 0x10_0000;
        const READ_CONTROL: u32 = 0x2_0000;
        const DELETE: u32 = 0x1_0000;
        const READ_ATTRIBUTES: u32 = 0x80;
        // Data, extended attributes, traversal.
        const READ: u32 = 0x1 | 0x8 | 0x20 | READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE;
        // Data, appending, extended attributes, children, attributes.
        const WRITE: u32 = 0x2 | 0x4 | 0x10 | 0x40 | 0x100 | DELETE;
        match self {
            Access::Attributes => READ_ATTRIBUTES | SYNCHRONIZE,
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
            Access::Attributes => "see that there is",
            Access::Read => "read",
            Access::Write => "read and write",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    pub path: WindowsPath,
    pub access: Access,
}

/// The entries for these paths: without those that another one covers, and with those above.
pub fn entries(wanted: Vec<Grant>, readable: &[WindowsPath]) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for grant in wanted {
        let is_covered =
            |other: &Grant| grant.path.is_within(&other.path) && other.access >= grant.access;
        let is_open =
            grant.access == Access::Read && readable.iter().any(|root| grant.path.is_within(root));
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
    fn directories_above_are_seen_and_no_more() {
        let wanted = vec![grant(Access::Read, r"C:\a\b"), grant(Access::Write, r"C:\a\c\d")];
        assert_eq!(
            shown(&entries(wanted, &[])),
            [
                r"read C:\a\b",
                r"read and write C:\a\c\d",
                r"see that there is C:\a",
                r"see that there is C:\a\c"
            ]
        );
    }

    #[test]
    fn what_is_covered_needs_no_entry() {
        let wanted = vec![
            grant(Access::Read, r"C:\a\b"),
            grant(Access::Write, r"C:\A"),
            grant(Access::Read, r"C:\a\c"),
            grant(Access::Read, r"C:\Windows\System32"),
            grant(Access::Write, r"C:\Windows\Temp"),
        ];
        let windows = [path(r"C:\Windows")];
        assert_eq!(
            shown(&entries(wanted, &windows)),
            [
                r"read and write C:\A",
                r"read and write C:\Windows\Temp",
                r"see that there is C:\Windows"
            ]
        );
    }

    #[test]
    fn a_write_below_a_read_stays() {
        let wanted = vec![grant(Access::Read, r"C:\a"), grant(Access::Write, r"C:\a\b")];
        assert_eq!(shown(&entries(wanted, &[])), [r"read C:\a", r"read and write C:\a\b"]);
    }

    #[test]
    fn no_entry_hands_out_entries_or_owners() {
        const WRITE_DAC: u32 = 0x4_0000;
        const WRITE_OWNER: u32 = 0x8_0000;
        for access in [Access::Attributes, Access::Read, Access::Write] {
            assert_eq!(access.mask() & (WRITE_DAC | WRITE_OWNER), 0, "{access:?}");
        }
        assert_eq!(Access::Read.mask(), 0x1200a9);
        assert_eq!(Access::Write.mask(), 0x1301ff);
        assert_eq!(Access::Read.mask() & (Access::Write.mask() ^ Access::Read.mask()), 0);
    }

    proptest! {
        /// Everything wanted is covered by an entry at least as strong; nothing stronger is granted than
        /// was wanted of that very path.
        #[test]
        fn entries_are_what_was_wanted(wanted in prop::collection::vec(
            (prop::collection::vec("[a-cA-C]", 0..5), any::<bool>()), 0..8)) {
            let wanted: Vec<Grant> = wanted.into_iter().map(|(names, is_write)| Grant {
                path: path(&format!(r"C:\{}", names.join("\\"))),
                access: if is_write { Access::Write } else { Access::Read },
            }).collect();
            let made = entries(wanted.clone(), &[]);
            for grant in &wanted {
                prop_assert!(made.iter().any(|e| grant.path.is_within(&e.path) && e.access >= grant.access));
            }
            for entry in made.iter().filter(|entry| entry.access != Access::Attributes) {
                prop_assert!(wanted.contains(entry) || wanted.iter().any(|w| w.path == entry.path && w.access == entry.access));
            }
        }
    }
}
