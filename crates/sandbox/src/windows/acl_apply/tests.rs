use std::cell::RefCell;

use mcp_policy::windows_path::Spelling;
use proptest::prelude::*;

use super::*;
use crate::windows::dacl::tests::empty;
use crate::windows::dacl::{Entry, INHERITED, sid};

fn path(text: &str) -> WindowsPath {
    WindowsPath::parse(text, Spelling::Resolved).unwrap()
}

fn ours() -> Vec<u8> {
    sid("S-1-15-2-1-2-3-4-5-6-7").unwrap()
}

fn another() -> Vec<u8> {
    sid("S-1-15-2-9-9-9-9-9-9-9").unwrap()
}

/// A drive in memory: paths lead to objects, and several may lead to the same one.
#[derive(Default)]
struct Drive {
    paths: RefCell<Vec<(WindowsPath, usize)>>,
    objects: RefCell<Vec<(Kind, List)>>,
}

impl Drive {
    fn with(paths: &[&str]) -> Drive {
        let drive = Drive::default();
        for text in paths {
            let kind = if text.ends_with('\\') { Kind::Directory } else { Kind::File };
            drive.add(&path(text), kind, empty());
        }
        drive
    }

    fn add(&self, at: &WindowsPath, kind: Kind, list: List) {
        let mut objects = self.objects.borrow_mut();
        objects.push((kind, list));
        self.paths.borrow_mut().push((at.clone(), objects.len() - 1));
    }

    /// One more name for the same file.
    fn link(&self, from: &str, to: &str) {
        let object = self.open(&path(to)).unwrap();
        self.paths.borrow_mut().push((path(from), object));
    }

    /// As the system does it: a new file inherits from the directory that it is made in.
    fn make(&self, text: &str) -> bool {
        const ADD_FILE: u32 = 0x2;
        let at = path(text);
        let above = self.list(&self.open(&at.parent().unwrap()).unwrap()).unwrap();
        if above.gives(&ours()) & ADD_FILE == 0 {
            return false;
        }
        let mut list = empty();
        if above.reaches_below(&ours()) {
            list = list.with(&[Entry::allow(&ours(), Access::Write.mask(), INHERITED)]);
        }
        self.add(&at, Kind::File, list);
        true
    }

    fn gives(&self, text: &str, sid: &[u8]) -> u32 {
        self.list(&self.open(&path(text)).unwrap()).unwrap().gives(sid)
    }

    fn reads(&self, text: &str) -> bool {
        self.gives(text, &ours()) & 1 != 0
    }

    fn writes(&self, text: &str) -> bool {
        self.gives(text, &ours()) & 2 != 0
    }

    /// By its own entry, or by that of the directory it is in.
    fn removes(&self, text: &str) -> bool {
        let above = path(text).parent().unwrap();
        let above = self.open(&above).ok().map(|object| self.list(&object).unwrap().gives(&ours()));
        self.gives(text, &ours()) & 0x1_0000 != 0 || above.unwrap_or_default() & 0x40 != 0
    }
}

impl Objects for Drive {
    type Object = usize;

