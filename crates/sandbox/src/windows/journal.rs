//! What a run changes on the machine, written down before the change: DACL entries on granted paths, the AppContainer
//! profile, the run's private directory. A launcher that was killed cannot undo them; the next launcher reads this and
//! does.

use serde::{Deserialize, Serialize};

use crate::core::run_record::RunId;
use crate::windows::facts::PROFILE;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "made", rename_all = "snake_case")]
pub enum Change {
    /// Called `scratch` by version 0.1, whose journals may still be there.
    #[serde(alias = "scratch")]
    RunDirectory {
        at: String,
    },
    Profile {
        name: String,
    },
    /// An entry for this SID, on this path and what is below.
    Entry {
        sid: String,
        path: String,
    },
}

impl Change {
    pub fn line(&self) -> Option<String> {
        serde_json::to_string(self).ok().map(|line| line + "\n")
    }
}

/// The changes in a journal. The change of an unfinished last line was not made yet.
pub fn read(text: &str) -> Vec<Change> {
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Whether a directory can be one of a run's own: `mcp-` and the run's name. Nothing else is removed, whatever a
/// journal says.
pub fn is_own_directory(at: &str) -> bool {
    let name = at.rsplit(['\\', '/']).next().unwrap_or_default();
    name.strip_prefix("mcp-").is_some_and(|name| RunId::parse(name).is_some())
}

/// Whether a profile can be one of a run's.
pub fn is_own_profile(name: &str) -> bool {
    name.strip_prefix(PROFILE).is_some_and(|name| RunId::parse(name).is_some())
}

/// Whether a SID is that of a single AppContainer. Those of all containers (S-1-15-2-1) stay in DACLs for good.
pub fn is_app_container_sid(sid: &str) -> bool {
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    sid.strip_prefix("S-1-15-2-").is_some_and(|rest| {
        let parts: Vec<&str> = rest.split('-').collect();
        parts.len() == 7 && parts.into_iter().all(is_number)
    })
}

/// In the order of undoing: DACL entries first, while their SID is known, the profile after them.
pub fn in_undo_order(made: Vec<Change>) -> impl Iterator<Item = Change> {
    made.into_iter().rev()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Change> {
        vec![
            Change::RunDirectory { at: r"C:\t\mcp-1".to_owned() },
            Change::Profile { name: "mcp.run.1".to_owned() },
            Change::Entry { sid: "S-1-15-2-1".to_owned(), path: "C:\\a \"b\"\\ü".to_owned() },
        ]
    }

    #[test]
    fn reads_what_was_written_whatever_the_moment_of_death() {
        let text: String = sample().iter().filter_map(Change::line).collect();
        assert_eq!(read(&text), sample());
        for length in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let seen = read(&text[..length]);
            assert_eq!(seen, sample()[..seen.len()], "{length}");
            assert!(seen.len() < 3);
        }
    }

    #[test]
    fn foreign_lines_are_not_obeyed() {
        assert_eq!(read("nonsense\n{\"made\":\"format\",\"at\":\"C:\"}\n"), []);
    }

    #[test]
    fn only_directories_of_runs_are_removed() {
        assert!(is_own_directory(r"C:\Users\you\AppData\Local\Temp\mcp-0123abcd"));
        for at in [
            "",
            r"C:\",
            r"C:\Users\you",
            r"C:\mcp-",
            r"C:\mcp-0123abcd\..",
            r"C:\mcp-0123ABCDE",
            r"C:\mcp-0123abcd\",
        ] {
            assert!(!is_own_directory(at), "{at}");
        }
    }

    /// A command with write access to the directory of journals could write one.
    #[test]
    fn only_containers_of_runs_are_taken_back() {
        assert!(is_own_profile("mcp.run.0123abcd"));
        for name in ["", "mcp.run.", "mcp.run.x", "Microsoft.WindowsStore_8wekyb3d8bbwe"] {
            assert!(!is_own_profile(name), "{name}");
        }
        assert!(is_app_container_sid("S-1-15-2-11-22-33-44-55-66-4294967295"));
        for sid in [
            "S-1-15-2-1",
            "S-1-15-2-2",
            "S-1-1-0",
            "S-1-15-2-1-2-3-4-5-6",
            "S-1-15-2-1-2-3-4-5-6-7-8",
            "S-1-15-2-1-2-3-4-5-6-4294967296",
            "S-1-15-2-1-2-3-4-5-6-",
            "S-1-15-3-1-2-3-4-5-6-7",
        ] {
            assert!(!is_app_container_sid(sid), "{sid}");
        }
    }

    #[test]
    fn the_profile_goes_after_its_entries() {
        let last: Vec<Change> = in_undo_order(sample()).collect();
        assert!(
            matches!(last[0], Change::Entry { .. })
                && matches!(last[2], Change::RunDirectory { .. })
        );
    }
}
