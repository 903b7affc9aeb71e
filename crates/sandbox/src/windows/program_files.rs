//! Which files beside a program it needs, what an npm shim stands for, and programs that never start in an AppContainer.
//! Pure: names and text in, answers out.

use std::path::{Path, PathBuf};

/// Endings of files that a program loads from its own directory, and of programs beside it.
const NEEDED_FILES: [&str; 17] = [
    "bat", "cmd", "com", "config", "dat", "dll", "exe", "ico", "json5", "manifest", "pak", "pri",
    "ps1", "pyd", "winmd", "zip", "_pth",
];
/// Directories that installations of Node, Python, .NET, Electron and Java have beside their programs.
const NEEDED_DIRECTORIES: [&str; 17] = [
    "bin",
    "conf",
    "dlls",
    "host",
    "include",
    "jre",
    "lib",
    "libs",
    "locales",
    "node_modules",
    "plugins",
    "resources",
    "scripts",
    "sdk",
    "share",
    "shared",
    "tcl",
];

/// Whether a program needs this neighbour. `.env`, keys and documents beside it are none of its files.
pub fn is_needed(name: &str, is_directory: bool) -> bool {
    let name = name.to_ascii_lowercase();
    if name.starts_with('.') {
        return false;
    }
    match is_directory {
        true => NEEDED_DIRECTORIES.contains(&name.as_str()),
        false => name.rsplit_once('.').is_some_and(|(_, ending)| NEEDED_FILES.contains(&ending)),
    }
}

/// Whether cmd.exe has to run it.
pub fn is_batch(program: &Path) -> bool {
    let ending = program.extension().map(|ending| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| ending == "cmd" || ending == "bat")
}

/// The script that a shim of npm (`name.cmd`) runs with Node, below the shim's own directory. cmd.exe is not needed for
/// it, and does not start a program by its full path where a container cannot open the drive's root.
pub fn npm_shim(text: &str, directory: &Path) -> Option<PathBuf> {
    let line = text.lines().rev().find(|line| line.trim_end().ends_with("%*"))?;
    let script = line.split('"').find_map(|part| part.strip_prefix(r"%dp0%\"))?;
    let names: Vec<&str> = script.split(['\\', '/']).collect();
    let is_plain = |name: &&str| !name.is_empty() && !name.contains(['%', ':', '"']);
    let is_script = [".js", ".cjs", ".mjs"].iter().any(|ending| script.ends_with(ending));
    let runs_node = line.contains("%_prog%") || line.to_ascii_lowercase().contains("node.exe");
    (is_script && runs_node && names.iter().all(is_plain))
        .then(|| names.into_iter().fold(directory.to_owned(), |at, name| at.join(name)))
}

/// Whether containers can open the root of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveRoot {
    Readable,
    Closed,
}

/// How a batch file is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Batch {
    /// By Node with this script; cmd.exe has no part in it.
    Node(PathBuf),
    /// By cmd.exe, which opens the root of the drive before it starts a program by its full path.
    Cmd,
    /// Not at all.
    Never,
}

/// How a batch file with this text is run from a drive with this root.
pub fn batch(text: &str, directory: &Path, root: DriveRoot) -> Batch {
    match (npm_shim(text, directory), root) {
        (Some(script), _) => Batch::Node(script),
        (None, DriveRoot::Readable) => Batch::Cmd,
        (None, DriveRoot::Closed) => Batch::Never,
    }
}

/// Why a program cannot start in an AppContainer, and what to use instead. `neighbours` are the names beside it.
pub fn never_starts(program: &str, neighbours: &[String]) -> Option<&'static str> {
    let path = program.replace('/', r"\").to_ascii_lowercase();
    if path.contains(r"\microsoft\windowsapps\") || path.contains(r"\program files\windowsapps\") {
        return Some(
            "is an alias of the Microsoft Store or an MSIX package, which Windows does not start in an AppContainer; \
             install the program with its own installer (PowerShell: the MSI, Python: python.org), and name that one",
        );
    }
    let has = |wanted: &str| neighbours.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    (has("msys-2.0.dll") || has("cygwin1.dll")).then_some(
        "is a program of MSYS or Cygwin, whose runtime does not start in an AppContainer; use the native program \
         (git: Git\\cmd\\git.exe, a shell: powershell.exe)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIM: &str = "@ECHO off\r\nGOTO start\r\n:find_dp0\r\nSET dp0=%~dp0\r\nEXIT /b\r\n:start\r\nSETLOCAL\r\n\
        CALL :find_dp0\r\n\r\nIF EXIST \"%dp0%\\node.exe\" (\r\n  SET \"_prog=%dp0%\\node.exe\"\r\n) ELSE (\r\n  \
        SET \"_prog=node\"\r\n  SET PATHEXT=%PATHEXT:;.JS;=;%\r\n)\r\n\r\n\
        endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & \"%_prog%\"  \
        \"%dp0%\\node_modules\\@scope\\server\\dist\\index.js\" %*\r\n";

    #[test]
    fn a_shim_of_npm_is_node_and_a_script() {
        let script = npm_shim(SHIM, Path::new("C:/npm")).unwrap();
        let names: Vec<_> = script.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        assert_eq!(
            names[names.len() - 5..],
            ["node_modules", "@scope", "server", "dist", "index.js"]
        );
    }

    #[test]
    fn batch_files_by_their_ending() {
        assert!(is_batch(Path::new("x.CMD")) && is_batch(Path::new("x.bat")));
        assert!(!is_batch(Path::new("cmd.exe")) && !is_batch(Path::new("cmd")));
    }

    #[test]
    fn other_batch_files_are_none() {
        for text in [
            "",
            "@echo off\r\nstart calc.exe %*\r\n",
            "\"%_prog%\" \"%dp0%\\..\\%EVIL%\\x.js\" %*",
            "\"%_prog%\" \"%dp0%\\x.exe\" %*",
            "\"%other%\" \"%dp0%\\x.js\" %*",
        ] {
            assert_eq!(npm_shim(text, Path::new("C:/npm")), None, "{text}");
        }
    }

    #[test]
    fn secrets_beside_a_program_are_not_needed() {
        for (name, is_directory) in [
            (".env", false),
            ("id_rsa", false),
            ("notes.txt", false),
            (".git", true),
            ("src", true),
            ("data", true),
            ("key.pem", false),
        ] {
            assert!(!is_needed(name, is_directory), "{name}");
        }
        for (name, is_directory) in [
            ("node.exe", false),
            ("VCRUNTIME140.dll", false),
            ("node_modules", true),
            ("Lib", true),
            ("python312._pth", false),
            ("npm.cmd", false),
        ] {
            assert!(is_needed(name, is_directory), "{name}");
        }
    }

    #[test]
    fn store_aliases_and_msys_have_a_clear_line() {
        let none: &[String] = &[];
        assert!(
            never_starts(r"C:\Users\me\AppData\Local\Microsoft\WindowsApps\python.exe", none)
                .is_some()
        );
        assert!(
            never_starts(r"C:\Program Files\WindowsApps\Microsoft.PowerShell_7\pwsh.exe", none)
                .is_some()
        );
        assert!(never_starts(r"C:\Program Files\nodejs\node.exe", none).is_none());
        let msys = ["bash.exe".to_owned(), "MSYS-2.0.dll".to_owned()];
        assert!(
            never_starts(r"C:\Program Files\Git\usr\bin\bash.exe", &msys).unwrap().contains("MSYS")
        );
    }
}
