//! Variables every Windows machine has, and places written the Windows way.

use crate::tri::Tri;
use crate::value::{Piece, Value};
use crate::wildcard;

/// What a variable of the environment is, as far as common sense tells.
pub fn variable(name: &str) -> Value {
    match name.to_lowercase().as_str() {
        "userprofile" | "home" => Value::of(Piece::Home),
        "homepath" => Value::text(r"\Users\you"),
        "homedrive" | "systemdrive" => Value::text("C:"),
        "systemroot" | "windir" => Value::text(r"C:\Windows"),
        "comspec" => Value::text("cmd"),
        "programfiles" | "programfiles(x86)" | "programw6432" => Value::text(r"C:\Program Files"),
        "programdata" | "allusersprofile" => Value::text(r"C:\ProgramData"),
        "public" => Value::text(r"C:\Users\Public"),
        "temp" | "tmp" => Value::text(r"C:\Temp"),
        "cd" | "pwd" => Value::text("."),
        "psscriptroot" | "pscommandpath" => {
            Value { pieces: vec![Piece::Text(r".\".to_owned()), Piece::Name] }
        }
        "appdata" => below_home(r"\AppData\Roaming"),
        "localappdata" => below_home(r"\AppData\Local"),
        "profile" => below_home(r"\Documents\PowerShell\profile.ps1"),
        "onedrive" => below_home(r"\OneDrive"),
        "username"
        | "computername"
        | "number_of_processors"
        | "random"
        | "date"
        | "time"
        | "pid"
        | "true"
        | "false"
        | "null"
        | "errorlevel"
        | "lastexitcode" => Value::of(Piece::Name),
        _ => Value::of(Piece::Unknown),
    }
}

/// What was typed, in the file where PowerShell keeps it.
pub fn history() -> Value {
    below_home(r"\AppData\Roaming\Microsoft\Windows\PowerShell\PSReadLine\ConsoleHost_history.txt")
}

fn below_home(path: &str) -> Value {
    Value { pieces: vec![Piece::Home, Piece::Text(path.to_owned())] }
}

/// Whether a word names one of the places a pattern stands for. Both are compared name by name,
/// in one spelling: `C:/x/../*` is `c:`.
pub fn place_is(value: &Value, pattern: &str) -> Tri {
    let open = |piece: &Piece| matches!(piece, Piece::Unknown | Piece::Many | Piece::Fetched);
    if value.pieces.first().is_some_and(open) {
        let rest = Value { pieces: value.pieces[1..].to_vec() }.without_unknown();
        // Something below an unknown directory is not a root.
        let nothing = rest.chars().all(|c| matches!(c, '\\' | '/' | '*' | '.'));
        return match (nothing, anywhere(pattern)) {
            (true, _) => Tri::Maybe,
            (false, Some(name)) if rest.starts_with(['\\', '/']) => ends_with(&names(&rest), name),
            (false, _) => Tri::No,
        };
    }
    let ends_open = value.pieces.len() > 1 && value.pieces.last().is_some_and(open);
    let own = names(&value.without_unknown());
    if let Some(name) = anywhere(pattern) {
        return if ends_open { Tri::No } else { ends_with(&own, name) };
    }
    let wanted = names(pattern);
    let below = wanted.last().is_some_and(|name| name == "**");
    let wanted = if below { &wanted[..wanted.len() - 1] } else { &wanted[..] };
    let fits = match below {
        true => own.len() > wanted.len(),
        false => own.len() == wanted.len(),
    };
    let same = own.iter().zip(wanted).all(|(own, wanted)| wildcard::matches(wanted, own));
    match (fits && same, ends_open) {
        (true, false) => Tri::Yes,
        (true, true) => Tri::Maybe,
        (false, _) => Tri::No,
    }
}

/// The name in `**/name`, which is one of that name in whatever directory.
fn anywhere(pattern: &str) -> Option<&str> {
    pattern.strip_prefix("**/")
}

fn ends_with(own: &[String], name: &str) -> Tri {
    if own.last().is_some_and(|last| last == name) { Tri::Yes } else { Tri::No }
}

/// Steps upwards that most likely end at the drive.
const FAR: usize = 4;

fn names(path: &str) -> Vec<String> {
    let path = path.to_lowercase().replace('/', r"\");
    // Long-path and device spellings of the same.
    let path =
        ["\\\\?\\", "\\\\.\\", "\\??\\", "microsoft.powershell.core\\filesystem::", "filesystem::"]
            .iter()
            .fold(path.as_str(), |path, prefix| path.strip_prefix(prefix).unwrap_or(path));
    let rooted = path.starts_with('\\');
    let mut names: Vec<String> = Vec::new();
    for name in path
        .split('\\')
        .map(|name| name.trim_end_matches(['.', ' ']).to_owned())
        .zip(path.split('\\'))
    {
        match name {
            (_, "." | "") => {}
            (_, "..") => {
                let drive = names.last().is_some_and(|last| last.ends_with(':'));
                if names.is_empty() || names.last().is_some_and(|last| last == "..") {
                    if !rooted {
                        names.push("..".to_owned());
                    }
                } else if !drive {
                    names.pop();
                }
            }
            (_, "**") => names.push("**".to_owned()),
            (_, raw @ ("*" | "*.*")) => names.push(raw.to_owned()),
            (trimmed, _) => names.push(trimmed),
        }
    }
    if rooted {
        names.insert(0, "?:".to_owned());
    }
    // Above everything that a project is in: no further up there is than the drive.
    let climbs = names.iter().take_while(|name| *name == "..").count();
    if climbs >= FAR {
        names.splice(..climbs, ["?:".to_owned()]);
    }
    // `C:\Users\ann` is her home.
    if let [drive, users, who, ..] = &names[..]
        && drive.ends_with(':')
        && users == "users"
        && !matches!(who.as_str(), "*" | "*.*" | "**")
    {
        names.splice(..3, ["~".to_owned()]);
    }
    // Everything in a directory is the directory.
    while names.last().is_some_and(|last| last == "*" || last == "*.*") {
        names.pop();
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(path: &str, pattern: &str) -> bool {
        place_is(&Value::text(path), pattern) == Tri::Yes
    }

    #[test]
    fn spellings() {
        for path in [r"C:\", "c:", "C:/", r"C:\*", r"c:\windows\..", r"\\?\C:\", r"C:\.\*.*"] {
            assert!(is(path, "?:"), "{path}");
        }
        for path in [r"C:\Users\ann", r"D:\users\ann\*", r"C:\Users\ann\x\.."] {
            assert!(is(path, "~"), "{path}");
        }
        assert!(is(r"C:\Users\*", r"?:\users"));
        assert!(is(r"C:\Program Files\Git", r"?:\program files\?*"));
        assert!(!is(r"C:\Users\ann\x", "~"));
        assert!(is("*", "."));
        assert!(is(r".\*", "."));
        assert!(is(r"..\..", r"..\.."));
        assert!(is(r"C:\Windows\System32\x", r"?:\windows\**"));
        assert!(is(r"\Users\ann", "~") && is(r"\Users\ann\Desktop\*", "~/desktop"));
        assert!(is(r"..\..\..\..", "?:") && is(r"..\..\..\..\..\Windows", "?:/windows"));
        assert!(!is(r"..\..\..\dist", "?:") && !is(r"..\..\..\..\dist", "?:"));
        assert!(!is(r"C:\proj\dist", "?:"));
        assert!(!is(r"dist\*", "."));
        for path in [".git", r".\.git", r"D:\repos\x\.git", r"..\x\.git\*"] {
            assert!(is(path, "**/.git"), "{path}");
        }
        assert!(!is(r"D:\repos\x\.github", "**/.git"));
    }
}
