//! Entries that stay after a run, on directories of programs and packages, which many runs show. Pure.
//!
//! Stops: the walk over a Python or a store of 52,000 files at every start. Each directory has a capability SID of its own,
//! made from its path in the way in which Windows makes one from a name (since Windows 10). The entries let that SID read,
//! and they count for a process only if its token has the capability: a run gets those of the directories that its plan
//! shows, and no others. So an entry that stays opens nothing to a run that does not show the directory.
//!
//! What the user grants (`--read`, `--write`) has entries for the run's own SID, which are withdrawn. So has every directory
//! that an exclusion touches: an entry that stays would be there for a file that is denied in this run.
//!
//! Leaves open: a file that is moved or linked into a directory whose time of the last change is set back afterwards has
//! no entry, until `mcp doctor --clean` and the next run.

#[cfg(any(windows, test))]
use mcp_policy::WindowsPath;

use crate::core::request::{PlaceKind, Request};
use crate::windows::access::{self, Access, Grant};
use crate::windows::exclusion::Exclusion;
use crate::windows::facts::WindowsFacts;

/// Whether the entries of a grant stay. `exclusions` are those of the run.
pub fn is_lasting(
    grant: &Grant,
    request: &Request,
    facts: &WindowsFacts,
    exclusions: &[Exclusion],
) -> bool {
    let is_here = |place: &&crate::core::request::Place| {
        place.kind == PlaceKind::Directory
            && access::parsed(&place.path).is_ok_and(|path| path == grant.path)
    };
    let in_store = facts.store.as_ref().is_some_and(|store| grant.path.is_within(store));
    let is_asked = request.read.iter().any(|place| is_here(&place));
    let is_shown = request.shown.iter().any(|place| is_here(&place));
    let is_touched = exclusions.iter().any(|exclusion| {
        exclusion.path.is_within(&grant.path) || grant.path.is_within(&exclusion.path)
    });
    let is_program = is_shown && !is_asked;
    let is_package = is_asked && in_store;
    grant.access == Access::Read && (is_program || is_package) && !is_touched
}

/// The capability SID of a directory: S-1-15-3-1024 and the SHA-256 of a name in upper case, as
/// DeriveCapabilitySidsFromName makes it. One spelling of a path is as good as another.
#[cfg(any(windows, test))]
pub fn capability_sid(path: &WindowsPath) -> String {
    sid_of_name(&format!("mcp.shows {path}"))
}

#[cfg(any(windows, test))]
fn sid_of_name(name: &str) -> String {
    use sha2::{Digest, Sha256};
    let upper: Vec<u8> = name.to_uppercase().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let hash = Sha256::digest(&upper);
    let numbers = hash.chunks_exact(4).map(|four| {
        let four: [u8; 4] = four.try_into().unwrap_or_default();
        u32::from_le_bytes(four).to_string()
    });
    let numbers: Vec<String> = numbers.collect();
    format!("S-1-15-3-1024-{}", numbers.join("-"))
}

/// What is written down about a directory whose entries stay.
#[cfg(any(windows, test))]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The directory and the SID; written before the first entry is made.
    pub entry: Option<(String, String)>,
    /// Everything below had its entry at this time, in milliseconds since 1970.
    pub whole_since: Option<u64>,
}

#[cfg(any(windows, test))]
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(tag = "made", rename_all = "snake_case")]
enum Line {
    Entry { path: String, sid: String },
    Whole { since: u64 },
}

#[cfg(any(windows, test))]
impl Record {
    /// The last line of each kind counts. A line without its end was not finished.
    pub fn read(text: &str) -> Record {
        let mut record = Record::default();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match serde_json::from_str(line) {
                Ok(Line::Entry { path, sid }) => record.entry = Some((path, sid)),
                Ok(Line::Whole { since }) => record.whole_since = Some(since),
                Err(_) => {}
            }
        }
        record
    }

    /// The directory, if the SID is the one that it has: of another one there is no entry of ours.
    pub fn directory(&self) -> Option<WindowsPath> {
        use mcp_policy::windows_path::Spelling;
        let (path, sid) = self.entry.as_ref()?;
        let path = WindowsPath::parse(path, Spelling::Resolved).ok()?;
        (capability_sid(&path) == *sid).then_some(path)
    }

    pub fn entry_line(path: &WindowsPath) -> String {
        let line = Line::Entry { path: path.to_string(), sid: capability_sid(path) };
        text(&line)
    }

    pub fn whole_line(since: u64) -> String {
        text(&Line::Whole { since })
    }
}

#[cfg(any(windows, test))]
fn text(line: &Line) -> String {
    serde_json::to_string(line).map(|text| text + "\n").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::container_world::path;

    /// The two SIDs stand in Chromium's installer, which lets its containers read its directory by them; the third is in
    /// the access lists of every Windows 10.
    #[test]
    fn a_name_becomes_the_sid_that_windows_makes_of_it() {
        for (name, sid) in [
            (
                "chromeInstallFiles",
                "S-1-15-3-1024-3424233489-972189580-2057154623-747635277-1604371224-316187997-3786583170-1043257646",
            ),
            (
                "lpacChromeInstallFiles",
                "S-1-15-3-1024-2302894289-466761758-1166120688-1039016420-2430351297-4240214049-4028510897-3317428798",
            ),
            (
                "registryRead",
                "S-1-15-3-1024-1065365936-1281604716-3511738428-1654721687-432734479-3232135806-4053264122-3456934681",
            ),
        ] {
            assert_eq!(sid_of_name(name), sid, "{name}");
        }
        assert_eq!(capability_sid(&path(r"C:\Tools\X")), capability_sid(&path(r"c:\tools\x")));
        assert_ne!(capability_sid(&path(r"C:\tools\x")), capability_sid(&path(r"C:\tools\y")));
        assert!(crate::windows::dacl::sid(&capability_sid(&path(r"C:\tools"))).is_some());
    }

    #[test]
    fn a_record_reads_back_whatever_the_moment_of_death() {
        let at = path(r"C:\tools\node");
        let text = Record::entry_line(&at) + &Record::whole_line(7) + &Record::whole_line(9);
        let whole = Record::read(&text);
        assert_eq!((whole.directory(), whole.whole_since), (Some(at.clone()), Some(9)));
        for length in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let record = Record::read(&text[..length]);
            assert!(record.whole_since.is_none_or(|since| since == 7), "{length}");
            assert!(record.whole_since.is_none() || record.directory().is_some(), "{length}");
        }
    }

    /// A command that can write there could write a record of its own.
    #[test]
    fn a_record_with_another_sid_names_no_directory() {
        let forged = r#"{"made":"entry","path":"C:\\Users\\me","sid":"S-1-1-0"}"#.to_owned() + "\n";
        assert_eq!(Record::read(&forged).directory(), None);
        let other = Record::entry_line(&path(r"C:\a")).replace(r"C:\\a", r"C:\\b");
        assert_eq!(Record::read(&other).directory(), None);
        assert_eq!(Record::read("").directory(), None);
    }
}
