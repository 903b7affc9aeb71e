//! Finds what the deny rules match, now. Paths are looked up; globs are searched for in what is granted and in the
//! program's own surroundings. Names count in any case, as they do for the system. No link is followed on the
//! way; what a denied link leads to is denied as well.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mcp_policy::glob::{self, Glob};
use mcp_policy::{Origin, Sourced};

use crate::core::error::Error;
use crate::core::glob_set::{GlobSet, Position};
use crate::core::request::{Denied, DeniedKind, Place};
use crate::host_files::names::real;
use crate::windows::win32::ERROR_INVALID_NAME;

/// Each is looked at from inside; a rule that matches more of them means a directory.
const MOST: usize = 4096;

/// What the rules match in these places. Nothing in the answer lies below another.
pub fn find(rules: &[Sourced<PathBuf>], places: &[&Place]) -> Result<Vec<Denied>, Error> {
    let mut found = Matches::default();
    let mut globs = Vec::new();
    for (rule, Sourced { value: entry, origin }) in rules.iter().enumerate() {
        let refuse = |why: String| Error::Grant { flag: flag(origin), path: entry.clone(), why };
        let tell = |e: io::Error| refuse(e.to_string());
        if entry.is_absolute() {
            found.look_up(entry, rule).map_err(tell)?;
        }
        for (head, glob) in self::globs(entry).map_err(|why| refuse(why.to_owned()))? {
            match (glob.tail.is_empty(), glob.floating, real(&head)) {
                (false, true, _) => globs.push((rule, glob)),
                (false, false, Ok(real)) => {
                    globs.push((rule, Glob { head: key(&real), ..glob }));
                }
                _ => found.look_up(&head, rule).map_err(tell)?,
            }
        }
    }
    let globs = GlobSet::new(globs);
    for place in places {
        found.search(&globs, &place.path)?;
    }
    found.outermost()
}

/// How the user gave a rule.
pub fn flag(origin: &Origin) -> String {
    match origin {
        Origin::CommandLine { .. } => "--deny".to_owned(),
        place => format!("{place}: deny"),
    }
}

/// The globs of an entry, each with the directory that it begins with as that is written. Their names are in
/// lower case, and separated as globs have it: `C:\x\*.key` is `/c|/x/*.key`, because a path that ends in a name
/// with a colon would begin anew there.
fn globs(entry: &Path) -> Result<Vec<(PathBuf, Glob)>, &'static str> {
    let text = entry.to_str().ok_or("is not valid Unicode")?;
    let text = text.strip_prefix(r"\\?\").or_else(|| text.strip_prefix(r"\\[?]\")).unwrap_or(text);
    let mut text = text.replace('\\', "/");
    if text.as_bytes().get(1) == Some(&b':') {
        text.replace_range(1..2, "|");
        text.insert(0, '/');
    }
    let written = glob::parse(Path::new(&text))?;
    let folded = glob::parse(Path::new(&text.to_lowercase()))?;
    Ok(written.into_iter().map(|glob| native(&glob.head)).zip(folded).collect())
}

/// `/C|/x` as the system has it.
fn native(head: &Path) -> PathBuf {
    let text = head.to_string_lossy().replace('\\', "/");
    let bytes = text.as_bytes();
    match bytes.get(2) == Some(&b'|') && bytes.first() == Some(&b'/') {
        // A drive alone is where one happens to be on it.
        true if text.len() == 3 => {
            PathBuf::from(format!("{}:/", text.get(1..2).unwrap_or_default()))
        }
        true => PathBuf::from(text.get(1..).unwrap_or_default().replacen('|', ":", 1)),
        false => head.to_owned(),
    }
}

