//! Where git keeps the settings that hold for every repository of the user's.

use std::path::{Path, PathBuf};

use super::git_config::pathname::Homes;

/// The settings that hold for every repository of the user's.
pub struct UserSettings {
    pub homes: Homes,
    pub files: Vec<PathBuf>,
}

impl UserSettings {
    /// By the variables that git itself looks at.
    pub fn of_the_caller() -> UserSettings {
        let homes = Homes::of_the_caller();
        let variable = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let mut files = variable("GIT_CONFIG_SYSTEM").map_or_else(system_files, |file| vec![file]);
        files.extend(variable("GIT_CONFIG_GLOBAL"));
        // Also where a variable says otherwise here: it need not in another terminal.
        files.extend(variable("XDG_CONFIG_HOME").map(|at| at.join("git/config")));
        for home in homes.own() {
            files.push(home.join(".config/git/config"));
            files.push(home.join(".gitconfig"));
        }
        UserSettings { homes, files }
    }
}

#[cfg(all(test, unix))]
impl UserSettings {
    pub fn of_home(home: &Path) -> UserSettings {
        let files = vec![home.join(".config/git/config"), home.join(".gitconfig")];
        UserSettings { homes: Homes::at(home), files }
    }
}

/// Where the versions of git look that people have: a system's, one built by hand, Homebrew's, Git for Windows.
fn system_files() -> Vec<PathBuf> {
    let of_unix = ["/etc", "/usr/local/etc", "/opt/homebrew/etc"];
    match cfg!(windows) {
        false => of_unix.iter().map(|at| Path::new(at).join("gitconfig")).collect(),
        true => {
            let below =
                |name: &str, file: &str| Some(PathBuf::from(std::env::var_os(name)?).join(file));
            let files = [
                below("PROGRAMDATA", "Git\\config"),
                below("ProgramFiles", "Git\\etc\\gitconfig"),
                below("LOCALAPPDATA", "Programs\\Git\\etc\\gitconfig"),
            ];
            files.into_iter().flatten().collect()
        }
    }
}
