//! The world of a process in an AppContainer, as data, for tests: what others measured of it, and what plans have to get
//! along with.
//!
//! - Access is checked twice. The user's part needs an entry for the user; the container's part needs one for its own SID or
//!   for ALL APPLICATION PACKAGES or for a capability of its token, and knows no entry that denies.
//! - The root of a drive has no entry for containers (microsoft/mxc, host-prep): cmd.exe and Node ask for it.
//! - NUL has none after each start of the machine (win32-app-isolation 73).
//! - Windows and Program Files have one for every container, unless an installer replaced it (nodejs/node 63590).
//! - Pipes of others have none; the mount manager refuses every process inside, so a handle has no path with a drive letter.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, SystemTime};

use mcp_policy::WindowsPath;
use mcp_policy::windows_path::Spelling;

use crate::windows::access::{Access, DRIVE_ROOT};
use crate::windows::acl_apply::{Kind, ObjectInfo, Objects};
use crate::windows::dacl::tests::empty;
use crate::windows::dacl::{Ace, Dacl, INHERITED_ACE, sid};
use crate::windows::win32::{DELETE, FILE_DELETE_CHILD, FILE_READ_DATA, FILE_WRITE_DATA};

/// ALL APPLICATION PACKAGES.
pub fn everyone() -> Vec<u8> {
    sid("S-1-15-2-1").unwrap()
}

pub fn path(text: &str) -> WindowsPath {
    WindowsPath::parse(text, Spelling::Resolved).unwrap()
}

/// The container of the run.
pub fn ours() -> Vec<u8> {
    sid("S-1-15-2-1-2-3-4-5-6-7").unwrap()
}

/// A drive in memory: paths lead to objects, and several may lead to the same one.
#[derive(Default)]
pub struct Drive {
    pub paths: RefCell<Vec<(WindowsPath, usize)>>,
    pub objects: RefCell<Vec<(Kind, Dacl)>>,
    /// Where in `paths` a path is, and what is in a directory, by upper case.
    index: RefCell<BTreeMap<String, (usize, Vec<String>)>>,
    /// How many names an object has, and when something came into it.
    names: RefCell<Vec<u32>>,
    times: RefCell<Vec<SystemTime>>,
    pub now: Cell<u64>,
    pub opened: Cell<usize>,
    /// Objects with the mandatory label Low.
    pub low: RefCell<Vec<usize>>,
    /// How often a DACL was written, and after how many times writing fails: the launcher is dead then.
    pub writes: Cell<usize>,
    pub dies_after: Cell<Option<usize>>,
}

impl Drive {
    pub fn with(paths: &[&str]) -> Drive {
        let drive = Drive::default();
        for text in paths {
            let kind = if text.ends_with('\\') { Kind::Directory } else { Kind::File };
            drive.add(&path(text), kind, empty());
        }
        drive
    }

    pub fn add(&self, at: &WindowsPath, kind: Kind, list: Dacl) {
        self.objects.borrow_mut().push((kind, list));
        self.names.borrow_mut().push(0);
        self.times.borrow_mut().push(self.time());
        let object = self.objects.borrow().len() - 1;
        self.name(at, object);
    }

    /// One more name for the same file.
    pub fn link(&self, from: &str, to: &str) {
        let object = self.open(&path(to)).unwrap();
        self.name(&path(from), object);
    }

    fn name(&self, at: &WindowsPath, object: usize) {
        let key = |path: &WindowsPath| path.to_string().to_uppercase();
        self.names.borrow_mut()[object] += 1;
        let mut paths = self.paths.borrow_mut();
        paths.push((at.clone(), object));
        let mut index = self.index.borrow_mut();
        index.entry(key(at)).or_default().0 = paths.len();
        let Some(above) = at.parent() else { return };
        let (place, below) = index.entry(key(&above)).or_default();
        below.extend(at.file_name().map(str::to_owned));
        if let Some((_, above)) = place.checked_sub(1).and_then(|place| paths.get(place)) {
            self.times.borrow_mut()[*above] = self.time();
        }
    }

    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.now.get())
    }

    /// As the system does it: a new file inherits from the directory that it is made in.
    pub fn make(&self, text: &str) -> bool {
        const FILE_ADD_FILE: u32 = 0x2;
        let at = path(text);
        let above = self.dacl(&self.open(&at.parent().unwrap()).unwrap()).unwrap();
        if above.granted_access(&ours()) & FILE_ADD_FILE == 0 {
            return false;
        }
        let mut list = empty();
        if above.is_inherited_by_children(&ours()) {
            list = list.with(&[Ace::allow(&ours(), Access::Write.mask(), INHERITED_ACE)]);
        }
        self.add(&at, Kind::File, list);
        true
    }

    pub fn granted_access(&self, text: &str, sid: &[u8]) -> u32 {
        self.dacl(&self.open(&path(text)).unwrap()).unwrap().granted_access(sid)
    }

    pub fn reads(&self, text: &str) -> bool {
        self.granted_access(text, &ours()) & FILE_READ_DATA != 0
    }

    pub fn writes_to(&self, text: &str) -> bool {
        self.granted_access(text, &ours()) & FILE_WRITE_DATA != 0
    }

    /// By its own entry, or by that of the directory it is in.
    pub fn removes(&self, text: &str) -> bool {
        let above = path(text).parent().unwrap();
        let above = self
            .open(&above)
            .ok()
            .map(|object| self.dacl(&object).unwrap().granted_access(&ours()));
        self.granted_access(text, &ours()) & DELETE != 0
            || above.unwrap_or_default() & FILE_DELETE_CHILD != 0
    }
}

