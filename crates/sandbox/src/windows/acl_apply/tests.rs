use proptest::prelude::*;

use super::*;
use crate::windows::container_world::{Drive, ours, path};
use crate::windows::dacl::sid;
use crate::windows::dacl::tests::empty;

fn another() -> Vec<u8> {
    sid("S-1-15-2-9-9-9-9-9-9-9").unwrap()
}

fn project() -> Drive {
    Drive::with(&[
        r"C:\p\",
        r"C:\p\.env",
        r"C:\p\main.rs",
        r"C:\p\src\",
        r"C:\p\src\lib.rs",
        r"C:\p\keys\",
        r"C:\p\keys\id",
        r"C:\p\.git\",
        r"C:\p\.git\HEAD",
        r"C:\p\.git\hooks\",
        r"C:\p\.git\hooks\pre-commit",
    ])
}

fn exclusions() -> Vec<Exclusion> {
    let exclusion = |text: &str, kind| Exclusion { path: path(text), kind };
    vec![
        exclusion(r"C:\P\.ENV", ExclusionKind::NoAccess),
        exclusion(r"C:\p\keys", ExclusionKind::NoAccess),
        exclusion(r"C:\p\.git", ExclusionKind::NoRename),
        exclusion(r"C:\p\.git\hooks", ExclusionKind::ReadOnly),
    ]
}

fn grant(access: Access) -> Grant {
    Grant { path: path(r"C:\p"), access }
}

#[test]
fn what_is_denied_is_closed_and_the_rest_open() {
    for access in [Access::Read, Access::Write] {
        let drive = project();
        add_aces(&drive, &ours(), &grant(access), &exclusions()).unwrap();
        for closed in [r"C:\p\.env", r"C:\p\keys", r"C:\p\keys\id"] {
            assert_eq!(drive.granted_access(closed, &ours()), 0, "{closed}");
        }
        for open in [r"C:\p", r"C:\p\main.rs", r"C:\p\src\lib.rs", r"C:\p\.git\HEAD"] {
            assert!(drive.reads(open), "{open}");
            assert_eq!(drive.writes_to(open), access == Access::Write, "{open}");
        }
    }
}

#[test]
fn what_is_protected_can_be_read_and_neither_changed_nor_replaced() {
    let drive = project();
    add_aces(&drive, &ours(), &grant(Access::Write), &exclusions()).unwrap();
    for path in [r"C:\p\.git\hooks", r"C:\p\.git\hooks\pre-commit"] {
        assert!(drive.reads(path) && !drive.writes_to(path) && !drive.removes(path), "{path}");
    }
    assert!(!drive.make(r"C:\p\.git\hooks\post-commit"));
    for held in [r"C:\p\.git", r"C:\p\.env", r"C:\p\keys"] {
        assert!(!drive.removes(held), "{held}");
    }
    // The control: what is not kept can be removed, and things can be made beside it.
    for free in [r"C:\p\main.rs", r"C:\p\src", r"C:\p\src\lib.rs", r"C:\p\.git\HEAD"] {
        assert!(drive.removes(free), "{free}");
    }
    for new in [r"C:\p\new", r"C:\p\.git\index"] {
        assert!(drive.make(new) && drive.writes_to(new) && drive.removes(new), "{new}");
    }
}

#[test]
fn another_name_of_a_denied_file_is_closed_as_well() {
    let drive = project();
    drive.link(r"C:\p\src\alias", r"C:\p\.env");
    drive.link(r"C:\p\src\deep", r"C:\p\keys\id");
    drive.link(r"C:\p\src\hook", r"C:\p\.git\hooks\pre-commit");
    drive.link(r"C:\p\src\free", r"C:\p\main.rs");
    add_aces(&drive, &ours(), &grant(Access::Write), &exclusions()).unwrap();
    for closed in [r"C:\p\src\alias", r"C:\p\src\deep", r"C:\p\.env", r"C:\p\keys\id"] {
        assert_eq!(drive.granted_access(closed, &ours()), 0, "{closed}");
    }
    assert!(drive.reads(r"C:\p\src\hook") && !drive.writes_to(r"C:\p\src\hook"));
    assert!(drive.writes_to(r"C:\p\src\free"));
}

