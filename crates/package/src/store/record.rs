//! A cheap answer to "is it still as it was unpacked?": inode, size and ctime of every file and
//! directory. The kernel sets ctime on every change of content, name, owner or mode, and no call
//! sets it back; what is added or removed changes the ctime of its directory. A user who can set the
//! machine's clock, or write to its disk directly, can fool it, and `mcp verify` reads every byte.
//!
//! On Windows there is no ctime: size and time of the last write stand in, which a program can set.
//!
//! It is read at every start, so it is made to be compared and not to be parsed:
//!
//! ```text
//! "mcp record 2\n"
//! u32 count of directories, and for each:
//!     u32 length of what follows, mark, path from the root and NUL
//!     for each entry that is no directory: mark, name and NUL
//! mark = inode, size, seconds, nanoseconds: u64, little-endian
//! ```

use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::processor::Processor;
use crate::error::{Error, Result};

const HEADER: &[u8] = b"mcp record 2\n";

/// Of a record: below this, a thread costs more than it saves.
const BYTES_OF_A_THREAD: usize = 16 << 10;
const MOST_THREADS: usize = 8;

/// A change within one tick of the clock that follows would have the same ctime: wait it out.
pub fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}

/// What is remembered of one file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark([u64; 4]);

impl Mark {
    const LENGTH: usize = 32;

    fn put(self, into: &mut Vec<u8>, name: &str) {
        self.0.iter().for_each(|number| into.extend(number.to_le_bytes()));
        into.extend(name.as_bytes());
        into.push(0);
    }

    /// The mark and the name at the start, and what comes after them.
    fn take(bytes: &[u8]) -> Option<(Mark, &CStr, &[u8])> {
        let (numbers, rest) = bytes.split_at_checked(Mark::LENGTH)?;
        let mut mark = Mark([0; 4]);
        for (number, bytes) in mark.0.iter_mut().zip(numbers.as_chunks::<8>().0) {
            *number = u64::from_le_bytes(*bytes);
        }
        let name = CStr::from_bytes_until_nul(rest).ok()?;
        Some((mark, name, rest.get(name.count_bytes() + 1..)?))
    }
}

/// One file in a line: another text for another file, or another state of the same one.
pub fn stamp(path: &Path) -> Option<String> {
    let Mark(numbers) = mark::of_path(path).ok()?;
    Some(format!("{}\n", numbers.map(|number| format!("{number:x}")).join(" ")))
}

/// What a tree was when it was examined.
pub struct Record(pub Vec<u8>);

/// The record of a tree.
pub fn of(root: &Path) -> Result<Record> {
    let mut directories = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(directory) = pending.pop() {
        let path = if directory.is_empty() { root.to_owned() } else { root.join(&directory) };
        let failed = |e: std::io::Error| Error::io("read", &path, &e);
        let mut part = Vec::new();
        mark::of_path(&path).map_err(failed)?.put(&mut part, &directory);
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry
                .file_name()
                .into_string()
                .map_err(|_| Error::package("a name is not UTF-8"))?;
            if !entry.file_type().map_err(failed)?.is_dir() {
                mark::of_path(&entry.path()).map_err(failed)?.put(&mut part, &name);
            } else if directory.is_empty() {
                pending.push(name);
            } else {
                pending.push(format!("{directory}/{name}"));
            }
        }
        directories.push(part);
    }
    let number = |count: usize| {
        u32::try_from(count)
            .map(u32::to_le_bytes)
            .map_err(|_| Error::package("there are too many files"))
    };
    let mut record = HEADER.to_vec();
    record.extend(number(directories.len())?);
    for part in &directories {
        record.extend(number(part.len())?);
        record.extend(part);
    }
    Ok(Record(record))
}

impl Record {
    /// Whether everything is as recorded. Any doubt is a no, and costs a full comparison.
    pub fn holds(&self, root: &Path) -> bool {
        match self.directories() {
            Some(all) if !all.is_empty() => all_hold(root, &all, self.0.len()),
            _ => false,
        }
    }

    /// Whether that is so of what lies in the root itself.
    pub fn top_holds(&self, root: &Path) -> bool {
        let Some(root) = mark::Root::open(root) else {
            return false;
        };
        self.directories().is_some_and(|all| all.first().is_some_and(|top| holds_in(&root, top)))
    }

