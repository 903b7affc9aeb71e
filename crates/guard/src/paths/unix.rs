//! Walks a path with descriptors: each name is opened from the directory before it, without
//! following links; a link is read, judged and walked in turn.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::gate::{Gate, Intent, Opened, names_of};
use super::refusal::Why;

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

#[derive(Debug)]
pub struct Directory(OwnedFd);

impl Directory {
    pub fn open_root(path: &Path) -> io::Result<Directory> {
        let flags = DIRECTORY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Directory(rustix::fs::open(path, flags, Mode::empty())?))
    }
}

/// Passing through a directory needs no right to read it.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::RDONLY;

struct Walk<'g> {
    gate: &'g Gate,
    /// The directory the names below begin at, as a path.
    base: PathBuf,
    names: Vec<String>,
    /// The directories passed, one per name; the base itself is beneath them.
    passed: Vec<Rc<OwnedFd>>,
    bottom: Rc<OwnedFd>,
    left: VecDeque<String>,
    links: usize,
}

pub fn walk(
    gate: &Gate,
    base: &Path,
    directory: &Directory,
    names: Vec<String>,
    intent: Intent,
) -> Result<Opened, Why> {
    let mut walk = Walk {
        gate,
        base: base.to_owned(),
        names: Vec::new(),
        passed: Vec::new(),
        bottom: Rc::new(directory.0.try_clone()?),
        left: names.into(),
        links: 0,
    };
    gate.check(&walk.base, &[])?;
    walk.run(intent)
}

impl Walk<'_> {
    fn run(&mut self, intent: Intent) -> Result<Opened, Why> {
        while let Some(name) = self.left.pop_front() {
            if name == ".." {
                self.up()?;
                continue;
            }
            self.names.push(name.clone());
            self.gate.check(&self.base, &self.names)?;
            if self.left.is_empty() {
                if let Some(opened) = self.last(&name, intent)? {
                    return Ok(opened);
                }
                continue;
            }
            match step(self.here(), &name) {
                Ok(directory) => self.passed.push(Rc::new(directory)),
                Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => self.link(&name)?,
                Err(error) => return Err(Why::System(error.into())),
            }
        }
        // The path ended in a directory that is open already: the root, or behind a `..`.
        self.directory_itself(intent)
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.passed.last().unwrap_or(&self.bottom).as_fd()
    }

    /// From a link: never above where the names begin.
    fn up(&mut self) -> Result<(), Why> {
        self.names.pop().ok_or(Why::Outside)?;
        self.passed.pop();
        Ok(())
    }

    /// Opens the last name; `None` when it was a link that is now to be walked.
    fn last(&mut self, name: &str, intent: Intent) -> Result<Option<Opened>, Why> {
        match kind(self.here(), name) {
            Ok(FileType::Symlink) => {
                self.link(name)?;
                return Ok(None);
            }
            Ok(FileType::RegularFile | FileType::Directory) => {}
            Ok(_) => return Err(Why::Special),
            Err(Errno::NOENT) if matches!(intent, Intent::Write | Intent::Create) => {}
            Err(error) => return Err(Why::System(error.into())),
        }
        let flags = match intent {
            Intent::Read => OFlags::RDONLY,
            Intent::List => OFlags::RDONLY | OFlags::DIRECTORY,
            Intent::Write => OFlags::RDWR | OFlags::CREATE,
            Intent::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        match open(self.here(), name, flags) {
            Ok(file) => self.arrived(file, intent).map(Some),
            // A link was put there a moment ago.
            Err(Errno::LOOP | Errno::MLINK) => {
                self.link(name)?;
                Ok(None)
            }
            Err(Errno::NOTDIR) if intent == Intent::List => Err(Why::NotA("a directory")),
            Err(Errno::ISDIR) => Err(Why::NotA("a file")),
            Err(error) => Err(Why::System(error.into())),
        }
    }

    /// Looks at what was opened: a pipe may have been put there a moment ago.
    fn arrived(&self, file: OwnedFd, intent: Intent) -> Result<Opened, Why> {
        let stat = rustix::fs::fstat(&file).map_err(io::Error::from)?;
        match (FileType::from_raw_mode(stat.st_mode), intent) {
            (FileType::Directory, Intent::List) => {}
            (FileType::Directory, _) => return Err(Why::NotA("a file")),
            (FileType::RegularFile, Intent::List) => return Err(Why::NotA("a directory")),
            (FileType::RegularFile, _) => {}
            _ => return Err(Why::Special),
        }
        let mut path = self.base.clone();
        path.extend(&self.names);
        Ok(Opened { file: File::from(file), path })
    }

    fn directory_itself(&mut self, intent: Intent) -> Result<Opened, Why> {
        if intent != Intent::List {
            return Err(Why::NotA("a file"));
        }
        let file = open(self.here(), ".", OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(|error| Why::System(error.into()))?;
        self.arrived(file, intent)
    }

    /// Puts what a link says in the place of its name.
    fn link(&mut self, name: &str) -> Result<(), Why> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Why::TooManyLinks);
        }
        let target = match rustix::fs::readlinkat(self.here(), name, Vec::new()) {
            Ok(target) => target,
            // No link after all: a file where a directory should be.
            Err(Errno::INVAL) => return Err(Why::System(Errno::NOTDIR.into())),
            Err(error) => return Err(Why::System(error.into())),
        };
        let target =
            target.to_str().map_err(|_| Why::Form("leads over a link that is not UTF-8"))?;
        let target = Path::new(target);
        self.names.pop();
        let mut names = names_of(target)?;
        if target.is_absolute() {
            names = self.start_again(target, names)?;
        }
        for name in names.into_iter().rev() {
            self.left.push_front(name);
        }
        Ok(())
    }

    /// An absolute link is good if it leads into a root, or everywhere is.
    fn start_again(&mut self, target: &Path, names: Vec<String>) -> Result<Vec<String>, Why> {
        self.names.clear();
        self.passed.clear();
        if let Some((number, below)) = self.gate.below_a_root(target) {
            let root = self.gate.root(number);
            self.base = root.path.clone();
            self.bottom = Rc::new(root.directory.0.try_clone()?);
            return Ok(below);
        }
        if !self.gate.anywhere() {
            return Err(Why::Outside);
        }
        self.base = PathBuf::from("/");
        self.bottom = Rc::new(Directory::open_root(&self.base)?.0);
        Ok(names)
    }
}

fn kind(directory: BorrowedFd<'_>, name: &str) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// The directory of this name.
fn step(directory: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    beneath(directory, name, DIRECTORY | OFlags::DIRECTORY)
}

/// Never waits for a pipe's other end, and takes no terminal.
fn open(directory: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    beneath(directory, name, flags | OFlags::NONBLOCK | OFlags::NOCTTY)
}

#[cfg(target_os = "linux")]
fn beneath(directory: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(directory, name, flags, mode(flags), resolve) {
        // Before Linux 5.6, and where a filter knows no openat2.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(directory, name, flags, mode(flags)),
        answer => answer,
    }
}

#[cfg(not(target_os = "linux"))]
fn beneath(directory: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, mode(flags))
}

fn mode(flags: OFlags) -> Mode {
    match flags.contains(OFlags::CREATE) {
        true => Mode::from_raw_mode(0o666),
        false => Mode::empty(),
    }
}
