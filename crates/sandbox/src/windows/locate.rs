//! Finds the program a command means, and what must be shown for it to run. The current directory is not
//! searched: a program that lies there must be named as `.\name`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::core::error::Error;

pub struct Located {
    pub program: PathBuf,
    /// Directories and files that belong to the program.
    pub shown: Vec<PathBuf>,
}

/// What Windows runs without being told by what.
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
    let shown = surroundings(&program);
    Ok(Located { program, shown })
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

/// The program's directory with the libraries beside it; of a Python environment all of it, and the Python it
/// was made from. Of a directory that holds more than programs, the file alone.
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
    match is_crowded(directory) {
        true => shown.push(program.to_owned()),
        false => shown.push(directory.to_owned()),
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
