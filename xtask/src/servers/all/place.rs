//! Where one server is run: a home that holds the caches and the store, and a directory of its own for each setting.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command as Plain;

use tokio::process::Command;

use super::super::exercise::make_repository;
use super::super::scene::Scene;
use super::list::Kind;
use super::page;
use crate::Result;

/// Directories of the user's that a variable would lead to instead of the home of the run.
const ELSEWHERE: [&str; 12] = [
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "npm_config_cache",
    "NPM_CONFIG_CACHE",
    "npm_config_prefix",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "PIP_CACHE_DIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];

/// Removed when dropped.
pub struct Place {
    scene: Scene,
    page: SocketAddr,
    /// Of npm and uv, where they are not the home's own.
    caches: Option<PathBuf>,
}

/// What one server runs in: the same home, a directory for each setting.
pub struct Places {
    pub bare: Place,
    pub mcp: Place,
}

impl Place {
    pub fn new(setting: &str, page: SocketAddr, caches: Option<&Path>) -> Result<Self> {
        let place = Self { scene: Scene::new(setting)?, page, caches: caches.map(Path::to_owned) };
        fs::create_dir(place.home())?;
        let dir = place.dir();
        fs::write(dir.join("note.txt"), "alpha\nbeta\ngamma\n")?;
        fs::write(dir.join("note.md"), "# Note\n\nThe heron stands still.\n")?;
        fs::write(dir.join("page.html"), page::HTML)?;
        fs::write(dir.join("table.csv"), "name,count\npelican,17\nheron,4\n")?;
        fs::create_dir(dir.join("repo"))?;
        make_repository(&dir.join("repo"))?;
        Ok(place)
    }

    pub fn home(&self) -> PathBuf {
        self.scene.root().join("home")
    }

    pub fn dir(&self) -> PathBuf {
        self.scene.granted()
    }

    /// A word of the list with its places filled in.
    pub fn filled(&self, word: &str) -> String {
        let page = format!("http://127.0.0.1:{}/", self.page.port());
        word.replace("{dir}", &self.dir().to_string_lossy())
            .replace("{page}", &page)
            .replace("{port}", &self.page.port().to_string())
    }

    /// An error without this run's paths, in one line.
    pub fn plain(&self, error: &str) -> String {
        let root = self.scene.root().to_string_lossy().into_owned();
        let mut error = error.replace(&format!("{root}/home"), "~").replace(&root, "…");
        if let Some(caches) = &self.caches {
            error = error.replace(&*caches.to_string_lossy(), "~");
        }
        error.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// A command that finds this home and no other. Its session is its own: the kernel shares processors among sessions,
    /// `mcp run` makes one, and a bare start without one would have to share that of this program.
    pub fn command(&self, program: &Path, home: &Path) -> Command {
        let mut command = Command::new("setsid");
        command.arg(program);
        for name in ELSEWHERE {
            command.env_remove(name);
        }
        command.env("HOME", home).current_dir(self.dir());
        if let Some(caches) = &self.caches {
            command.env("npm_config_cache", caches.join("npm"));
            command.env("UV_CACHE_DIR", caches.join("uv"));
            command.env("PIP_CACHE_DIR", caches.join("pip"));
        }
        command
    }

    fn npm_cache(&self) -> PathBuf {
        self.caches.as_ref().map_or_else(|| self.home().join(".npm"), |it| it.join("npm"))
    }

    fn uv_cache(&self) -> PathBuf {
        self.caches.as_ref().map_or_else(|| self.home().join(".cache/uv"), |it| it.join("uv"))
    }

    /// Where npx and uvx put what they run: the version of the package, and its program.
    pub fn installed(&self, kind: Kind, name: &str, program: Option<&str>) -> Result<Installed> {
        match kind {
            Kind::Npm => by_npx(&self.npm_cache(), name, program),
            Kind::Pypi => by_uvx(&self.uv_cache(), name, program),
        }
    }

    /// Takes away what was installed and leaves what was downloaded.
    pub fn forget_installed(&self) -> Result<()> {
        let uv = self.uv_cache();
        let mut gone = vec![self.npm_cache().join("_npx"), uv.join("environments-v2")];
        if let Ok(entries) = fs::read_dir(uv.join("archive-v0")) {
            let entries = entries.flatten().map(|it| it.path());
            gone.extend(entries.filter(|it| it.join("pyvenv.cfg").exists()));
        }
        for path in gone {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(format!("{}: {error}", path.display()).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What an interrupted start left behind, by the home that its environment names.
    pub fn end_leftovers(&self, home: &Path) -> io::Result<()> {
        let needle = format!("HOME={}", home.display()).into_bytes();
        for entry in fs::read_dir("/proc")?.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else {
                continue;
            };
            let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
            if environment.split(|byte| *byte == 0).any(|variable| variable == needle) {
                // It may have ended meanwhile.
                let _ = Plain::new("kill").args(["-KILL", pid]).status();
            }
        }
        Ok(())
    }
}

/// What a bare cold start installed.
pub struct Installed {
    pub version: String,
    pub program: PathBuf,
}

fn by_npx(cache: &Path, name: &str, program: Option<&str>) -> Result<Installed> {
    for prefix in fs::read_dir(cache.join("_npx"))?.flatten() {
        let modules = prefix.path().join("node_modules");
        let Ok(text) = fs::read_to_string(modules.join(name).join("package.json")) else {
            continue;
        };
        let package: serde_json::Value = serde_json::from_str(&text)?;
        let version = package["version"].as_str().unwrap_or_default().to_owned();
        let base = name.rsplit('/').next().unwrap_or(name);
        let program = match (program, package["bin"].as_object()) {
            (Some(program), _) => program.to_owned(),
            (None, Some(programs)) if programs.len() == 1 => {
                programs.keys().next().cloned().unwrap_or_default()
            }
            _ => base.to_owned(),
        };
        let base_of_program = program.rsplit('/').next().unwrap_or(&program);
        return Ok(Installed { version, program: modules.join(".bin").join(base_of_program) });
    }
    Err(format!("{name} is not below ~/.npm/_npx").into())
}

fn by_uvx(cache: &Path, name: &str, program: Option<&str>) -> Result<Installed> {
    let wanted = normal(name);
    for environment in fs::read_dir(cache.join("archive-v0"))?.flatten() {
        let environment = environment.path();
        if !environment.join("pyvenv.cfg").exists() {
            continue;
        }
        for python in fs::read_dir(environment.join("lib"))?.flatten() {
            for entry in fs::read_dir(python.path().join("site-packages"))?.flatten() {
                let file = entry.file_name().to_string_lossy().into_owned();
                let Some((package, version)) =
                    file.strip_suffix(".dist-info").and_then(|stem| stem.split_once('-'))
                else {
                    continue;
                };
                if normal(package) == wanted {
                    let program = environment.join("bin").join(program.unwrap_or(name));
                    return Ok(Installed { version: version.to_owned(), program });
                }
            }
        }
    }
    Err(format!("{name} is in no environment of uv's").into())
}

/// As the index compares names.
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

impl Drop for Place {
    fn drop(&mut self) {
        // The store's directories are read-only, and a user other than root cannot empty those.
        let _ = Plain::new("chmod").args(["-R", "u+rwX"]).arg(self.scene.root()).status();
    }
}
