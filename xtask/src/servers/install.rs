//! Published servers, installed once into a cache directory.
//!
//! Versions and digests of everything are in `xtask/servers`, because the control run executes this
//! code outside the sandbox. No install scripts, wheels only. To renew them, in that directory:
//!
//! ```text
//! npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts
//! uv pip compile --universal --python-version 3.10 --generate-hashes --only-binary :all: \
//!     --no-header --no-annotate --no-emit-index-url requirements.in -o requirements.txt
//! ```

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

const PACKAGE: &str = include_str!("../../servers/package.json");
const PACKAGE_LOCK: &str = include_str!("../../servers/package-lock.json");
const REQUIREMENTS: &str = include_str!("../../servers/requirements.txt");

/// What has to be on this machine: a program with arguments that succeed, and where it comes from.
const NEEDED: [(&[&str], &str); 4] = [
    (&["node", "--version"], "node (Debian: nodejs)"),
    (&["npm", "--version"], "npm (Debian: npm)"),
    (&["python3", "-c", "import ensurepip, venv"], "python3 with venv (Debian: python3-venv)"),
    (&["git", "--version"], "git (Debian: git)"),
];

/// The two install directories.
pub struct Installed {
    node: PathBuf,
    python: PathBuf,
}

impl Installed {
    pub fn node(&self) -> &Path {
        &self.node
    }

    pub fn python(&self) -> &Path {
        &self.python
    }

    pub fn node_program(&self, name: &str) -> PathBuf {
        self.node.join("node_modules").join(".bin").join(name)
    }

    pub fn python_program(&self, name: &str) -> PathBuf {
        self.python.join("bin").join(name)
    }
}

pub fn install(cache: &Path) -> Result<Installed> {
    check_machine()?;
    fs::create_dir_all(cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let cache = cache.canonicalize()?;
    // Two checks at once must not install over each other; the lock ends with this function.
    let lock = File::create(cache.join("lock"))?;
    lock.lock()?;
    let installed = Installed { node: cache.join("node"), python: cache.join("python") };
    node_packages(&installed.node, "ci", PACKAGE, PACKAGE_LOCK)?;
    // A virtual environment links to the interpreter that made it.
    let python = said_by("python3", "--version")?;
    unless_stamped(&installed.python, &[REQUIREMENTS, &python], install_python)?;
    Ok(installed)
}

pub fn check_machine() -> Result<()> {
    check(&NEEDED)
}

pub fn check(needed: &[(&[&str], &'static str)]) -> Result<()> {
    let works = |words: &[&str]| match words.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        }
        None => false,
    };
    let missing: Vec<_> =
        needed.iter().filter(|(words, _)| !works(words)).map(|&(_, source)| source).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("not on this machine: {}", missing.join(", ")).into())
    }
}

/// Runs `install` unless it finished here before with the same ingredients. The path is one of
/// them: a virtual environment does not survive being moved.
fn unless_stamped(
    dir: &Path,
    ingredients: &[&str],
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let stamp = dir.join("stamp");
    let wanted = format!("{}\n{}", dir.display(), ingredients.join("\n"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    eprintln!("installing into {}", dir.display());
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir(dir)?,
    }
    install(dir)?;
    Ok(fs::write(stamp, wanted)?)
}

/// What a lock file of npm's names, by digest, into a directory: by `npm ci`, or by `npm install` where the lock lacks
/// packages of other systems.
pub fn node_packages(dir: &Path, verb: &str, package: &str, lock: &str) -> Result<()> {
    let node = said_by("node", "--version")?;
    unless_stamped(dir, &[lock, &node], |dir| install_node(dir, verb, package, lock))
}

fn install_node(dir: &Path, verb: &str, package: &str, lock: &str) -> Result<()> {
    fs::write(dir.join("package.json"), package)?;
    fs::write(dir.join("package-lock.json"), lock)?;
    let options = [
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--omit=dev",
        "--loglevel=error",
        "--no-update-notifier",
    ];
    succeed(Command::new("npm").arg(verb).args(options).current_dir(dir))
}

fn install_python(dir: &Path) -> Result<()> {
    succeed(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
    let requirements = dir.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS)?;
    let options = ["--quiet", "--disable-pip-version-check", "--require-hashes"];
    succeed(
        Command::new(dir.join("bin").join("python3"))
            .args(["-m", "pip", "install", "--only-binary", ":all:"])
            .args(options)
            .arg("--requirement")
            .arg(requirements),
    )
}

/// Runs a command and returns its standard output; its error output is the user's to see.
pub fn output_of(command: &mut Command) -> Result<String> {
    let shown = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        Err(format!("{shown} {}: {}", arguments.join(" "), output.status).into())
    }
}

pub fn succeed(command: &mut Command) -> Result<()> {
    output_of(command).map(drop)
}

fn said_by(program: &str, argument: &str) -> Result<String> {
    output_of(Command::new(program).arg(argument))
}

#[cfg(test)]
mod tests {
    use super::super::scene::Scene;
    use super::*;

    #[test]
    fn a_finished_install_is_not_repeated_until_its_ingredients_change() {
        let scene = Scene::new("stamp").unwrap();
        let dir = scene.root().join("installed");
        let mut count = 0;
        let mut install = |ingredient| {
            unless_stamped(&dir, &[ingredient], |_| {
                count += 1;
                Ok(())
            })
            .unwrap();
            count
        };
        assert_eq!([install("1.0"), install("1.0"), install("1.1")], [1, 1, 2]);
    }

    #[test]
    fn a_failed_install_leaves_no_stamp() {
        let scene = Scene::new("failed").unwrap();
        let dir = scene.root().join("installed");
        assert!(unless_stamped(&dir, &["1.0"], |_| Err("no network".into())).is_err());
        assert!(!dir.join("stamp").exists());
    }

    #[test]
    fn the_lock_files_name_no_registry() {
        assert!(!PACKAGE_LOCK.contains("\"resolved\""));
        assert!(!REQUIREMENTS.contains("index-url"));
    }
}
