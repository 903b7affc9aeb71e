use proptest::prelude::*;

use super::*;
use crate::core::request::{Denied, Home, Place};
use crate::linux::plan::{arbitrary, sample};
use crate::linux::view;

fn place(path: &str) -> Place {
    Place { path: path.into(), kind: PlaceKind::Directory }
}

fn denied(path: &str) -> Denied {
    Denied { path: path.into(), kind: DeniedKind::Directory, rule: 0 }
}

fn request(read: &[&str], write: &[&str], denials: &[&str]) -> Request {
    let mut request = sample::request();
    request.policy = sample::policy(|flags| {
        flags.deny("**/x");
    });
    request.read = read.iter().map(|path| place(path)).collect();
    request.write = write.iter().map(|path| place(path)).collect();
    request.denied = denials.iter().map(|path| denied(path)).collect();
    request
}

/// What is held and what is masked.
fn closed(request: &Request) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let placed = view::steps(request, &sample::facts(1000), 1000, 1000);
    let closing = closing(request, &placed).unwrap();
    let held = closing.hold.map(|hold| hold.places).unwrap_or_default();
    (held, closing.closed.masks.into_iter().map(|mask| mask.at).collect())
}

#[track_caller]
fn closes(request: &Request, held: &[&str], masked: &[&str]) {
    let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(closed(request), (paths(held), paths(masked)));
}

#[test]
fn directories_above_a_mask_are_held_where_they_could_be_renamed() {
    closes(&request(&["/r"], &[], &["/r/a/b/x"]), &[], &["/r/a/b/x"]);
    closes(&request(&[], &["/w"], &["/w/x"]), &[], &["/w/x"]);
    closes(&request(&[], &["/w"], &["/w/a/b/x"]), &["/w/a", "/w/a/b"], &["/w/a/b/x"]);
    closes(&request(&["/r"], &["/r/w"], &["/r/w/a/x"]), &["/r/w/a"], &["/r/w/a/x"]);
}

#[test]
fn what_is_not_shown_is_not_masked() {
    closes(&request(&["/r"], &[], &["/s/x", "/rx"]), &[], &[]);
    closes(&request(&[], &[], &["/usr/bin/x", "/tmp/x"]), &[], &["/usr/bin/x"]);
}

#[test]
fn a_kept_home_is_masked_where_it_stands() {
    let mut request = request(&[], &[], &["/data/home/a/x", "/home/mcp/b"]);
    request.home = Home::Kept("/data/home".into());
    closes(&request, &["/home/mcp/a"], &["/home/mcp/a/x"]);
}

#[test]
fn the_system_can_be_denied_as_a_whole() {
    closes(&request(&[], &[], &["/usr"]), &[], &["/usr"]);
    closes(&request(&[], &[], &["/"]), &[], &["/usr"]);
}

#[test]
fn the_intent_says_what_was_withdrawn_and_what_is_not_covered() {
    let mut request = request(&[], &[], &[]);
    request.withdrawn = vec!["/a".into(), "/b".into()];
    let Intent::Enforce { by } = intent(&request) else { panic!() };
    assert!(
        by.contains("grants withdrawn: /a, /b; not covered: what comes to match later"),
        "{by}"
    );
    assert_eq!(intent(&sample::request()), Intent::NotRequested);
}

proptest! {
    #[test]
    fn nothing_denied_is_left_open_and_no_way_to_it_can_be_renamed(
        mut request in arbitrary::request(),
        facts in arbitrary::facts(),
        denials in proptest::collection::vec((arbitrary::place(), any::<bool>()), 0..4),
    ) {
        request.policy = sample::policy(|flags| { flags.deny("**/x"); });
        request.denied = denials.into_iter().map(|(place, below)| Denied {
            path: if below { place.path.join("below") } else { place.path },
            kind: DeniedKind::Directory,
            rule: 0,
        }).collect();
        let placed = view::steps(&request, &facts, 1000, 1000);
        let mounts: Vec<_> = placed.iter().filter_map(VisibleMount::of).collect();
        let Closing { hold, closed } = closing(&request, &placed).unwrap();
        let is_masked = |path: &Path| closed.masks.iter().any(|mask| path.starts_with(&mask.at));
        let held = hold.map(|hold| hold.places).unwrap_or_default();
        let is_fixed = |path: &Path| {
            mounts.iter().any(|mount| mount.at == path) || held.iter().any(|held| held == path)
        };
        for denied in &request.denied {
            for mount in &mounts {
                let Ok(below) = denied.path.strip_prefix(mount.from) else { continue };
                let at = mount.at.join(below);
                let over = over(&mounts, &at).unwrap();
                if over.from.join(at.strip_prefix(over.at).unwrap()) != denied.path {
                    continue;
                }
                prop_assert!(is_masked(&at), "{} is open", at.display());
                for above in at.ancestors().skip(1) {
                    let writable = super::over(&mounts, above)
                        .is_some_and(|over| over.access == Access::ReadWrite);
                    prop_assert!(!writable || is_fixed(above), "{} moves", above.display());
                }
            }
        }
        // Parents first: what is held later must not hide what was masked or held before.
        prop_assert!(held.is_sorted());
    }
}
