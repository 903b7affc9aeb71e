//! Commands that an agent wrote: the guard in front, the kernel behind, the project as what may be written.
//!
//! ```standalone_crate
//! use mcp_sandbox::agent::{Shell, project_policy};
//! use mcp_sandbox::prepare_run_command;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     mcp_sandbox::helper::dispatch();
//! #   if !cfg!(target_os = "linux") { return Ok(()); }
//!     let project = std::env::temp_dir().join(format!("project-{}", std::process::id()));
//!     std::fs::create_dir(&project)?;
//!     let policy = project_policy(&project)?;
//!
//!     // The guard refuses with words for the model …
//!     let refused = prepare_run_command("rm -rf ~", Shell::Bash, policy.clone()).sandbox();
//!     assert_eq!(refused.unwrap_err().reason().unwrap().rule, "delete-everything");
//!
//!     // … and the kernel holds what runs.
//!     let mut command = prepare_run_command("echo hi > made; ls -A ~", Shell::Bash, policy)
//!         .sandbox()
//!         .map_err(|verdict| format!("{verdict:?}"))?;
//!     let output = command.current_dir(&project).output()?;
//!     assert_eq!(output.stdout, b"", "it has a home of its own");
//!     assert_eq!(std::fs::read_to_string(project.join("made"))?, "hi\n");
//! #   std::fs::remove_dir_all(&project)?;
//!     Ok(())
//! }
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp_guard::paths::{Absolute, Gate, GateBuilder, Refusal};
pub use mcp_guard::{Context, Decision, NetworkAccess, Shell, Strictness, Verdict};
use mcp_policy::{Defaults, Layer, NetworkMode, Policy};

use crate::core::error::Error;
use crate::core::report::Judged;
use crate::core::run_spec::{Identity, RunSpec};
use crate::host_files::names as file_names;
use crate::sandbox::Sandbox;

mod parser;
mod shells;

pub use shells::{default_shell, joined, words};

/// Programs that builds start without their being named in the command.
const USUAL_PROGRAMS: [&str; 34] = [
    "git", "cargo", "rustc", "node", "npm", "npx", "pnpm", "yarn", "bun", "deno", "python",
    "python3", "pip", "pytest", "uv", "poetry", "go", "java", "javac", "mvn", "gradle", "ruby",
    "bundle", "php", "composer", "dotnet", "cmake", "ninja", "make", "just", "cc", "c++", "clang",
    "zig",
];

/// More words than this are looked for in vain.
const MOST_WORDS: usize = 64;

/// What the guard said, and what the command would run as.
#[derive(Debug)]
#[must_use = "a prepared command does nothing until its sandbox is started"]
pub struct Prepared {
    verdict: Verdict,
    spec: RunSpec,
}

/// Judges a command and makes its sandbox; nothing runs yet. `mcp exec` is this, with a policy from flags and config.
///
/// The policy says what may be written, usually [`project_policy`]. Programs that the command names, and those
/// that builds usually need, are shown where the user has them.
pub fn prepare_run_command(command: &str, shell: Shell, policy: Policy) -> Prepared {
    let context = Context { strictness: Strictness::Confined, ..Context::default() };
    prepare_with(command, shell, policy, &context)
}

/// As [`prepare_run_command`], with rules of your own and, with [`Strictness::Strict`], without leave for programs
/// that are given as text (`python -c`) and their like. Whether there is a network is taken from the policy.
pub fn prepare_with(command: &str, shell: Shell, policy: Policy, context: &Context) -> Prepared {
    let context = Context { network: network(&policy), ..context.clone() };
    let verdict = judge(command, shell, &context);
    Prepared { verdict, spec: spec(command, shell, policy) }
}

/// What a command runs as, whatever the guard would say.
#[must_use]
pub fn spec(command: &str, shell: Shell, policy: Policy) -> RunSpec {
    RunSpec {
        policy,
        command: words(command, shell),
        cwd: None,
        home: None,
        programs: programs(command),
        identity: Identity::User,
    }
}

impl Prepared {
    /// What the guard said, whatever it was.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The sandbox to start, unless the guard refuses the command or wants a person to be asked.
    ///
    /// What it could not read, or allows because the sandbox holds it, may run: the kernel's boundaries do not depend
    /// on the guard. Where a boundary is missing on this host, such a command does not start, whatever the
    /// [`Fallback`](crate::Fallback) says.
    ///
    /// # Errors
    ///
    /// The verdict, with sentences for the model and for the person.
    pub fn sandbox(self) -> Result<Sandbox, Verdict> {
        self.spec().map(|(spec, judged)| Sandbox::from_spec(spec).judged(judged))
    }

