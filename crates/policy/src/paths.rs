//! From the path a person wrote to an absolute one. Lexical only: `..` stays, because what
//! it means depends on links, and the host is asked later.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::ValueError;
use crate::glob::literal;

/// What relative paths and `~` are resolved against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathRoots {
    pub base: PathBuf,
    pub home: Option<PathBuf>,
}

/// What to make of `~name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tilde {
    /// In a file it can only mean the home of the user NAME: refused.
    File,
    /// The shell has expanded what it could, so what is left is a file of that name.
    Shell,
}

impl PathRoots {
    pub fn resolve(&self, path: &Path, tilde: Tilde) -> Result<PathBuf, ValueError> {
        let (root, rest) = self.split(path, tilde)?;
        Ok(normal(&root.join(rest)))
    }

    /// A glob that starts with `**` matches anywhere and belongs to no directory. In any
    /// other glob, the directory it is resolved against is taken literally.
    pub fn resolve_deny(&self, path: &Path, tilde: Tilde) -> Result<PathBuf, ValueError> {
        let (root, rest) = self.split(path, tilde)?;
        if rest.starts_with("**") {
            return Ok(normal(rest));
        }
        if is_glob(rest.as_os_str()) && rest.is_relative() {
            return Ok(normal(&literal(root).join(rest)));
        }
        Ok(normal(&root.join(rest)))
    }

    fn split<'a>(
        &'a self,
        path: &'a Path,
        tilde: Tilde,
    ) -> Result<(&'a Path, &'a Path), ValueError> {
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.is_empty() {
            return Err(ValueError::new(0..0, "empty path", "write . for the directory itself"));
        }
        if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
            return Err(ValueError::new(at..at + 1, "NUL character in path", "remove it"));
        }
        if let Ok(rest) = path.strip_prefix("~") {
            let home = self.home.as_deref().ok_or_else(|| {
                ValueError::new(0..1, "the home directory is not known", "write the path in full")
            })?;
            return Ok((home, rest));
        }
        if tilde == Tilde::File && bytes[0] == b'~' {
            return Err(ValueError::new(
                0..path.to_str().and_then(|path| path.find(['/', '\\'])).unwrap_or(bytes.len()),
                "only one's own home can be written with \"~\"",
                "write ~/…, or ./~… for a file of that name",
            ));
        }
        Ok((&self.base, path))
    }
}

/// Without `.`, doubled and trailing separators, so that equal paths compare equal.
fn normal(path: &Path) -> PathBuf {
    path.components().collect()
}

pub(crate) fn is_glob(path: &OsStr) -> bool {
    path.as_encoded_bytes().iter().any(|byte| b"*?[{".contains(byte))
}

/// Whether `asked` is one of `granted` or below one of them. A path with `..` may lead
/// anywhere, so it counts as below nothing.
pub(crate) fn is_within(asked: &Path, granted: &std::collections::HashSet<&Path>) -> bool {
    let climbs = asked.components().any(|part| part == std::path::Component::ParentDir);
    if climbs {
        return granted.contains(asked);
    }
    asked.ancestors().any(|ancestor| granted.contains(ancestor))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn roots() -> PathRoots {
        PathRoots { base: "/srv/[app]".into(), home: Some("/home/me".into()) }
    }

    #[test]
    fn paths_become_absolute() {
        for (written, expected) in [
            ("./data/", "/srv/[app]/data"),
            ("~/notes", "/home/me/notes"),
            ("~", "/home/me"),
            ("/etc//x/.", "/etc/x"),
            ("../up", "/srv/[app]/../up"),
        ] {
            assert_eq!(roots().resolve(Path::new(written), Tilde::File), Ok(expected.into()));
        }
    }

    #[test]
    fn tilde_names_differ_between_file_and_shell() {
        let path = Path::new("~root/x");
        assert_eq!(roots().resolve(path, Tilde::File).unwrap_err().span, 0..5);
        assert_eq!(roots().resolve(path, Tilde::Shell), Ok("/srv/[app]/~root/x".into()));
        let homeless = PathRoots { home: None, ..roots() };
        assert!(homeless.resolve(Path::new("~/x"), Tilde::Shell).is_err());
    }

    #[test]
    fn deny_globs_take_the_directory_literally() {
        for (written, expected) in [
            ("**/.env", "**/.env"),
            ("*.pem", "/srv/[[]app]/*.pem"),
            ("secret", "/srv/[app]/secret"),
            ("~/.ssh/*", "/home/me/.ssh/*"),
            ("/etc/*.key", "/etc/*.key"),
        ] {
            assert_eq!(roots().resolve_deny(Path::new(written), Tilde::File), Ok(expected.into()));
        }
    }

    #[test]
    fn a_directory_that_is_not_utf8_is_literal_too() {
        let base = PathBuf::from(OsStr::from_bytes(b"/srv/\xff[a]"));
        let roots = PathRoots { base, home: None };
        let expected = Path::new(OsStr::from_bytes(b"/srv/\xff[[]a]/*.pem"));
        let resolved = roots.resolve_deny(Path::new("*.pem"), Tilde::Shell);
        assert_eq!(resolved.as_deref(), Ok(expected));
    }

    #[test]
    fn odd_bytes_are_kept_and_nul_is_not() {
        let odd = Path::new(OsStr::from_bytes(b"~/a\nb\xff"));
        let expected = Path::new(OsStr::from_bytes(b"/home/me/a\nb\xff"));
        assert_eq!(roots().resolve(odd, Tilde::Shell).as_deref(), Ok(expected));
        assert!(roots().resolve(Path::new("a\0b"), Tilde::Shell).is_err());
        assert!(roots().resolve(Path::new(""), Tilde::Shell).is_err());
    }

    #[test]
    fn dot_dot_is_below_nothing() {
        let granted = [Path::new("/srv")].into_iter().collect();
        assert!(is_within(Path::new("/srv/a/b"), &granted));
        assert!(is_within(Path::new("/srv"), &granted));
        assert!(!is_within(Path::new("/srv/../etc"), &granted));
        assert!(!is_within(Path::new("/srvx"), &granted));
    }
}
