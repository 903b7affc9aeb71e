//! One server: learned by `mcp learn`, then used by a client under `mcp run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::scene::{CANARY, Scene};
use super::subject::{Call, Subject};
use crate::Result;
use crate::servers::session::Session;

const MOST_ROUNDS: usize = 3;
const PROVED: &str = "proved: with exactly this policy nothing was missing";
/// A server that a missing line keeps from starting may also hang.
const START_LIMIT: Duration = Duration::from_secs(60);

pub struct Trial<'a> {
    launcher: &'a Path,
    store: PathBuf,
    scene: &'a Scene,
    pub subject: &'a Subject,
}

/// What `mcp learn` wrote.
pub struct Learned {
    pub policy: String,
    pub rounds: usize,
}

impl<'a> Trial<'a> {
    pub fn new(
        launcher: &'a Path,
        store: &Path,
        scene: &'a Scene,
        subject: &'a Subject,
    ) -> Trial<'a> {
        Trial { launcher, store: store.to_owned(), scene, subject }
    }

    /// The launcher in a home of its own, with the packages of all.
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(self.launcher);
        command.arg(verb).current_dir(self.scene.root()).env("XDG_DATA_HOME", &self.store);
        for (name, below) in [
            ("HOME", ""),
            ("XDG_STATE_HOME", ".local/state"),
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_CACHE_HOME", ".cache"),
        ] {
            command.env(name, self.scene.root().join(below));
        }
        command.envs(self.subject.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn learn(&self) -> Result<Learned> {
        let file = self.scene.at("learned.toml");
        let mut command = self.command("learn");
        command.args(["--yes", "--patience", "60", "-o"]).arg(&file);
        if self.subject.is_sensitive {
            command.arg("--sensitive");
        }
        command.args(self.subject.flags()).args(&self.subject.words).stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("mcp learn: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() || !said.contains(PROVED) {
            return Err(format!("mcp learn ended with {}:\n{said}", output.status).into());
        }
        let rounds = said.lines().filter(|line| line.starts_with("mcp: round ")).count();
        if rounds > MOST_ROUNDS {
            return Err(format!("learned in {rounds} rounds:\n{said}").into());
        }
        let policy = fs::read_to_string(&file)?;
        let out = String::from_utf8_lossy(&output.stdout);
        let is_granted = granting(&policy).iter().any(|(_, line)| line.contains(".ssh"));
        if is_granted || [&policy, &said, &*out].iter().any(|it| it.contains(CANARY)) {
            return Err(format!("the private key was proposed or shown:\n{said}\n{policy}").into());
        }
        Ok(Learned { policy, rounds })
    }

    /// What fails under this policy: the first call, by name, that is refused or has no effect.
    pub async fn fails(&self, policy: &str) -> Result<Option<String>> {
        let file = self.scene.at("tried.toml");
        fs::write(&file, policy)?;
        let made: Vec<_> =
            self.subject.calls.iter().filter_map(|call| call.makes.as_ref()).collect();
        for (path, _) in &made {
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(format!("{}: {error}", path.display()).into());
                }
                _ => {}
            }
        }
        let mut command = self.command("run");
        command.args(["--quiet", "--yes", "--policy"]).arg(file).args(&self.subject.words);
        let session = match Session::spawn(command.into(), START_LIMIT).await {
            Ok(session) => session,
            Err(error) => return Ok(Some(format!("it does not start: {}", first_line(&error)))),
        };
        let mut fault = None;
        for call in &self.subject.calls {
            fault = refusal(&session, call).await;
            if fault.is_some() {
                break;
            }
        }
        session.end().await?;
        let effects = || self.subject.calls.iter().find_map(lost);
        Ok(fault.or_else(effects))
    }
}

/// Why a call counts as failed, if it does.
async fn refusal(session: &Session, call: &Call) -> Option<String> {
    match session.call(call.tool, call.arguments.clone(), call.expected).await {
        Ok(()) => None,
        Err(error) => Some(format!("{} fails: {}", call.tool, first_line(&error))),
    }
}

/// A call that answered, and whose effect is not on the host.
fn lost(call: &Call) -> Option<String> {
    let (path, expected) = call.makes.as_ref()?;
    let bytes = fs::read(path).unwrap_or_default();
    let is_there = String::from_utf8_lossy(&bytes).contains(expected);
    (!is_there).then(|| format!("{} leaves nothing in {}", call.tool, path.display()))
}

fn first_line(error: &impl ToString) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(160).collect()
}

/// The lines of a policy that grant something, each with its place: entries of lists that are not `deny`.
pub fn granting(policy: &str) -> Vec<(usize, String)> {
    let mut key = "";
    let mut lines = Vec::new();
    for (at, line) in policy.lines().enumerate() {
        if let Some((name, _)) = line.split_once(" = [") {
            key = name;
        }
        if line.starts_with("    \"") && key != "deny" {
            lines.push((at, format!("{key}: {}", line.trim())));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_grant() {
        let policy = "[filesystem]\nread = [\n    \"/a\", # once\n]\ndeny = [\n    \"/a/.env\", # c\n]\n[limits]\nmemory = \"1 MiB\"\n";
        assert_eq!(granting(policy), [(2, "read: \"/a\", # once".to_owned())]);
    }
}