    /// The parts of a record that is whole. The root is the first.
    fn directories(&self) -> Option<Vec<&[u8]>> {
        let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
        let (count, mut rest) = self.0.strip_prefix(HEADER)?.split_first_chunk::<4>()?;
        let mut parts = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (part, after) = after.split_at_checked(number(length))?;
            parts.push(part);
            rest = after;
        }
        (rest.is_empty() && parts.len() == number(count)).then_some(parts)
    }
}

/// The kernel's answers are what takes time, and they can be had by several at once. All threads
/// have ended when this returns: a launcher has none.
fn all_hold(root: &Path, directories: &[&[u8]], length: usize) -> bool {
    let Some(root) = mark::Root::open(root) else {
        return false;
    };
    let next = AtomicUsize::new(0);
    let rest_holds = || {
        let directory = || directories.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(directory).all(|directory| holds_in(&root, directory))
    };
    let threads = (length / BYTES_OF_A_THREAD).clamp(1, MOST_THREADS);
    std::thread::scope(|scope| {
        let helper = |processor: Processor| {
            let builder = std::thread::Builder::new().stack_size(64 << 10);
            let rest_holds = &rest_holds;
            builder.spawn_scoped(scope, move || {
                processor.stay();
                rest_holds()
            })
        };
        // One that cannot be read leaves its part to the others.
        let helpers: Vec<_> = Processor::others(threads - 1).into_iter().flat_map(helper).collect();
        if !helpers.is_empty() {
            // They begin here, and go where they belong.
            std::thread::yield_now();
        }
        let own = rest_holds();
        helpers.into_iter().fold(own, |so_far, helper| helper.join().unwrap_or(false) && so_far)
    })
}

fn holds_in(root: &mark::Root, part: &[u8]) -> bool {
    let Some((recorded, path, mut rest)) = Mark::take(part) else {
        return false;
    };
    let Some((found, directory)) = root.enter(path) else {
        return false;
    };
    if found != recorded {
        return false;
    }
    while !rest.is_empty() {
        let Some((recorded, name, after)) = Mark::take(rest) else {
            return false;
        };
        if directory.of(name) != Some(recorded) {
            return false;
        }
        rest = after;
    }
    true
}

/// A new thread is often left to wait behind the one that made it, for longer than all of this
/// takes, while another processor is idle.
#[cfg(target_os = "linux")]
mod processor {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    pub struct Processor(CpuSet);

    impl Processor {
        /// Those that this thread may be on, and is not.
        pub fn others(most: usize) -> Vec<Processor> {
            let allowed = match most {
                0 => return Vec::new(),
                _ => sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new()),
            };
            let here = sched_getcpu();
            let others = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu) && cpu != here);
            let only = |cpu| {
                let mut set = CpuSet::new();
                set.set(cpu);
                Processor(set)
            };
            others.map(only).take(most).collect()
        }

        pub fn stay(self) {
            // It is as right elsewhere, and slower.
            let _ = sched_setaffinity(None, &self.0);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod processor {
    pub struct Processor;

    impl Processor {
        pub fn others(most: usize) -> Vec<Processor> {
            let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            (1..all).map(|_| Processor).take(most).collect()
        }

        pub fn stay(self) {}
    }
}

#[cfg(unix)]
mod mark {
    use std::ffi::CStr;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};

    use super::Mark;

    pub fn of_path(path: &Path) -> std::io::Result<Mark> {
        let found = std::fs::symlink_metadata(path)?;
        let (seconds, nanoseconds) = (found.ctime(), found.ctime_nsec());
        Ok(Mark([found.ino(), found.size(), seconds as u64, nanoseconds as u64]))
    }

    fn of_stat(stat: &rustix::fs::Stat) -> Mark {
        // The widths of these fields differ between systems.
        Mark([stat.st_ino as _, stat.st_size as _, stat.st_ctime as _, stat.st_ctime_nsec as _])
    }

    /// Only to look from: opening it for reading would be another check of the kernel's.
    #[cfg(target_os = "linux")]
    const LOOK: OFlags = OFlags::PATH.union(DIRECTORY);
    #[cfg(not(target_os = "linux"))]
    const LOOK: OFlags = OFlags::RDONLY.union(DIRECTORY);
    const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    pub struct Root(OwnedFd);

    pub struct Directory(OwnedFd);

    impl Root {
        pub fn open(path: &Path) -> Option<Root> {
            openat(CWD, path, LOOK, Mode::empty()).ok().map(Root)
        }

        pub fn enter(&self, path: &CStr) -> Option<(Mark, Directory)> {
            let path = if path.is_empty() { c"." } else { path };
            let opened = openat(&self.0, path, LOOK, Mode::empty()).ok()?;
            Some((of_stat(&fstat(&opened).ok()?), Directory(opened)))
        }
    }

    impl Directory {
        pub fn of(&self, name: &CStr) -> Option<Mark> {
            statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(of_stat)
        }
    }
}