    /// As [`sandbox`](Self::sandbox), after a person was asked and said yes.
    ///
    /// # Errors
    ///
    /// The verdict, where the guard refuses.
    pub fn sandbox_after_yes(self) -> Result<Sandbox, Verdict> {
        self.spec_after_yes().map(|(spec, judged)| Sandbox::from_spec(spec).judged(judged))
    }

    /// As [`sandbox`](Self::sandbox), for a [`Session`](crate::session::Session) of this process.
    ///
    /// # Errors
    ///
    /// The verdict, with sentences for the model and for the person.
    pub fn spec(self) -> Result<(RunSpec, Judged), Verdict> {
        match self.verdict.decision {
            Decision::Ask => Err(self.verdict),
            _ => self.spec_after_yes(),
        }
    }

    /// As [`sandbox_after_yes`](Self::sandbox_after_yes), for a [`Session`](crate::session::Session) of this process.
    ///
    /// # Errors
    ///
    /// The verdict, where the guard refuses.
    pub fn spec_after_yes(self) -> Result<(RunSpec, Judged), Verdict> {
        match self.verdict.decision {
            Decision::Allow | Decision::Unknown | Decision::Ask => {
                Ok((self.spec, judged(&self.verdict)))
            }
            _ => Err(self.verdict),
        }
    }
}

/// What the guard says of a command. PowerShell's own parse counts as well, where there is a PowerShell.
pub fn judge(command: &str, shell: Shell, context: &Context) -> Verdict {
    let parsed = match shell {
        Shell::PowerShell => parser::parse(command),
        Shell::Bash | Shell::Cmd => None,
    };
    match parsed {
        Some(parsed) => mcp_guard::judge_parsed(command, &parsed, context),
        None => mcp_guard::judge(command, shell, context),
    }
}

/// Whether a policy gives any network, as the guard wants to know it.
pub fn network(policy: &Policy) -> NetworkAccess {
    let network = &policy.network;
    let is_given = network.mode.value == NetworkMode::Host || !network.allow.is_empty();
    if is_given { NetworkAccess::Given } else { NetworkAccess::None }
}

/// For the report.
pub fn judged(verdict: &Verdict) -> Judged {
    let decision = match verdict.decision {
        Decision::Allow => "allow",
        Decision::Unknown => "unknown",
        Decision::Ask => "ask",
        // What is new to this crate is as good as refused.
        _ => "refuse",
    };
    Judged {
        decision: decision.to_owned(),
        rules: verdict
            .findings
            .iter()
            .filter(|finding| finding.decision != Decision::Allow)
            .map(|finding| finding.rule.clone())
            .collect(),
        noted: verdict
            .findings
            .iter()
            .filter(|finding| finding.decision == Decision::Allow)
            .map(|finding| finding.rule.clone())
            .collect(),
        why: verdict.reason().map(|finding| finding.human.clone()),
    }
}

/// Programs to be shown for a command: those its text names, and those that builds need.
pub fn programs(command: &str) -> Vec<OsString> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let mut programs: Vec<OsString> = Vec::new();
    let named = command.split(|c| !is_name(c)).filter(|word| !word.is_empty()).take(MOST_WORDS);
    for word in USUAL_PROGRAMS.into_iter().chain(named) {
        if word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !programs.iter().any(|p| p == word)
        {
            programs.push(word.into());
        }
    }
    programs
}

/// The directory that an agent works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The directory, without symlinks.
    pub root: PathBuf,
    /// Git directories elsewhere that belong to it: of a worktree or a submodule.
    pub git: Vec<PathBuf>,
}

impl Project {
    /// # Errors
    ///
    /// Where it is the user's home or holds it: an agent would get everything.
    pub fn at(directory: &Path) -> Result<Project, Error> {
        let refuse = |why: &str| Error::Grant {
            flag: "project".to_owned(),
            path: directory.to_owned(),
            why: why.to_owned(),
        };
        let root = file_names::real(directory).map_err(|e| refuse(&e.to_string()))?;
        let home = std::env::home_dir().and_then(|home| file_names::real(&home).ok());
        if root.parent().is_none() || home.is_some_and(|home| home.starts_with(&root)) {
            return Err(refuse(
                "is, or holds, your whole home; go to a project, or name one (-C DIR)",
            ));
        }
        let git = crate::protected::git_elsewhere(&root);
        Ok(Project { root, git })
    }

