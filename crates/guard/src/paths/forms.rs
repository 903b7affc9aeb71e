//! Spellings of paths that are refused before anything is opened. Pure: the Windows ones are judged
//! on every system, since a path may come from anywhere.

use mcp_policy::windows_path::{Spelling, judge_name};

use mcp_policy::text::is_invisible;

/// Whose rules a path is spelt by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Parts between `/`.
    Unix,
    /// Parts between `\` or `/`, drives, shares and streams.
    Windows,
}

impl Style {
    /// That of the system this program runs on.
    pub const fn native() -> Style {
        if cfg!(windows) { Style::Windows } else { Style::Unix }
    }
}

/// What is wrong with a spelling, if anything.
pub fn judge(path: &str, style: Style) -> Option<&'static str> {
    if path.is_empty() {
        return Some("an empty path names nothing");
    }
    if path.contains('\0') {
        return Some("has a NUL character in it");
    }
    if path.chars().any(char::is_control) {
        return Some("has a control character in it");
    }
    if path.chars().any(is_invisible) {
        return Some("has an invisible or direction-changing character in it");
    }
    if path == "~" || path.starts_with("~/") || path.starts_with(r"~\") {
        return Some("~ is not expanded here; write the directory");
    }
    if let Some(why) = foreign(path) {
        // Drive letters are how paths begin there, and are left to the roots.
        let drive = style == Style::Windows && why == DRIVE && path.as_bytes().get(2).is_some();
        if !drive {
            return Some(why);
        }
    }
    let separators: &[char] = if style == Style::Windows { &['/', '\\'] } else { &['/'] };
    let mut names = path.split(separators).filter(|name| !name.is_empty());
    if names.clone().any(|name| name == "..") {
        return Some(".. is refused; write the path from the root");
    }
    match style {
        Style::Unix => None,
        Style::Windows => {
            let skip = usize::from(is_drive(path));
            names.by_ref().take(skip).for_each(drop);
            names.find_map(|name| judge_name(name, Spelling::Written))
        }
    }
}

const DRIVE: &str = "is a path of a Windows drive";

/// Spellings that mean another place on Windows and nothing sensible elsewhere.
fn foreign(path: &str) -> Option<&'static str> {
    let slashes = path.replace('/', r"\");
    if slashes.starts_with(r"\\?\") || slashes.starts_with(r"\\.\") || slashes.starts_with(r"\??\")
    {
        return Some("is a Windows device path");
    }
    // Two slashes are one on Unix, two backslashes a server.
    if path.starts_with(r"\\") {
        return Some("is a path on a Windows server (UNC)");
    }
    if path.to_ascii_lowercase().contains("::$") {
        return Some("names an NTFS stream");
    }
    if is_drive(path) {
        return Some(DRIVE);
    }
    None
}

fn is_drive(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.len() >= 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes.get(2), None | Some(b'\\' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_everywhere() {
        for path in [
            "",
            "a\0b",
            "a\nb",
            "a\u{1b}b",
            "a\u{202e}txt.exe",
            "a\u{200b}",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "~/x",
            "~",
            r"\\server\share",
            r"\\?\C:\x",
            "//?/C:/x",
            r"\\.\COM1",
            "//./x",
            "a.txt::$DATA",
            "a.txt::$data",
            r"\??\C:\x",
        ] {
            assert!(judge(path, Style::Unix).is_some(), "{path:?}");
            assert!(judge(path, Style::Windows).is_some(), "{path:?}");
        }
        for path in ["C:", r"C:\x", "c:/x"] {
            assert!(judge(path, Style::Unix).is_some(), "{path:?}");
        }
    }

    #[test]
    fn refused_on_windows() {
        for path in [
            "a.txt:stream",
            "a:b",
            r"x\..\y",
            "con",
            "CON.txt",
            "aux",
            r"dir\nul",
            "com1",
            "LPT9.log",
            "COM¹",
            "name.",
            "name ",
            r"dir. \x",
            "PROGRA~1",
            r"a\FILE~12.TXT",
            "a?b",
            "a*",
            "C:",
            "C:x",
            "CONIN$",
            r"C:\a:b",
            "nul .txt",
        ] {
            assert!(judge(path, Style::Windows).is_some(), "{path:?}");
        }
    }

    #[test]
    fn good_names() {
        for path in
            ["a", "a/b.txt", "./a", "größe.txt", "a b", "...", "..a", "a~b", "console.log", ".env"]
        {
            assert_eq!(judge(path, Style::Unix), None, "{path:?}");
        }
        for path in [
            "a",
            r"a\b.txt",
            r".\a",
            "größe.txt",
            r"C:\src\a",
            "C:/a",
            "common",
            "auxiliary.c",
            "a~b",
        ] {
            assert_eq!(judge(path, Style::Windows), None, "{path:?}");
        }
        for path in ["12:30.log", "con", "aux.c", "name.", "a?b", r"back\slash"] {
            assert_eq!(judge(path, Style::Unix), None, "{path:?}");
        }
    }
}
