//! Finds the program a command means, and what must be shown for it to run. The current directory is not
//! searched: a program that lies there must be named as `.\name`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::core::error::Error;
use crate::windows::disk;
use crate::windows::program_files::{self, Batch, DriveRoot, is_batch, is_needed, never_starts};

pub struct Located {
    pub program: PathBuf,
    /// Directories and files that belong to the program.
    pub shown: Vec<PathBuf>,
    /// The script that a shim of npm stands for: Node's first argument.
    pub script: Option<PathBuf>,
}

/// Endings of files that Windows runs by themselves.
const ENDINGS: [&str; 4] = ["exe", "com", "cmd", "bat"];

pub fn locate(command: &OsStr, cwd: &Path) -> Result<Located, Error> {
    let name = Path::new(command);
    let text = command.to_string_lossy();
    let is_path = text.contains(['\\', '/', ':']);
    let found = if is_path {
        candidates(&cwd.join(name)).into_iter().find(|path| path.is_file())
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .filter(|directory| directory.is_absolute())
            .flat_map(|directory| candidates(&directory.join(name)))
            .find(|path| path.is_file())
    };
    let Some(found) = found else {
        return Err(Error::NotFound { command: text.into_owned() });
    };
    let program = plain(&found)
        .map_err(|e| Error::NotExecutable { path: found.clone(), why: e.to_string() })?;
    if !has_ending(&program) {
        let why = "is no program (.exe, .com, .cmd, .bat); name its interpreter first".to_owned();
        return Err(Error::NotExecutable { path: program, why });
    }
    let neighbours = program.parent().map(names).unwrap_or_default();
    if let Some(why) = never_starts(&program.to_string_lossy(), &neighbours) {
        return Err(Error::NotExecutable { path: program, why: why.to_owned() });
    }
    if is_batch(&program) {
        return batch(&program, cwd);
    }
    let shown = surroundings(&program);
    Ok(Located { program, shown, script: None })
}

/// A shim of npm is Node and a script, without cmd.exe. Any other batch file needs cmd.exe, which opens the root of the
/// drive before it starts a program by its full path.
fn batch(program: &Path, cwd: &Path) -> Result<Located, Error> {
    let directory = program.parent().unwrap_or(program);
    let text = std::fs::read_to_string(program).unwrap_or_default();
    let is_readable =
        super::probe::resolved(program).is_ok_and(|path| disk::is_root_readable(&path));
    let root = if is_readable { DriveRoot::Readable } else { DriveRoot::Closed };
    match program_files::batch(&text, directory, root) {
        Batch::Node(script) if plain(&script).is_ok() => {
            let beside = directory.join("node.exe");
            let node = if beside.is_file() { beside.into_os_string() } else { "node".into() };
            let mut located = locate(&node, cwd)?;
            // Of the shim's directory only the packages, not what else lies there.
            located.shown.push(directory.join("node_modules"));
            located.script = plain(&script).ok();
            Ok(located)
        }
        Batch::Cmd => {
            let shown = surroundings(program);
            Ok(Located { program: program.to_owned(), shown, script: None })
        }
        Batch::Node(script) => {
            let why = format!("is a shim of npm for {}, which is not there", script.display());
            Err(Error::NotExecutable { path: program.to_owned(), why })
        }
        Batch::Never => {
            let why = "is a batch file, and cmd.exe cannot start it here: a container cannot open the root of the \
                       drive; start the program behind it, or run once, as administrator: icacls C:\\ /grant \
                       *S-1-15-2-1:(RA,REA,RC,S)";
            Err(Error::NotExecutable { path: program.to_owned(), why: why.to_owned() })
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn has_ending(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// The name itself where it has an ending, else with each of them in turn.
fn candidates(path: &Path) -> Vec<PathBuf> {
    let with = |ending: &&str| {
        let mut name = OsString::from(path);
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    };
    let mut all: Vec<PathBuf> = ENDINGS.iter().map(with).collect();
    match has_ending(path) {
        true => all.insert(0, path.to_owned()),
        // Found, but not to be run: said so instead of "not found".
        false => all.push(path.to_owned()),
    }
    all
}

/// Without links, and without the prefix that programs stumble over.
pub fn plain(path: &Path) -> std::io::Result<PathBuf> {
    super::probe::resolved(path).map(|path| PathBuf::from(path.to_string()))
}

/// The program, and the libraries and directories beside it that programs need (`program_files`); of a Python
/// environment all of it, and the Python it was made from. In a directory of documents, the file alone.
fn surroundings(program: &Path) -> Vec<PathBuf> {
    let Some(directory) = program.parent() else { return vec![program.to_owned()] };
    let mut shown = Vec::new();
    let above = directory.parent();
    let settings = above.map(|above| above.join("pyvenv.cfg")).filter(|file| file.is_file());
    if let (Some(above), Some(settings)) = (above, settings) {
        shown.push(above.to_owned());
        let text = std::fs::read_to_string(settings).unwrap_or_default();
        let home = text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == "home").then(|| PathBuf::from(value.trim()))
        });
        shown.extend(home.and_then(|home| plain(&home).ok()).filter(|home| !is_crowded(home)));
        return shown;
    }
    shown.push(program.to_owned());
    if is_crowded(directory) {
        return shown;
    }
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
            continue;
        };
        if !kind.is_symlink() && is_needed(&name, kind.is_dir()) && entry.path() != program {
            shown.push(entry.path());
        }
    }
    shown
}

/// A drive, a home, or where people keep documents.
fn is_crowded(directory: &Path) -> bool {
    let home =
        std::env::var_os("USERPROFILE").map(PathBuf::from).and_then(|home| plain(&home).ok());
    let temporary = plain(&std::env::temp_dir()).ok();
    let is = |place: &Option<PathBuf>| {
        place.as_deref().is_some_and(|place| place.starts_with(directory))
    };
    let personal = ["Desktop", "Documents", "Downloads", "OneDrive"];
    let in_home =
        home.as_ref().is_some_and(|home| personal.iter().any(|name| directory == home.join(name)));
    directory.parent().is_none() || is(&home) || is(&temporary) || in_home
}
