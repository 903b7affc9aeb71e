//! Which path of `mcp` goes into other programs' files: one that stays when mcp is upgraded.

use std::env;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::{paths, render};

/// The path, and what is wrong with it.
pub struct Own {
    pub text: String,
    pub warning: Option<String>,
    real: PathBuf,
}

const NAMES: [&str; 2] = ["mcp", "mcp-sandbox"];

impl Own {
    pub fn find(named: Option<&Path>) -> Result<Own, Failure> {
        let running = env::current_exe().map_err(|e| Failure::input(Path::new("mcp"), &e))?;
        let path = match named {
            Some(path) => std::path::absolute(path).map_err(|e| Failure::input(path, &e))?,
            None => installed(&running),
        };
        let real = paths::real(&path).map_err(|e| Failure::input(&path, &e))?;
        let text = path.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!(
                "{}: is not UTF-8, and cannot be written into a file",
                render::path(&path)
            ))
        })?;
        let warning = unstable(&path).map(|why| {
            format!(
                "{} is {why}; the files would point to nothing when it is gone (install mcp, or give --binary PATH)",
                render::path(&path)
            )
        });
        Ok(Own { text, warning, real })
    }

    /// Whether a command of an entry starts this program, by whatever name.
    pub fn is_same(&self, command: &str) -> bool {
        let path = Path::new(command);
        match path.components().count() {
            1 if !path.is_absolute() => on_path(command).is_some_and(|path| self.is_real(&path)),
            _ => command == self.text || path.is_absolute() && self.is_real(path),
        }
    }

    fn is_real(&self, path: &Path) -> bool {
        paths::real(path).is_ok_and(|real| real == self.real)
    }
}

/// A line that was written for an mcp which is not this one: elsewhere, or gone.
pub fn looks_like_ours(command: &str) -> bool {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    Path::new(command).is_absolute() && NAMES.contains(&name)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// The first name on PATH that leads to this program, links not followed: package managers move what they lead to.
fn installed(running: &Path) -> PathBuf {
    let Ok(real) = paths::real(running) else {
        return running.to_owned();
    };
    let end = env::consts::EXE_SUFFIX;
    let path = env::var_os("PATH").unwrap_or_default();
    let known = env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .flat_map(|directory| NAMES.map(|name| directory.join(format!("{name}{end}"))))
        .find(|path| paths::real(path).is_ok_and(|found| found == real));
    known.unwrap_or(real)
}

/// Why a path will not last.
fn unstable(path: &Path) -> Option<&'static str> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let has = |name: &str| parts.contains(&name);
    let above = path.ancestors().skip(1).take(3);
    let is_build = above.clone().any(|up| up.join(".cargo-lock").exists())
        || above.clone().any(|up| up.join("CACHEDIR.TAG").exists() && up.ends_with("target"))
        || has("target") && (has("debug") || has("release"));
    match () {
        () if is_build => Some("in a build directory"),
        () if path.starts_with(env::temp_dir()) => Some("in the directory for temporary files"),
        () if has("_npx") || has("node_modules") && !has("lib") => {
            Some("in a cache or a project of npm")
        }
        () if has("Cellar") => Some("in the directory of one version"),
        () if path.starts_with("/nix/store") => Some("in the directory of one version"),
        () if parts.windows(2).any(|pair| pair == ["uv", "archive-v0"]) => Some("in a cache of uv"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_will_not_last() {
        for (path, expected) in [
            ("/home/me/mcp/target/release/mcp", true),
            ("/home/me/mcp/target/x86_64-unknown-linux-musl/debug/mcp", true),
            ("/opt/homebrew/Cellar/mcp/1.2.3/bin/mcp", true),
            ("/nix/store/abc-mcp-1.0/bin/mcp", true),
            ("/home/me/.npm/_npx/1/node_modules/.bin/mcp", true),
            ("/opt/homebrew/bin/mcp", false),
            ("/usr/local/bin/mcp", false),
            ("/home/me/.cargo/bin/mcp", false),
            ("/usr/lib/node_modules/mcp/bin/mcp", false),
        ] {
            assert_eq!(unstable(Path::new(path)).is_some(), expected, "{path}");
        }
        assert!(looks_like_ours("/gone/mcp") && looks_like_ours("/x/mcp-sandbox"));
        // Of the Python SDK, or of whatever comes first on PATH.
        assert!(!looks_like_ours("mcp") && !looks_like_ours("/usr/bin/mcporter"));
    }
}
