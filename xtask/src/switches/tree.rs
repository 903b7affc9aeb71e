//! A copy of the sources to make edits in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Edit;
use crate::Result;

/// What is made, not written.
const LEFT_OUT: [&str; 2] = [".git", "target"];

const DENIED: &str = "warnings = \"deny\"";

pub struct Tree {
    pub top: PathBuf,
    /// For what is built from it.
    pub target: PathBuf,
}

impl Tree {
    /// Files that are the same are left alone, so that cargo builds nothing twice.
    pub fn copy(from: &Path, into: &Path) -> Result<Tree> {
        let top = into.join("tree");
        copy_directory(from, &top)?;
        // What is switched off leaves unused things behind.
        let manifest = top.join("Cargo.toml");
        let lenient = fs::read_to_string(&manifest)?.replace(DENIED, "warnings = \"warn\"");
        fs::write(&manifest, lenient)?;
        Ok(Tree { top, target: into.join("target") })
    }

    /// Makes edits, until what it gives back is dropped.
    pub fn edited<'a>(&'a self, edits: &[Edit]) -> Result<Edited<'a>> {
        let edited = Edited { tree: self, before: RefCell::default() };
        for edit in edits {
            let path = self.top.join(&edit.file);
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", edit.file))?;
            let made = edit.made(&text).ok_or_else(|| {
                format!("{}: not there, or not only once: {}", edit.file, edit.find)
            })?;
            edited.before.borrow_mut().entry(edit.file.clone()).or_insert(text);
            fs::write(&path, made)?;
        }
        Ok(edited)
    }
}

pub struct Edited<'a> {
    tree: &'a Tree,
    before: RefCell<BTreeMap<String, String>>,
}

impl Drop for Edited<'_> {
    fn drop(&mut self) {
        for (file, text) in self.before.borrow().iter() {
            // The next copy would put it right as well.
            let _ = fs::write(self.tree.top.join(file), text);
        }
    }
}

fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, name) = (entry.path(), entry.file_name());
        if LEFT_OUT.iter().any(|left| name == *left) {
            continue;
        }
        let copy = to.join(&name);
        if entry.file_type()?.is_dir() {
            copy_directory(&source, &copy)?;
        } else {
            let content = fs::read(&source)?;
            if fs::read(&copy).ok().as_ref() != Some(&content) {
                fs::write(&copy, content)?;
            }
        }
    }
    Ok(())
}
