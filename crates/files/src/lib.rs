//! Opens files that anybody may have put there: configuration, manifests, keys, bundles.
//!
//! Stops: a FIFO without a writer, a device or a socket in a file's place, which would hold the program up
//! for ever; a file without end, which would fill its memory. Since any kernel. Leaves open: a file system
//! that answers slowly or never (FUSE, NFS).
//!
//! `/dev/null` is an empty file, as people use it.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod tree;

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read};
use std::path::Path;

pub use tree::remove_tree;

/// Whether a symlink at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Open what it leads to.
    Follow,
    /// Refuse it.
    Refuse,
}

/// A regular file, or `/dev/null`, to be read. Anything else is an error that says what it is.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    // Before it is opened: opening is enough to set off some devices.
    let found = match links {
        Links::Follow => fs::metadata(path)?,
        Links::Refuse => fs::symlink_metadata(path)?,
    };
    check(&found)?;
    let mut options = File::options();
    options.read(true);
    unix::never_wait(&mut options, links);
    let file = options.open(path)?;
    // Another one may have come in its place.
    check(&file.metadata()?)?;
    Ok(file)
}

/// All of a regular file that is no larger than `most` bytes.
pub fn read(path: &Path, most: u64, links: Links) -> io::Result<Vec<u8>> {
    let file = open(path, links)?;
    let too_large = || io::Error::other(format!("is larger than {most} bytes"));
    if file.metadata()?.len() > most {
        return Err(too_large());
    }
    // The length is not the last word: it may grow, and files of /proc have none.
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// The same as text.
pub fn read_text(path: &Path, most: u64, links: Links) -> io::Result<String> {
    String::from_utf8(read(path, most, links)?).map_err(|_| io::Error::other("is not UTF-8 text"))
}

fn check(found: &Metadata) -> io::Result<()> {
    match found.is_file() || unix::is_null(found) {
        true => Ok(()),
        false => {
            Err(io::Error::other(format!("is {}, not a regular file", kind(found.file_type()))))
        }
    }
}

fn kind(kind: FileType) -> &'static str {
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_symlink() => "a symlink",
        () => unix::kind(kind),
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::{FileType, Metadata, OpenOptions, metadata};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

    use rustix::fs::OFlags;

    use super::Links;

    /// Neither for a writer nor to become a terminal's session.
    pub fn never_wait(options: &mut OpenOptions, links: Links) {
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        if links == Links::Refuse {
            flags |= OFlags::NOFOLLOW;
        }
        options.custom_flags(flags.bits() as i32);
    }

    /// By its device number: a link or another name for it is the same.
    pub fn is_null(found: &Metadata) -> bool {
        let is_it = |null: Metadata| null.rdev() == found.rdev();
        found.file_type().is_char_device() && metadata("/dev/null").is_ok_and(is_it)
    }

    pub fn kind(kind: FileType) -> &'static str {
        match () {
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () if kind.is_char_device() || kind.is_block_device() => "a device",
            () => "something else",
        }
    }
}

#[cfg(not(unix))]
mod unix {
    use std::fs::{FileType, Metadata, OpenOptions};

    use super::Links;

    pub fn never_wait(_: &mut OpenOptions, _: Links) {}

    pub fn is_null(_: &Metadata) -> bool {
        false
    }

    pub fn kind(_: FileType) -> &'static str {
        "something else"
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path =
                std::env::temp_dir().join(format!("mcp-files-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn fifo(path: &Path) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        #[cfg(target_os = "linux")]
        rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        #[cfg(not(target_os = "linux"))]
        {
            let _ = mode;
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_by_what_it_is() {
        let scratch = Scratch::new("kinds");
        let at = |name: &str| scratch.0.join(name);
        fifo(&at("fifo"));
        symlink(at("fifo"), at("link")).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        for (path, word) in [
            (at("fifo"), "a pipe"),
            (at("link"), "a pipe"),
            (at("socket"), "a socket"),
            (at(""), "a directory"),
            ("/dev/zero".into(), "a device"),
            ("/dev/tty".into(), "a device"),
        ] {
            let error = read(&path, 100, Links::Follow).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("regular file"), "{path:?}: {error}");
        }
        // The controls.
        fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("to-file")).unwrap();
        for name in ["file", "to-file"] {
            assert_eq!(read(&at(name), 4, Links::Follow).unwrap(), b"text");
        }
        assert_eq!(read(Path::new("/dev/null"), 4, Links::Follow).unwrap(), b"");
        assert!(
            read(&at("to-file"), 4, Links::Refuse).unwrap_err().to_string().contains("symlink")
        );
        assert_eq!(read_text(&at("file"), 4, Links::Refuse).unwrap(), "text");
    }

    #[test]
    fn no_more_is_read_than_was_said() {
        let scratch = Scratch::new("sizes");
        let path = scratch.0.join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5, Links::Follow).unwrap(), b"12345");
        assert!(read(&path, 4, Links::Follow).unwrap_err().to_string().contains("larger than 4"));
        // Announced as empty, and not: a file of /proc.
        #[cfg(target_os = "linux")]
        assert!(read(Path::new("/proc/self/maps"), 4, Links::Follow).is_err());
        // Large, and takes no room.
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(read(&path, 5, Links::Follow).is_err());
        fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path, 5, Links::Follow).unwrap_err().to_string().contains("UTF-8"));
    }
}
