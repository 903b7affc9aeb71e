//! Places that the command may write must not lead anywhere else. Whatever an earlier run left there (a symlink, a
//! `#!` line, a `pyvenv.cfg`) could name any file of the user's, and have it shown or granted in the next run.
//!
//! Stops: that something outside of a writable place is shown, granted or told by way of something inside it.
//! Leaves open: directories that were writable in an earlier run and are not in this one.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mcp_policy::{Policy, Sourced};

use crate::core::request::{Place, Unshown};
use crate::host_files::walk::{Walked, walk};

/// Shown to every command, of every user.
const SYSTEM: [&str; 3] = ["/usr", "/etc/ssl", "/etc/pki"];

#[derive(Debug, Default, Clone)]
pub struct Writable {
    roots: Vec<PathBuf>,
    /// What is visible by a grant.
    granted: Vec<PathBuf>,
}

impl Writable {
    /// `home` is a directory of the host that is the command's HOME.
    pub fn new(read: &[Place], write: &[Place], home: Option<&Path>) -> Writable {
        let paths = |places: &[Place]| -> Vec<PathBuf> {
            places.iter().map(|place| place.path.clone()).collect()
        };
        let mut roots = paths(write);
        let granted = [paths(read), roots.clone()].concat();
        roots.extend(home.map(Path::to_owned));
        Writable { roots, granted }
    }

    /// Of a policy that is not resolved yet. A grant that leads nowhere is refused later, and gives nothing.
    pub fn of(policy: &Policy) -> Writable {
        let real = |grants: &[Sourced<PathBuf>]| -> Vec<PathBuf> {
            grants.iter().filter_map(|grant| Some(walk(&grant.value).ok()?.real)).collect()
        };
        let roots = real(&policy.filesystem.write);
        let granted = [real(&policy.filesystem.read), roots.clone()].concat();
        Writable { roots, granted }
    }

    /// The writable place that holds a path without symlinks in it.
    pub fn root_of(&self, path: &Path) -> Option<&Path> {
        self.roots.iter().map(PathBuf::as_path).find(|root| is_below(path, root))
    }

    /// The writable place that a way passes through or ends in.
    pub fn touched_by(&self, walked: &Walked) -> Option<&Path> {
        let hops = walked.links.iter().map(|link| &link.at).chain([&walked.real]);
        hops.into_iter().find_map(|hop| self.root_of(hop))
    }

    /// The writable place that a way leads out of, by a symlink in it, to what is not visible anyway.
    pub fn left_by(&self, walked: &Walked) -> Option<&Path> {
        let root = walked.links.iter().find_map(|link| self.root_of(&link.at))?;
        (!self.is_given(&walked.real)).then_some(root)
    }

    /// Whether a path without symlinks in it is visible by a grant, or part of the system.
    pub fn is_given(&self, real: &Path) -> bool {
        SYSTEM.iter().any(|system| real.starts_with(system))
            || self.granted.iter().any(|granted| real.starts_with(granted))
    }

    /// Whether the command can have had no hand in what is at a path.
    pub fn is_untouched(&self, path: &Path) -> bool {
        self.roots.is_empty() || walk(path).is_ok_and(|walked| self.touched_by(&walked).is_none())
    }

    /// Where an open file was reached through a writable place and is not in one: `Unshown`. A file that is not the
    /// one that the path names now was put there meanwhile, and counts as one that is elsewhere.
    pub fn led_out(&self, path: &Path, file: &File) -> Option<Unshown> {
        let walked = walk(path).ok();
        let touched = walked.as_ref().map_or_else(
            || std::path::absolute(path).ok().and_then(|path| self.root_of(&path)),
            |walked| self.touched_by(walked),
        )?;
        let id =
            |at: &Path| std::fs::symlink_metadata(at).ok().map(|found| (found.dev(), found.ino()));
        let opened = file.metadata().ok().map(|found| (found.dev(), found.ino()));
        let is_inside = walked.as_ref().is_some_and(|walked| {
            self.left_by(walked).is_none() && opened.is_some() && id(&walked.real) == opened
        });
        let to = walked.map_or_else(|| path.to_owned(), |walked| walked.real);
        (!is_inside).then(|| Unshown {
            at: path.to_owned(),
            root: touched.to_owned(),
            read: to.clone(),
            to,
        })
    }
}

/// Apple's file systems have no case, and a path is here as a person spelled it.
fn is_below(path: &Path, root: &Path) -> bool {
    if !cfg!(target_os = "macos") {
        return path.starts_with(root);
    }
    let folded = |part: &OsStr| part.to_string_lossy().to_lowercase();
    let mut parts = path.iter();
    root.iter().all(|name| parts.next().is_some_and(|part| folded(part) == folded(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::request::PlaceKind;
    use crate::unix::fixture::Fixture;

    fn place(path: PathBuf) -> Place {
        Place { path, kind: PlaceKind::Directory }
    }

    #[test]
    fn what_leads_out_of_a_writable_place() {
        let f = Fixture::new();
        let root = f.directory("home/project");
        f.file("keys/id", "");
        f.file("data/x", "");
        f.file("home/project/sub/own", "");
        f.link("home/project/out", f.path("keys"));
        f.link("home/project/data", f.path("data"));
        f.link("home/project/system", "/usr/bin");
        f.link("home/project/own", "sub/own");
        f.link("into", "home/project/out");
        f.link("home/project/twice", f.path("into"));
        let writable = Writable::new(
            &[place(f.path("data"))],
            &[place(root.clone())],
            Some(&f.directory("kept")),
        );
        let left = |path: &str| writable.left_by(&walk(&f.path(path)).unwrap());
        for path in
            ["home/project/out/id", "home/project/sub/../out", "into/id", "home/project/twice/id"]
        {
            assert_eq!(left(path), Some(root.as_path()), "{path}");
        }
        for path in [
            "home/project/data/x",
            "home/project/system",
            "home/project/own",
            "keys/id",
            "home/project/../../keys/id",
        ] {
            assert_eq!(left(path), None, "{path}");
        }
        f.link("kept/link", f.path("keys"));
        assert_eq!(left("kept/link"), Some(f.path("kept").as_path()));
        assert!(writable.is_untouched(&f.path("keys/id")));
        assert!(!writable.is_untouched(&f.path("into")));
    }

    #[test]
    fn an_open_file_that_was_reached_through_a_writable_place() {
        let f = Fixture::new();
        let root = f.directory("home/project");
        let (key, own) = (f.file("keys/id", ""), f.file("home/project/own", ""));
        let out = f.link("home/project/out", &key);
        let writable = Writable::new(&[], &[place(root)], None);
        let led_out = |path: &Path, file: &Path| writable.led_out(path, &File::open(file).unwrap());
        assert_eq!(led_out(&own, &own), None);
        assert_eq!(led_out(&key, &key), None);
        assert_eq!(led_out(&out, &key).map(|led| led.to), Some(key.clone()));
        // It was a link when it was opened, and is none now; or is gone.
        assert!(led_out(&own, &key).is_some());
        assert!(led_out(&f.path("home/project/gone"), &key).is_some());
    }
}
