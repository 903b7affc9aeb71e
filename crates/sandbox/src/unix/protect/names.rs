//! Which names in a directory matter to the search.

use std::ffi::{CStr, CString};

use mcp_policy::protect::{Spot, beyond, reason, reason_in};
use rustix::fs::FileType;

/// The names in a directory that matter.
#[derive(Default)]
pub struct Names<'a> {
    /// The path of the directory itself.
    own: &'a [u8],
    pub directories: Vec<CString>,
    pub of_git: Vec<(CString, FileType)>,
    pub of_top: Vec<(CString, FileType, &'static str)>,
    pub of_any: Vec<(CString, FileType, &'static str)>,
    /// Links that bear the name of a directory in which names count.
    pub links_above: Vec<CString>,
    pub git: Option<(CString, FileType)>,
    has_head: bool,
    has_objects: bool,
    has_refs: bool,
    has_common: bool,
    has_config: bool,
}

impl<'a> Names<'a> {
    /// `own` is the directory's path.
    pub fn of(own: &'a [u8]) -> Names<'a> {
        Names { own, ..Names::default() }
    }

    pub fn take(&mut self, name: &CStr, kind: FileType) {
        let bytes = name.to_bytes();
        let is = |word: &[u8]| bytes.eq_ignore_ascii_case(word);
        if is(b".git") {
            self.git = Some((name.to_owned(), kind));
        }
        self.has_head |= is(b"HEAD");
        self.has_objects |= is(b"objects");
        self.has_refs |= is(b"refs");
        self.has_common |= is(b"commondir");
        self.has_config |= is(b"config") && kind != FileType::Directory;
        if reason(Spot::GitDirectory, bytes).is_some() {
            self.of_git.push((name.to_owned(), kind));
        }
        if let Some(why) = reason(Spot::Top, bytes) {
            self.of_top.push((name.to_owned(), kind, why));
        }
        if let Some(why) = reason_in(Spot::Anywhere, self.own, bytes) {
            self.of_any.push((name.to_owned(), kind, why));
        }
        if kind == FileType::Symlink && !beyond(self.own, bytes).is_empty() {
            self.links_above.push(name.to_owned());
        }
        if kind == FileType::Directory {
            self.directories.push(name.to_owned());
        }
    }

    pub fn look_like_git(&self) -> bool {
        self.has_head && self.has_common
            || self.has_objects && self.has_refs && (self.has_head || self.has_config)
    }
}