impl Objects for Drive {
    type Object = usize;

    fn open(&self, path: &WindowsPath) -> io::Result<usize> {
        self.opened.set(self.opened.get() + 1);
        let index = self.index.borrow();
        let place = index.get(&path.to_string().to_uppercase()).map_or(0, |(place, _)| *place);
        let paths = self.paths.borrow();
        let found = place.checked_sub(1).and_then(|place| paths.get(place));
        found.map(|(_, object)| *object).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn info(&self, object: &usize) -> io::Result<ObjectInfo> {
        let links = self.names.borrow()[*object];
        let kind = self.objects.borrow()[*object].0;
        Ok(ObjectInfo { kind, links, id: (1, *object as u64) })
    }

    fn dacl(&self, object: &usize) -> io::Result<Dacl> {
        Ok(self.objects.borrow()[*object].1.clone())
    }

    fn set_dacl(&self, object: &usize, dacl: &Dacl) -> io::Result<()> {
        self.writes.set(self.writes.get() + 1);
        if self.dies_after.get().is_some_and(|most| self.writes.get() > most) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.objects.borrow_mut()[*object].1 = dacl.clone();
        Ok(())
    }

    fn has_low_label(&self, object: &usize) -> bool {
        self.low.borrow().contains(object)
    }

    fn clear_label(&self, path: &WindowsPath) -> io::Result<()> {
        let object = self.open(path)?;
        self.low.borrow_mut().retain(|low| *low != object);
        Ok(())
    }

    fn children(&self, directory: &WindowsPath) -> io::Result<Vec<String>> {
        let index = self.index.borrow();
        let below = index.get(&directory.to_string().to_uppercase());
        Ok(below.map(|(_, names)| names.clone()).unwrap_or_default())
    }

    fn subdirectories(&self, directory: &WindowsPath) -> io::Result<Vec<String>> {
        let opened = self.opened.get();
        let mut below = self.children(directory)?;
        below.retain(|name| {
            let object = directory.join(name).ok().and_then(|path| self.open(&path).ok());
            object.is_some_and(|object| self.objects.borrow()[object].0 == Kind::Directory)
        });
        // The listing tells it on the real disk.
        self.opened.set(opened);
        Ok(below)
    }

    fn modified(&self, object: &usize) -> io::Result<SystemTime> {
        Ok(self.times.borrow()[*object])
    }
}

/// A machine as a process in the container meets it.
pub struct World {
    pub drive: Drive,
    /// Places that the user has no right to read; an administrator's.
    pub others: Vec<WindowsPath>,
    /// The capabilities of the run's token, whose entries count in the container's part as its own SID's do.
    pub capabilities: Vec<Vec<u8>>,
    /// Whether an administrator gave containers the drive's root, and NUL.
    pub is_root_open: bool,
    pub is_nul_open: bool,
}

impl World {
    /// Files with everything above them; below `open` every container reads, but for what is below `stripped`.
    pub fn new(files: &[WindowsPath], open: &[WindowsPath], stripped: &[WindowsPath]) -> World {
        let drive = Drive::default();
        let is_below =
            |path: &WindowsPath, of: &[WindowsPath]| of.iter().any(|top| path.is_within(top));
        let list = |path: &WindowsPath| match is_below(path, open) && !is_below(path, stripped) {
            true => empty().with(&[Ace::allow(&everyone(), Access::Read.mask(), INHERITED_ACE)]),
            false => empty(),
        };
        for file in files {
            for above in file.ancestors() {
                if drive.open(&above).is_err() {
                    drive.add(&above, Kind::Directory, list(&above));
                }
            }
            drive.add(file, Kind::File, list(file));
        }
        World {
            drive,
            others: Vec::new(),
            capabilities: Vec::new(),
            is_root_open: false,
            is_nul_open: false,
        }
    }

    /// The two passes.
    pub fn opens(&self, path: &WindowsPath, wanted: u32) -> bool {
        let is_users = !self.others.iter().any(|other| path.is_within(other));
        let Ok(object) = self.drive.open(path) else { return false };
        let Ok(dacl) = self.drive.dacl(&object) else { return false };
        let mut allowed = dacl.granted_access(&ours()) | dacl.granted_access(&everyone());
        for capability in &self.capabilities {
            allowed |= dacl.granted_access(capability);
        }
        if path.is_root() && self.is_root_open {
            allowed |= DRIVE_ROOT;
        }
        is_users && allowed & wanted == wanted
    }

    pub fn reads(&self, path: &WindowsPath) -> bool {
        self.opens(path, Access::Read.mask())
    }

    /// cmd.exe starts a program by its full path only where it can open the drive's root, and redirects to NUL.
    pub fn cmd_starts(&self, program: &WindowsPath) -> bool {
        let root = program.ancestors().last().unwrap_or_else(|| program.clone());
        self.opens(&root, DRIVE_ROOT) && self.reads(program)
    }

    /// A pipe opens where its maker named containers: those of the run itself.
    pub fn opens_pipe(&self, is_own: bool) -> bool {
        is_own
    }

    /// `GetFinalPathNameByHandle` with a drive letter asks the mount manager.
    pub fn names_handles(&self) -> bool {
        false
    }
}

mod tests;