    /// The policy of `mcp exec` for this project, on top of what people said.
    ///
    /// # Errors
    ///
    /// Where the layers contradict each other.
    pub fn policy(&self, layers: Vec<Layer>) -> Result<Policy, mcp_policy::Error> {
        let mut own = Layer::command_line(self.root.clone(), None);
        own.write(&self.root);
        self.git.iter().for_each(|git| {
            own.write(git);
        });
        let mut layers: Vec<Layer> = layers.into_iter().map(Layer::for_commands).collect();
        layers.push(own.build()?);
        Policy::merge(&layers, Defaults::exec())
    }
}

/// The default policy of `mcp exec`: the project can be written but for what other programs act on, there is no
/// network, and two minutes of time.
///
/// # Errors
///
/// As [`Project::at`].
pub fn project_policy(directory: &Path) -> Result<Policy, Error> {
    policy_with(directory, Vec::new())
}

/// As [`project_policy`], on top of what people said: a config with `[tools.sandbox]`, a policy file.
///
/// # Errors
///
/// As [`Project::at`], and where the layers contradict each other.
pub fn policy_with(directory: &Path, layers: Vec<Layer>) -> Result<Policy, Error> {
    Project::at(directory)?
        .policy(layers)
        .map_err(|error| Error::Input { what: "policy".to_owned(), why: error.to_string() })
}

/// A gate for an agent's file tools, made from the same policy as its commands: what may be written are its
/// roots, deny rules hold in both, and relative paths begin at the project, as those of commands do. (Of the roots,
/// those from a config come first.)
///
/// # Errors
///
/// Where a root cannot be opened, nothing may be written, or the project is not in what may be.
pub fn gate(policy: &Policy, project: &Path, absolute: Absolute) -> Result<Gate, Refusal> {
    let mut roots = policy.filesystem.write.iter().map(|root| root.value.clone());
    let first: GateBuilder = Gate::builder(roots.next().unwrap_or_default());
    let builder = roots.fold(first, GateBuilder::root).start_at(project).absolute(absolute);
    let denied =
        policy.filesystem.deny.iter().map(|rule| rule.value.to_string_lossy().into_owned());
    denied.fold(builder, GateBuilder::deny).build()
}

#[cfg(test)]
mod tests {
    use mcp_guard::paths::Intent;

    use super::*;

    /// A config gives `shared` as well, and the project has a file of the same name.
    #[test]
    fn relative_paths_begin_at_the_project() {
        let scratch = std::env::temp_dir().join(format!("mcp-gate-{}", std::process::id()));
        let (project, shared) = (scratch.join("project"), scratch.join("shared"));
        for (root, text) in [(&project, "own"), (&shared, "another's")] {
            std::fs::create_dir_all(root.join("src")).unwrap();
            std::fs::write(root.join("src/x"), text).unwrap();
        }
        let mut config = Layer::command_line(&scratch, None);
        config.write(&shared);
        let mut config = config.build().unwrap();
        config.kind = mcp_policy::LayerKind::UserConfig;
        let policy = policy_with(&project, vec![config]).unwrap();
        // The config's root does come first.
        assert!(policy.filesystem.write[0].value.ends_with("shared"));

        let read = |gate: &Gate, path: &str| {
            let mut opened = gate.resolve(path, Intent::Read).unwrap();
            let mut text = String::new();
            std::io::Read::read_to_string(&mut opened.file, &mut text).unwrap();
            text
        };
        let from = |directory: &Path| gate(&policy, directory, Absolute::InRoots);
        assert_eq!(read(&from(&project).unwrap(), "src/x"), "own");
        assert_eq!(read(&from(&project.join("src")).unwrap(), "x"), "own");
        assert_eq!(read(&from(&shared).unwrap(), "src/x"), "another's");
        // Absolute paths of Windows are tried with the gate itself (mcp-guard).
        if cfg!(unix) {
            let absolute = shared.canonicalize().unwrap().join("src/x");
            assert_eq!(read(&from(&project).unwrap(), absolute.to_str().unwrap()), "another's");
        }
        // Nothing becomes writable by being named here.
        assert!(from(&scratch).is_err());
        std::fs::remove_dir_all(scratch).unwrap();
    }
}
