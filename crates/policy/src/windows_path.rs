//! Windows paths, spelt in one way only.
//!
//! One place has many names there: `\\?\C:\x`, `c:/X`, `C:\PROGRA~1`, `C:\x.`, `C:\x::$DATA`. What is
//! compared, granted or denied must be compared in one of them. Pure, and the same on every system: links,
//! junctions and short names are for the host to resolve before (`canonicalize`), and what could still stand
//! for another place is refused here.

use std::fmt;

use serde::{Serialize, Serializer};

/// An absolute path on a drive of this machine: no device, server, stream, link name or `..` in it.
#[derive(Debug, Clone)]
pub struct WindowsPath {
    /// Upper case.
    drive: char,
    /// As they were written.
    names: Vec<String>,
}

/// Whether a path was written by a person or told by the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Names that look short (8.3) may stand for another one, and are refused.
    Written,
    /// Resolved: a name that looks short is the file's own name.
    Resolved,
}

impl WindowsPath {
    /// # Errors
    /// Why the text does not name one place on a local drive.
    pub fn parse(text: &str, spelling: Spelling) -> Result<WindowsPath, &'static str> {
        if text.is_empty() {
            return Err("an empty path names nothing");
        }
        if text.chars().any(char::is_control) {
            return Err("has a control character in it");
        }
        let slashes = text.replace('/', r"\");
        let rest = match slashes.strip_prefix(r"\\?\") {
            Some(rest) if rest.get(..4).is_some_and(|it| it.eq_ignore_ascii_case(r"UNC\")) => {
                return Err(SERVER);
            }
            Some(rest) if is_drive(rest) => rest,
            Some(_) => return Err(DEVICE),
            None if slashes.starts_with(r"\\.\") || slashes.starts_with(r"\??\") => {
                return Err(DEVICE);
            }
            None if slashes.starts_with(r"\\") => return Err(SERVER),
            None => slashes.as_str(),
        };
        if !is_drive(rest) {
            return Err("is not a full path with its drive (C:\\…)");
        }
        let drive = rest.chars().next().map_or('?', |letter| letter.to_ascii_uppercase());
        let mut names = Vec::new();
        for name in rest.get(2..).unwrap_or_default().split('\\') {
            match name {
                "" | "." => {}
                ".." => return Err(".. is refused; write the path from the root"),
                name => {
                    if let Some(why) = judge_name(name, spelling) {
                        return Err(why);
                    }
                    names.push(name.to_owned());
                }
            }
        }
        Ok(WindowsPath { drive, names })
    }

    /// Whether this is `other`, or lies below it. Case means nothing.
    pub fn is_within(&self, other: &WindowsPath) -> bool {
        let begins = self.names.len() >= other.names.len()
            && self.names.iter().zip(&other.names).all(|(a, b)| folded(a) == folded(b));
        self.drive == other.drive && begins
    }

    /// A drive as a whole.
    pub fn is_root(&self) -> bool {
        self.names.is_empty()
    }

    /// The directory above; none above a drive or share.
    pub fn parent(&self) -> Option<WindowsPath> {
        let (_, above) = self.names.split_last()?;
        Some(WindowsPath { drive: self.drive, names: above.to_vec() })
    }

    /// The directories above, the nearest first; the last is the drive.
    pub fn ancestors(&self) -> impl Iterator<Item = WindowsPath> {
        std::iter::successors(self.parent(), WindowsPath::parent)
    }

    /// Something below, by names that are known good.
    ///
    /// # Errors
    /// Why the name does not name one file.
    pub fn join(&self, name: &str) -> Result<WindowsPath, &'static str> {
        match judge_name(name, Spelling::Resolved) {
            _ if name.is_empty() || name.contains(['\\', '/']) || name == "." || name == ".." => {
                Err("is not a single name")
            }
            Some(why) => Err(why),
            None => {
                let mut joined = self.clone();
                joined.names.push(name.to_owned());
                Ok(joined)
            }
        }
    }

    /// For calls that would otherwise stop at 260 characters, or read it once more.
    pub fn verbatim(&self) -> String {
        format!(r"\\?\{self}")
    }

    /// The last part; none of a drive or share.
    pub fn file_name(&self) -> Option<&str> {
        self.names.last().map(String::as_str)
    }
}

impl PartialEq for WindowsPath {
    fn eq(&self, other: &WindowsPath) -> bool {
        self.names.len() == other.names.len() && self.is_within(other)
    }
}

impl Eq for WindowsPath {}

impl Serialize for WindowsPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for WindowsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r"{}:\{}", self.drive, self.names.join("\\"))
    }
}

const DEVICE: &str = "is a Windows device path";
const SERVER: &str = "is a path on a Windows server (UNC)";

fn is_drive(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.len() >= 3 && bytes[0].is_ascii_alphabetic() && &bytes[1..3] == br":\"
}

/// A path as `canonicalize` gives it, without the prefix (`\\?\`) that programs stumble over, where it has a
/// spelling without. On other systems, as it is.
#[must_use]
pub fn plain(path: std::path::PathBuf) -> std::path::PathBuf {
    let rest = path.to_str().and_then(|text| text.strip_prefix(r"\\?\"));
    match rest.filter(|rest| is_drive(rest)) {
        Some(rest) => rest.into(),
        None => path,
    }
}

/// NTFS compares by a table of its own, one character for one; this is close, and folds more rather than
/// less: two names taken for one are both closed or both open.
fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_uppercase).collect()
}

/// What Windows takes a name for that looks like an ordinary one.
pub fn judge_name(name: &str, spelling: Spelling) -> Option<&'static str> {
    if name == "." {
        return None;
    }
    if name.contains(':') {
        return Some("names an NTFS stream, or a drive within a path");
    }
    if name.contains(['<', '>', '"', '|', '?', '*']) {
        return Some("has a character that no Windows name may have");
    }
    if name.ends_with(['.', ' ']) {
        return Some("ends in a dot or a blank, which Windows drops");
    }
    if is_device(name) {
        return Some("is the name of a Windows device");
    }
    if spelling == Spelling::Written && is_short(name) {
        return Some("looks like a short name (8.3), which stands for another; write the long one");
    }
    None
}

/// `nul`, `COM1.txt`, `aux .c`: whatever directory they are said to be in.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |device: &str| {
        let digits = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"];
        stem.strip_prefix(device).is_some_and(|number| digits.contains(&number))
    };
    let plain = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"];
    plain.contains(&stem.as_str()) || numbered("COM") || numbered("LPT")
}

/// `PROGRA~1`, `FILE~12.TXT`.
fn is_short(name: &str) -> bool {
    let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
    let Some((start, number)) = stem.rsplit_once('~') else {
        return false;
    };
    !start.is_empty()
        && stem.len() <= 8
        && ending.len() <= 3
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