#[test]
fn a_run_beside_it_changes_nothing_for_the_first() {
    let drive = project();
    add_aces(&drive, &ours(), &grant(Access::Write), &exclusions()).unwrap();
    let before = drive.objects.borrow().clone();
    add_aces(&drive, &another(), &grant(Access::Write), &[]).unwrap();
    assert!(drive.granted_access(r"C:\p\.env", &another()) != 0, "the other one has no such rule");
    assert_eq!(drive.granted_access(r"C:\p\.env", &ours()), 0);
    remove_aces(&drive, &another(), &path(r"C:\p")).unwrap();
    assert_eq!(*drive.objects.borrow(), before);
}

#[test]
fn nothing_is_left_not_even_on_what_was_made_meanwhile() {
    let drive = project();
    let before = drive.objects.borrow().clone();
    add_aces(&drive, &ours(), &grant(Access::Write), &exclusions()).unwrap();
    assert!(drive.make(r"C:\p\src\new"));
    remove_aces(&drive, &ours(), &path(r"C:\p")).unwrap();
    assert_eq!(drive.granted_access(r"C:\p\src\new", &ours()), 0);
    assert_eq!(drive.objects.borrow()[..before.len()], before);
}

/// A container's process is Low, and so is what it creates: other programs of the user could not write there later.
#[test]
fn labels_of_what_was_created_inside_are_cleared() {
    let drive = project();
    add_aces(&drive, &ours(), &grant(Access::Write), &exclusions()).unwrap();
    assert!(drive.make(r"C:\p\src\new"));
    let new = drive.open(&path(r"C:\p\src\new")).unwrap();
    drive.low.borrow_mut().push(new);
    remove_aces(&drive, &ours(), &path(r"C:\p")).unwrap();
    assert!(drive.low.borrow().is_empty());
    // A directory that the user made Low keeps its labels.
    add_aces(&drive, &ours(), &grant(Access::Write), &[]).unwrap();
    let root = drive.open(&path(r"C:\p")).unwrap();
    drive.low.borrow_mut().extend([root, new]);
    remove_aces(&drive, &ours(), &path(r"C:\p")).unwrap();
    assert_eq!(drive.low.borrow().len(), 2);
}

#[test]
fn only_attributes_go_no_deeper() {
    let drive = project();
    add_aces(&drive, &ours(), &grant(Access::Attributes), &[]).unwrap();
    assert_eq!(drive.granted_access(r"C:\p", &ours()), Access::Attributes.mask());
    assert_eq!(drive.granted_access(r"C:\p\main.rs", &ours()), 0);
}

#[test]
fn links_are_not_followed() {
    let drive = project();
    drive.add(&path(r"C:\p\mux endpoint"), Kind::ReparsePoint, empty());
    drive.add(&path(r"C:\p\mux endpoint\secret"), Kind::File, empty());
    add_aces(&drive, &ours(), &grant(Access::Write), &[]).unwrap();
    assert_eq!(drive.granted_access(r"C:\p\mux endpoint\secret", &ours()), 0);
}

proptest! {
    /// For any exclusions: a denied path has no access, a read-only one cannot be written, the rest is open.
    #[test]
    fn exclusions_hold(chosen in prop::collection::vec((0usize..9, 0usize..3), 0..5)) {
        let drive = project();
        let all: Vec<WindowsPath> = drive.paths.borrow().iter().map(|(path, _)| path.clone()).collect();
        let exclusions: Vec<Exclusion> = chosen.into_iter().map(|(at, kind)| Exclusion {
            path: all[at + 1].clone(),
            kind: [ExclusionKind::NoAccess, ExclusionKind::ReadOnly, ExclusionKind::NoRename][kind],
        }).collect();
        add_aces(&drive, &ours(), &grant(Access::Write), &exclusions).unwrap();
        for path in &all {
            let over = |kind| exclusions.iter().any(|k| k.kind == kind && path.is_within(&k.path));
            let text = path.to_string();
            prop_assert_eq!(drive.reads(&text), !over(ExclusionKind::NoAccess), "{} {:?}", text, exclusions);
            let written = !over(ExclusionKind::NoAccess) && !over(ExclusionKind::ReadOnly);
            prop_assert_eq!(drive.writes_to(&text), written, "{} {:?}", text, exclusions);
            if exclusions.iter().any(|exclusion| exclusion.path.is_within(path)) {
                prop_assert!(!drive.removes(&text), "{} {:?}", text, exclusions);
            }
        }
    }
}