    fn open(&self, path: &WindowsPath) -> io::Result<usize> {
        let paths = self.paths.borrow();
        let found = paths.iter().find(|(own, _)| own == path).map(|(_, object)| *object);
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn look(&self, object: &usize) -> io::Result<Look> {
        let names = self.paths.borrow().iter().filter(|(_, other)| other == object).count();
        let kind = self.objects.borrow()[*object].0;
        Ok(Look { kind, names: names as u32, id: (1, *object as u64) })
    }

    fn list(&self, object: &usize) -> io::Result<List> {
        Ok(self.objects.borrow()[*object].1.clone())
    }

    fn write(&self, object: &usize, list: &List) -> io::Result<()> {
        self.objects.borrow_mut()[*object].1 = list.clone();
        Ok(())
    }

    fn names(&self, directory: &WindowsPath) -> io::Result<Vec<String>> {
        let paths = self.paths.borrow();
        let below = paths.iter().filter(|(own, _)| own.parent().as_ref() == Some(directory));
        Ok(below.filter_map(|(own, _)| own.file_name().map(str::to_owned)).collect())
    }
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

fn keeps() -> Vec<Keep> {
    let keep = |text: &str, kept| Keep { path: path(text), kept };
    vec![
        keep(r"C:\P\.ENV", Kept::Closed),
        keep(r"C:\p\keys", Kept::Closed),
        keep(r"C:\p\.git", Kept::InPlace),
        keep(r"C:\p\.git\hooks", Kept::ReadOnly),
    ]
}

fn grant(access: Access) -> Grant {
    Grant { path: path(r"C:\p"), access }
}

#[test]
fn what_is_denied_is_closed_and_the_rest_open() {
    for access in [Access::Read, Access::Write] {
        let drive = project();
        let_in(&drive, &ours(), &grant(access), &keeps()).unwrap();
        for closed in [r"C:\p\.env", r"C:\p\keys", r"C:\p\keys\id"] {
            assert_eq!(drive.gives(closed, &ours()), 0, "{closed}");
        }
        for open in [r"C:\p", r"C:\p\main.rs", r"C:\p\src\lib.rs", r"C:\p\.git\HEAD"] {
            assert!(drive.reads(open), "{open}");
            assert_eq!(drive.writes(open), access == Access::Write, "{open}");
        }
    }
}

#[test]
fn what_is_protected_can_be_read_and_neither_changed_nor_replaced() {
    let drive = project();
    let_in(&drive, &ours(), &grant(Access::Write), &keeps()).unwrap();
    for kept in [r"C:\p\.git\hooks", r"C:\p\.git\hooks\pre-commit"] {
        assert!(drive.reads(kept) && !drive.writes(kept) && !drive.removes(kept), "{kept}");
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
        assert!(drive.make(new) && drive.writes(new) && drive.removes(new), "{new}");
    }
}

#[test]
fn another_name_of_a_denied_file_is_closed_as_well() {
    let drive = project();
    drive.link(r"C:\p\src\alias", r"C:\p\.env");
    drive.link(r"C:\p\src\deep", r"C:\p\keys\id");
    drive.link(r"C:\p\src\hook", r"C:\p\.git\hooks\pre-commit");
    drive.link(r"C:\p\src\free", r"C:\p\main.rs");
    let_in(&drive, &ours(), &grant(Access::Write), &keeps()).unwrap();
    for closed in [r"C:\p\src\alias", r"C:\p\src\deep", r"C:\p\.env", r"C:\p\keys\id"] {
        assert_eq!(drive.gives(closed, &ours()), 0, "{closed}");
    }
    assert!(drive.reads(r"C:\p\src\hook") && !drive.writes(r"C:\p\src\hook"));
    assert!(drive.writes(r"C:\p\src\free"));
}

#[test]
fn a_run_beside_it_changes_nothing_for_the_first() {
    let drive = project();
    let_in(&drive, &ours(), &grant(Access::Write), &keeps()).unwrap();
    let before = drive.objects.borrow().clone();
    let_in(&drive, &another(), &grant(Access::Write), &[]).unwrap();
    assert!(drive.gives(r"C:\p\.env", &another()) != 0, "the other one has no such rule");
    assert_eq!(drive.gives(r"C:\p\.env", &ours()), 0);
    shut_out(&drive, &another(), &path(r"C:\p")).unwrap();
    assert_eq!(*drive.objects.borrow(), before);
}

#[test]
fn nothing_is_left_not_even_on_what_was_made_meanwhile() {
    let drive = project();
    let before = drive.objects.borrow().clone();
    let_in(&drive, &ours(), &grant(Access::Write), &keeps()).unwrap();
    assert!(drive.make(r"C:\p\src\new"));
    shut_out(&drive, &ours(), &path(r"C:\p")).unwrap();
    assert_eq!(drive.gives(r"C:\p\src\new", &ours()), 0);
    assert_eq!(drive.objects.borrow()[..before.len()], before);
}

#[test]
fn only_attributes_go_no_deeper() {
    let drive = project();
    let_in(&drive, &ours(), &grant(Access::Attributes), &[]).unwrap();
    assert_eq!(drive.gives(r"C:\p", &ours()), Access::Attributes.mask());
    assert_eq!(drive.gives(r"C:\p\main.rs", &ours()), 0);
}

#[test]
fn links_are_not_followed() {
    let drive = project();
    drive.add(&path(r"C:\p\junction"), Kind::Link, empty());
    drive.add(&path(r"C:\p\junction\secret"), Kind::File, empty());
    let_in(&drive, &ours(), &grant(Access::Write), &[]).unwrap();
    assert_eq!(drive.gives(r"C:\p\junction\secret", &ours()), 0);
}

proptest! {
    /// Whatever is kept where: closed is closed, read-only is not written, and the rest is open.
    #[test]
    fn kept_is_kept(kept in prop::collection::vec((0usize..9, 0usize..3), 0..5)) {
        let drive = project();
        let all: Vec<WindowsPath> = drive.paths.borrow().iter().map(|(path, _)| path.clone()).collect();
        let keeps: Vec<Keep> = kept.into_iter().map(|(at, kind)| Keep {
            path: all[at + 1].clone(),
            kept: [Kept::Closed, Kept::ReadOnly, Kept::InPlace][kind],
        }).collect();
        let_in(&drive, &ours(), &grant(Access::Write), &keeps).unwrap();
        for path in &all {
            let over = |kept| keeps.iter().any(|k| k.kept == kept && path.is_within(&k.path));
            let text = path.to_string();
            prop_assert_eq!(drive.reads(&text), !over(Kept::Closed), "{} {:?}", text, keeps);
            let written = !over(Kept::Closed) && !over(Kept::ReadOnly);
            prop_assert_eq!(drive.writes(&text), written, "{} {:?}", text, keeps);
            if keeps.iter().any(|keep| keep.path.is_within(path)) {
                prop_assert!(!drive.removes(&text), "{} {:?}", text, keeps);
            }
        }
    }
}