#[cfg(not(unix))]
mod mark {
    use std::ffi::CStr;
    use std::path::{Path, PathBuf};

    use super::Mark;

    pub fn of_path(path: &Path) -> std::io::Result<Mark> {
        let found = std::fs::symlink_metadata(path)?;
        let time = found.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // The size of a directory means nothing there.
        let size = if found.is_dir() { 0 } else { found.len() };
        Ok(Mark([0, size, time.as_secs(), time.subsec_nanos().into()]))
    }

    pub struct Root(PathBuf);

    pub struct Directory(PathBuf);

    impl Root {
        pub fn open(path: &Path) -> Option<Root> {
            Some(Root(path.to_owned()))
        }

        pub fn enter(&self, path: &CStr) -> Option<(Mark, Directory)> {
            let path = self.0.join(path.to_str().ok()?);
            Some((of_path(&path).ok()?, Directory(path)))
        }
    }

    impl Directory {
        pub fn of(&self, name: &CStr) -> Option<Mark> {
            of_path(&self.0.join(name.to_str().ok()?)).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// Enough for several threads.
    fn tree(scratch: &Scratch) -> std::path::PathBuf {
        let root = scratch.dir("root");
        for number in 0..1500 {
            scratch.file(format!("root/d{}/e/file-{number}", number % 40), b"content");
        }
        root
    }

    #[test]
    fn one_changed_file_among_many_is_seen_wherever_it_is() {
        let scratch = Scratch::new();
        let root = tree(&scratch);
        let mut record = of(&root).unwrap();
        assert!(record.0.len() > 3 * BYTES_OF_A_THREAD);
        assert!(record.holds(&root));
        for number in [0, 39, 700, 1499] {
            let file = root.join(format!("d{}/e/file-{number}", number % 40));
            settle();
            std::fs::write(&file, b"CONTENT").unwrap();
            assert!(!record.holds(&root), "{number}");
            record = of(&root).unwrap();
            assert!(record.holds(&root));
        }
        for change in [
            &(|| std::fs::write(root.join("d3/new"), b"").unwrap()) as &dyn Fn(),
            &|| std::fs::remove_file(root.join("d3/new")).unwrap(),
            &|| std::fs::rename(root.join("d4"), root.join("d4-away")).unwrap(),
        ] {
            settle();
            change();
            assert!(!record.holds(&root));
            record = of(&root).unwrap();
        }
    }

    #[test]
    fn the_top_is_what_lies_in_the_root_itself() {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        let top = scratch.file("root/manifest.json", b"{}");
        let deep = scratch.file("root/lib/deep", b"content");
        let mut record = of(&root).unwrap();
        assert!(record.top_holds(&root));
        settle();
        std::fs::write(deep, b"CONTENT").unwrap();
        assert!(record.top_holds(&root) && !record.holds(&root));
        for change in [&(|| std::fs::write(&top, b"[]").unwrap()) as &dyn Fn(), &|| {
            std::fs::write(root.join("new"), b"").unwrap()
        }] {
            record = of(&root).unwrap();
            settle();
            change();
            assert!(!record.top_holds(&root) && !record.holds(&root));
        }
    }

    #[test]
    fn a_record_that_is_not_whole_holds_nothing() {
        let scratch = Scratch::new();
        let root = scratch.dir("root");
        scratch.file("root/a", b"");
        let whole = of(&root).unwrap();
        let refused = |bytes: &[u8], what: &str| {
            let record = Record(bytes.to_vec());
            assert!(!record.holds(&root) && !record.top_holds(&root), "{what}");
        };
        for length in 0..whole.0.len() {
            refused(&whole.0[..length], &length.to_string());
        }
        assert!(whole.holds(&root) && whole.top_holds(&root));
        refused(&[&whole.0[..], b"\0\0\0\0"].concat(), "more");
        refused(&[HEADER, &[0; 4]].concat(), "nothing");
        refused(b"mcp record 1\n", "an older one");
    }
}
