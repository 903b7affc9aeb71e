//! Which servers, how each is started, what it is granted, and the calls that show it works.

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;
use serde_json::json;

use super::install::{self, Installed};
use super::scene::Scene;
use super::session::{Invocation, Session, Setting};
use crate::Result;

#[derive(Clone, Copy, ValueEnum)]
pub enum Server {
    Everything,
    Filesystem,
    Memory,
    Time,
    Git,
}

impl Server {
    pub const ALL: [Self; 5] =
        [Self::Everything, Self::Filesystem, Self::Memory, Self::Time, Self::Git];

    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Filesystem => "filesystem",
            Self::Memory => "memory",
            Self::Time => "time",
            Self::Git => "git",
        }
    }

    /// The package it is published as, if it is to be run as one.
    pub fn reference(self) -> Option<&'static str> {
        match self {
            Self::Everything => Some("npm:@modelcontextprotocol/server-everything"),
            Self::Filesystem => Some("npm:@modelcontextprotocol/server-filesystem"),
            Self::Memory => None,
            Self::Time => Some("pypi:mcp-server-time"),
            Self::Git => Some("pypi:mcp-server-git"),
        }
    }

    pub fn invocation(self, installed: &Installed, scene: &Scene) -> Result<Invocation> {
        let granted = scene.granted();
        let (program, bundle) = match self {
            Self::Everything | Self::Filesystem | Self::Memory => {
                let program = installed.node_program(&format!("mcp-server-{}", self.name()));
                (program, installed.node())
            }
            Self::Time | Self::Git => {
                let program = installed.python_program(&format!("mcp-server-{}", self.name()));
                (program, installed.python())
            }
        };
        let mut invocation = Invocation {
            program,
            bundle: bundle.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            read: vec![bundle.to_owned()],
            write: Vec::new(),
            directory: granted.clone(),
        };
        match self {
            Self::Everything | Self::Time => {}
            Self::Filesystem => {
                // The server's own check allows the whole scene; only the sandbox draws the line.
                invocation.arguments.push(scene.root().into());
                invocation.write.push(granted);
            }
            Self::Memory => {
                invocation
                    .environment
                    .push(("MEMORY_FILE_PATH", granted.join("memory.json").into()));
                invocation.write.push(granted);
            }
            Self::Git => {
                make_repository(&granted)?;
                invocation.arguments.extend(["--repository".into(), granted.clone().into()]);
                invocation.read.push(granted);
            }
        }
        Ok(invocation)
    }

    /// Returns the calls that were made.
    pub async fn exercise(
        self,
        session: &Session,
        scene: &Scene,
        setting: &Setting,
    ) -> Result<String> {
        let granted = scene.granted();
        match self {
            Self::Everything => {
                session.call("echo", json!({ "message": "hello" }), "hello").await?;
                Ok("echo".into())
            }
            Self::Filesystem => filesystem(session, scene, setting).await,
            Self::Memory => {
                let entity = json!({
                    "name": "sandbox", "entityType": "thing", "observations": ["remembers"],
                });
                session.call("create_entities", json!({ "entities": [entity] }), "sandbox").await?;
                session.call("read_graph", json!({}), "remembers").await?;
                on_host(&granted.join("memory.json"), "remembers")?;
                Ok("create_entities, read_graph".into())
            }
            Self::Time => {
                let zone = "Europe/Berlin";
                session.call("get_current_time", json!({ "timezone": zone }), zone).await?;
                Ok("get_current_time".into())
            }
            Self::Git => {
                let repository = json!({ "repo_path": granted });
                session.call("git_status", repository.clone(), "untracked.txt").await?;
                session.call("git_log", repository, "the first commit").await?;
                Ok("git_status, git_log".into())
            }
        }
    }
}

async fn filesystem(session: &Session, scene: &Scene, setting: &Setting) -> Result<String> {
    let (file, content) = (scene.granted().join("note.txt"), "written through the sandbox");
    let text = json!({ "path": file, "content": content });
    session.call("write_file", text, "Successfully wrote").await?;
    session.call("read_file", json!({ "path": file }), content).await?;
    on_host(&file, content)?;
    let secret = json!({ "path": scene.secret() });
    match setting {
        Setting::Bare => {
            session.call("read_file", secret, Scene::SECRET).await?;
            Ok("write_file, read_file, read outside".into())
        }
        Setting::Sandboxed { .. } | Setting::Packaged { .. } => {
            let answer = session.ask("read_file", secret).await?;
            if !answer.is_error {
                return Err(format!("reads a file that was not granted: {:?}", answer.text).into());
            }
            // Refused by the server itself, it would say nothing about the sandbox.
            if answer.text.contains("outside allowed directories") {
                return Err(format!("the sandbox was not asked: {:?}", answer.text).into());
            }
            Ok("write_file, read_file, read outside refused".into())
        }
    }
}

/// What a server wrote is really there, and belongs to who started it.
fn on_host(file: &Path, expected: &str) -> Result<()> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if !text.contains(expected) {
        return Err(format!("{} on the host: no {expected:?} in {text:?}", file.display()).into());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let ours = file.parent().map(fs::metadata).transpose()?.map(|it| it.uid());
        let owner = fs::metadata(file)?.uid();
        if ours.is_some_and(|ours| ours != owner) {
            return Err(format!("{} belongs to uid {owner}", file.display()).into());
        }
    }
    Ok(())
}

/// With one commit and one file that is not in it.
pub fn make_repository(dir: &Path) -> Result<()> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        // The user's own configuration (hooks, signing, templates) is not under test.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.args(["-c", "user.name=xtask", "-c", "user.email=xtask@localhost"]);
        install::succeed(command.arg("-C").arg(dir).args(arguments))
    };
    git(&["init", "--quiet", "--initial-branch=main"])?;
    fs::write(dir.join("tracked.txt"), "one\n")?;
    git(&["add", "tracked.txt"])?;
    git(&["commit", "--quiet", "--message", "the first commit"])?;
    fs::write(dir.join("untracked.txt"), "two\n")?;
    Ok(())
}
