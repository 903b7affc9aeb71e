//! The paths that a watched command used, within bounds.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::lookup::LookupOutcome;
use super::reading::PathCall;
use crate::core::request::Request;
use crate::core::watched::{MissingPath, UsedGrant, Watched, WatchedAct};

/// Different places that are kept. A program that looks for more is no program that a person wants to read about.
const MOST: usize = 20_000;
/// Bytes of all their names together.
const MOST_BYTES: usize = 4 << 20;

pub struct PathRecord {
    missing: HashMap<(PathBuf, WatchedAct), (u64, f64)>,
    bytes: usize,
    /// Granted places, and what was done there.
    grants: Vec<GrantedPath>,
    calls: u64,
    unread: u64,
    cut_off: Option<String>,
}

struct GrantedPath {
    path: PathBuf,
    used: Option<GrantUse>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GrantUse {
    Read,
    Written,
}

impl PathRecord {
    pub fn new(request: &Request) -> PathRecord {
        let places = request.read.iter().chain(&request.write).chain(&request.unix);
        let grants = places.map(|place| GrantedPath { path: place.path.clone(), used: None });
        PathRecord {
            missing: HashMap::new(),
            bytes: 0,
            grants: grants.collect(),
            calls: 0,
            unread: 0,
            cut_off: None,
        }
    }

    pub fn announced(&mut self) {
        self.calls += 1;
    }

    /// Our own process, before it becomes the command, cannot be read; it wants nothing.
    pub fn unread(&mut self) {
        self.unread += 1;
    }

    pub fn is_full(&self) -> bool {
        self.cut_off.is_some()
    }

    pub fn note(&mut self, wanted: PathCall, outcome: LookupOutcome) {
        match outcome {
            LookupOutcome::There(place) => self.used(&place, wanted.act),
            LookupOutcome::Missing => self.missing(wanted),
        }
    }

    fn used(&mut self, place: &Path, act: WatchedAct) {
        let used = match act {
            WatchedAct::Look | WatchedAct::Read | WatchedAct::Connect => GrantUse::Read,
            _ => GrantUse::Written,
        };
        for grant in self.grants.iter_mut().filter(|grant| place.starts_with(&grant.path)) {
            grant.used = grant.used.max(Some(used));
        }
    }

    fn missing(&mut self, mut wanted: PathCall) {
        let is_temporary = ["/tmp", "/var/tmp"].iter().any(|own| wanted.path.starts_with(own));
        // Elsewhere it could not be made.
        if wanted.act == WatchedAct::MadeInstead && !is_temporary {
            wanted.act = WatchedAct::Create;
        }
        let length = wanted.path.as_os_str().len();
        let key = (wanted.path, wanted.act);
        if let Some((times, _)) = self.missing.get_mut(&key) {
            *times += 1;
            return;
        }
        if self.missing.len() >= MOST || self.bytes + length > MOST_BYTES {
            self.cut_off = Some(format!(
                "the command looked for more than {MOST} places that are not there, or for names of more than {} MiB together; later ones were not noted",
                MOST_BYTES >> 20
            ));
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        self.bytes += length;
        self.missing.insert(key, (1, now));
    }

    pub fn take(&mut self) -> Watched {
        // TOML and JSON are UTF-8; a name that is not can be in no policy.
        let is_utf8 = |(path, _): &&(PathBuf, WatchedAct)| path.to_str().is_some();
        let all = self.missing.len();
        let not_utf8 = (all - self.missing.keys().filter(is_utf8).count()) as u64;
        let named = |((path, act), (times, first)): ((PathBuf, WatchedAct), (u64, f64))| {
            Some(MissingPath { path: path.into_os_string().into_string().ok()?, act, times, first })
        };
        let mut missing: Vec<MissingPath> =
            std::mem::take(&mut self.missing).into_iter().filter_map(named).collect();
        missing.sort_by(|one, two| {
            one.first
                .total_cmp(&two.first)
                .then_with(|| (&one.path, one.act).cmp(&(&two.path, two.act)))
        });
        let used = self.grants.iter().filter_map(|grant| {
            let written = grant.used? == GrantUse::Written;
            Some(UsedGrant { path: grant.path.to_str()?.to_owned(), written })
        });
        Watched {
            missing,
            used: used.collect(),
            calls: self.calls,
            unread: self.unread,
            not_utf8,
            cut_off: self.cut_off.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> PathRecord {
        PathRecord {
            missing: HashMap::new(),
            bytes: 0,
            grants: vec![GrantedPath { path: "/srv/notes".into(), used: None }],
            calls: 0,
            unread: 0,
            cut_off: None,
        }
    }

    fn wanted(path: &str, act: WatchedAct) -> PathCall {
        PathCall { path: path.into(), act, follows: true }
    }

    #[test]
    fn the_same_place_is_counted() {
        let mut record = record();
        for _ in 0..3 {
            record.note(wanted("/x", WatchedAct::Read), LookupOutcome::Missing);
        }
        record.note(wanted("/x", WatchedAct::Look), LookupOutcome::Missing);
        let watched = record.take();
        assert_eq!(watched.missing.len(), 2);
        assert_eq!(watched.missing[0].times, 3);
    }

    #[test]
    fn names_that_are_not_utf8_are_counted() {
        use std::os::unix::ffi::OsStrExt;
        let mut record = record();
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/srv/\xff"));
        record
            .note(PathCall { path, act: WatchedAct::Read, follows: true }, LookupOutcome::Missing);
        record.note(wanted("/x", WatchedAct::Read), LookupOutcome::Missing);
        let watched = record.take();
        assert_eq!((watched.missing.len(), watched.not_utf8), (1, 1));
    }

    #[test]
    fn grants_are_used_or_not() {
        let mut record = record();
        assert_eq!(record.take().used, []);
        record.note(
            wanted("/srv/notes/a", WatchedAct::Create),
            LookupOutcome::There("/srv/notes".into()),
        );
        record.note(
            wanted("/srv/notes/a", WatchedAct::Read),
            LookupOutcome::There("/srv/notes/a".into()),
        );
        record.note(
            wanted("/srv/notesx", WatchedAct::Read),
            LookupOutcome::There("/srv/notesx".into()),
        );
        assert_eq!(
            record.take().used,
            [UsedGrant { path: "/srv/notes".to_owned(), written: true }]
        );
    }

    #[test]
    fn a_flood_is_cut_off_and_told() {
        let mut record = record();
        for number in 0..MOST + 10 {
            record.note(wanted(&format!("/x/{number}"), WatchedAct::Read), LookupOutcome::Missing);
        }
        assert!(record.is_full());
        let watched = record.take();
        assert_eq!(watched.missing.len(), MOST);
        assert!(watched.cut_off.is_some());
        // Few long names are as much.
        let mut record = self::record();
        for number in 0..2_000 {
            let name = format!("/{}/{number}", "x".repeat(4_000));
            record.note(wanted(&name, WatchedAct::Read), LookupOutcome::Missing);
        }
        assert!(record.is_full() && record.bytes <= MOST_BYTES);
    }
}
