//! Looking at what a server wrote, and removing it. The names and links are the server's: nothing is followed, and a
//! look has an end.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use mcp_sandbox::WritableLayer;

/// The most entries that are looked at.
const MOST: usize = 20_000;
/// Deeper directories are not looked into.
const DEEPEST: usize = 128;
const MOST_NAMED: usize = 3;

/// What lies in a layer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files, links and removals; directories count by what is in them.
    pub entries: usize,
    pub bytes: u64,
    /// Files of the package that are replaced or removed.
    pub changed: usize,
    pub first_changed: Vec<String>,
    /// Names that are new, the first few.
    pub first_added: Vec<String>,
    /// Whether there is more than was looked at.
    pub is_cut: bool,
}

impl Written {
    pub fn look(layer: &WritableLayer) -> Written {
        let mut written = Written::default();
        let upper = layer.kept_in.join("upper");
        let mut walk = Walk { left: MOST, is_cut: false };
        walk.below(&upper, 0, &mut |path, found| {
            let inside = path.strip_prefix(&upper).unwrap_or(path);
            written.add(path, inside, found, &layer.over);
        });
        written.is_cut = walk.is_cut;
        written
    }

    fn add(&mut self, path: &Path, inside: &Path, found: &Metadata, package: &Path) {
        // A directory counts by what is in it, unless it hides the whole directory that the package has there.
        if found.is_dir() && !is_opaque(path) {
            return;
        }
        self.entries += 1;
        self.bytes += if found.is_file() { found.len() } else { 0 };
        let is_of_package = fs::symlink_metadata(package.join(inside)).is_ok();
        self.changed += usize::from(is_of_package);
        let names = if is_of_package { &mut self.first_changed } else { &mut self.first_added };
        if names.len() < MOST_NAMED {
            names.push(inside.to_string_lossy().into_owned());
        }
    }
}

/// Bytes in a directory, as far as they were counted.
pub fn size_of(directory: &Path) -> u64 {
    let mut bytes = 0;
    let count = &mut |_: &Path, found: &Metadata| {
        bytes += if found.is_file() { found.len() } else { 0 };
    };
    Walk { left: MOST, is_cut: false }.below(directory, 0, count);
    bytes
}

struct Walk {
    left: usize,
    /// There was more, or something could not be looked into.
    is_cut: bool,
}

impl Walk {
    fn below(&mut self, directory: &Path, depth: usize, see: &mut dyn FnMut(&Path, &Metadata)) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) if depth <= DEEPEST => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Ok(_) | Err(_) => return self.is_cut = true,
        };
        for entry in entries {
            // Of the entry itself, not of what it leads to.
            let found = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)));
            let (Ok((path, found)), Some(left)) = (found, self.left.checked_sub(1)) else {
                self.is_cut = true;
                continue;
            };
            self.left = left;
            see(&path, &found);
            if found.is_dir() {
                self.below(&path, depth + 1, see);
            }
        }
    }
}

/// Whether overlayfs shows nothing of the package's directory below this one.
fn is_opaque(directory: &Path) -> bool {
    #[cfg(target_os = "linux")]
    return rustix::fs::lgetxattr(directory, "user.overlay.opaque", &mut [0_u8; 8][..]).is_ok();
    #[cfg(not(target_os = "linux"))]
    return directory.as_os_str().is_empty();
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use mcp_sandbox::LayerWriting;

    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("mcp-kept-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn what_was_written_is_told_and_links_are_not_followed() {
        let at = scratch("look");
        for directory in ["package/lib", "layer/upper/lib", "secret"] {
            fs::create_dir_all(at.join(directory)).unwrap();
        }
        fs::write(at.join("package/lib/code.js"), "old").unwrap();
        fs::write(at.join("secret/large"), "x".repeat(1000)).unwrap();
        fs::write(at.join("layer/upper/lib/code.js"), "newer").unwrap();
        fs::write(at.join("layer/upper/memory.json"), "{}").unwrap();
        symlink(at.join("secret"), at.join("layer/upper/lib/link")).unwrap();
        let layer = WritableLayer::new(at.join("package"), at.join("layer"), LayerWriting::Allowed);
        let mut written = Written::look(&layer);
        written.first_added.sort();
        assert_eq!(
            written,
            Written {
                entries: 3,
                bytes: 7,
                changed: 1,
                first_changed: vec!["lib/code.js".to_owned()],
                first_added: vec!["lib/link".to_owned(), "memory.json".to_owned()],
                is_cut: false,
            }
        );
        fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn what_hides_from_a_look_is_told() {
        let at = scratch("hide");
        fs::create_dir_all(at.join("package/lib")).unwrap();
        let layer = WritableLayer::new(at.join("package"), at.join("layer"), LayerWriting::Allowed);
        fs::create_dir_all(at.join("layer/upper/lib")).unwrap();
        assert_eq!(Written::look(&layer), Written::default());
        let deep = at.join("layer/upper").join("d/".repeat(DEEPEST + 2));
        fs::create_dir_all(&deep).unwrap();
        assert!(Written::look(&layer).is_cut);
        fs::remove_dir_all(at.join("layer/upper/d")).unwrap();
        #[cfg(target_os = "linux")]
        {
            let lib = at.join("layer/upper/lib");
            let flags = rustix::fs::XattrFlags::empty();
            if rustix::fs::setxattr(&lib, "user.overlay.opaque", b"y", flags).is_ok() {
                assert_eq!(Written::look(&layer).changed, 1);
            } else {
                println!("SKIP: this file system has no attributes of users");
            }
        }
        fs::remove_dir_all(at).unwrap();
    }
}