/// A path as globs see it.
fn key(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let text = text.strip_prefix(r"\\?\").unwrap_or(&text).replace('\\', "/").to_lowercase();
    match text.starts_with('/') {
        true => PathBuf::from(text),
        false => PathBuf::from(format!("/{}", text.replacen(':', "|", 1))),
    }
}

/// What was found so far, by its path.
#[derive(Default)]
struct Matches(BTreeMap<PathBuf, (DeniedKind, usize)>);

impl Matches {
    /// Denies the file or directory of exactly this path, if there is one.
    fn look_up(&mut self, path: &Path, rule: usize) -> io::Result<()> {
        let above = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => real(parent).map(|parent| parent.join(name)),
            _ => real(path),
        };
        match above.and_then(|path| self.insert(path, rule)) {
            Err(e) if is_nothing(&e) => Ok(()),
            other => other,
        }
    }

    fn insert(&mut self, path: PathBuf, rule: usize) -> io::Result<()> {
        let kind = fs::symlink_metadata(&path)?.file_type();
        let kind = if kind.is_symlink() {
            match real(&path).and_then(|to| self.insert(to, rule)) {
                Err(e) if !is_nothing(&e) => return Err(e),
                _ => DeniedKind::Link,
            }
        } else if kind.is_dir() {
            DeniedKind::Directory
        } else {
            DeniedKind::File
        };
        self.0.entry(path).or_insert((kind, rule));
        Ok(())
    }

    /// Searches a place and all that is below it.
    fn search(&mut self, globs: &GlobSet, root: &Path) -> Result<(), Error> {
        let failed = |at: &Path, source: io::Error| Error::Io {
            doing: format!("search for what is denied in {}", at.display()),
            source,
        };
        let own = key(root);
        let mut pending: Vec<(PathBuf, Rc<Position>)> = Vec::new();
        for (number, glob) in globs.iter() {
            if own.starts_with(&glob.head) {
                let below = own.strip_prefix(&glob.head).unwrap_or(Path::new(""));
                match globs.descend(number, below) {
                    Ok(position) => pending.push((root.to_owned(), position)),
                    Err((_, rule)) => {
                        self.insert(root.to_owned(), rule).map_err(|e| failed(root, e))?
                    }
                }
            } else if let Ok(down) = glob.head.strip_prefix(&own) {
                // In the spelling that the names have here; what is not there holds no match.
                let start = real(&root.join(down));
                if let (Ok(start), Ok(position)) = (start, globs.descend(number, Path::new(""))) {
                    pending.push((start, position));
                }
            }
        }
        while let Some((directory, position)) = pending.pop() {
            if self.0.contains_key(&directory) {
                continue;
            }
            let listed = match fs::read_dir(&directory) {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    // Its contents are unknown.
                    let rule = globs.a_rule(&position);
                    self.insert(directory.clone(), rule).map_err(|e| failed(&directory, e))?;
                    continue;
                }
                Err(e) if is_nothing(&e) => continue,
                listed => listed.map_err(|e| failed(&directory, e))?,
            };
            for entry in listed {
                let entry = entry.map_err(|e| failed(&directory, e))?;
                let name = entry.file_name().to_string_lossy().to_lowercase();
                let path = entry.path();
                if let Some(rule) = position.denies(name.as_bytes()) {
                    match self.insert(path.clone(), rule) {
                        Err(e) if !is_nothing(&e) => return Err(failed(&path, e)),
                        _ => {}
                    }
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let below = globs.below(&position, name.as_bytes());
                    if !below.is_dead() {
                        pending.push((path, below));
                    }
                }
            }
            if self.0.len() > MOST {
                return Err(too_many());
            }
        }
        Ok(())
    }

    /// Without what lies below something else.
    fn outermost(self) -> Result<Vec<Denied>, Error> {
        let mut kept: Vec<Denied> = Vec::new();
        for (path, (kind, rule)) in self.0 {
            if !kept.iter().any(|above| path.starts_with(&above.path)) {
                kept.push(Denied { path, kind, rule });
            }
        }
        if kept.len() > MOST { Err(too_many()) } else { Ok(kept) }
    }
}

/// Whether there is nothing at a path; a file has nothing in it either.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    ) || error.raw_os_error() == Some(ERROR_INVALID_NAME)
}

fn too_many() -> Error {
    Error::Input {
        what: "deny".to_owned(),
        why: format!(
            "the rules match more than {MOST} paths; deny the directories that hold them, or grant less"
        ),
    }
}

#[cfg(test)]
mod tests {
    use mcp_policy::Layer;

    use super::*;
    use crate::core::request::PlaceKind;

    struct Project(PathBuf);

    impl Project {
        fn new(name: &str, files: &[&str]) -> Project {
            let at = std::env::temp_dir().join(format!("mcp-Deny-{name}-{}", std::process::id()));
            for file in files {
                let path = at.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "x").unwrap();
            }
            Project(real(&at).unwrap())
        }

        fn found(&self, rules: &[&str]) -> Vec<String> {
            let mut layer = Layer::command_line(self.0.clone(), None);
            for rule in rules {
                layer.deny(rule);
            }
            let rules = layer.build().unwrap().filesystem.deny;
            let place = Place { path: self.0.clone(), kind: PlaceKind::Directory };
            let denied = find(&rules, &[&place]).unwrap();
            let below = |denied: Denied| {
                denied.path.strip_prefix(&self.0).unwrap().to_str().unwrap().replace('\\', "/")
            };
            denied.into_iter().map(below).collect()
        }
    }

    impl Drop for Project {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn rules_match_in_any_case_and_outermost_only() {
        let files = ["a/.env", "a/b/.ENV", "a/b/x.Pem", "keys/id", "keys/old/id", "plain"];
        let project = Project::new("case", &files);
        assert_eq!(project.found(&["**/.env"]), ["a/.env", "a/b/.ENV"]);
        assert_eq!(project.found(&["a/**/*.pem"]), ["a/b/x.Pem"]);
        assert_eq!(project.found(&["keys", "keys/old", "**/id"]), ["keys"]);
        assert_eq!(project.found(&["none", "*.none"]), Vec::<String>::new());
        assert_eq!(project.found(&["plain/x*"]), Vec::<String>::new());
    }

    #[test]
    fn drives_and_backslashes_are_read_as_globs() {
        let parsed = |text: &str| globs(Path::new(text)).unwrap().remove(0);
        for text in [r"C:\Keys\**\*.PEM", r"\\?\C:\Keys\**\*.PEM", r"\\[?]\C:\Keys\**\*.PEM"] {
            let (head, glob) = parsed(text);
            assert_eq!(head, Path::new("C:/Keys"), "{text}");
            assert_eq!(glob.head, Path::new("/c|/keys"), "{text}");
            assert_eq!(glob.tail.len(), 2, "{text}");
            assert!(glob.tail[1].matches(b"a.pem") && !glob.floating, "{text}");
        }
        assert_eq!(key(Path::new(r"C:\Users\Me")), Path::new("/c|/users/me"));
        assert!(parsed(r"**\.env").1.floating);
        assert_eq!(parsed(r"D:\*.key").0, Path::new("D:/"));
    }
}
