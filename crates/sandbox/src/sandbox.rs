//! Sandboxes for programs: a builder in the manner of [`std::process::Command`].

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mcp_policy::{
    Defaults, EnvName, Fallback, Layer, LayerBuilder, LayerKind, LayerLimits, Policy, Tools,
};

use crate::core::error::Error;
use crate::core::report::Judged;
use crate::core::request::Secret;
use crate::core::run_spec::{Identity, RunSpec};
use crate::order::{Order, Received};
use crate::platform;

mod limits;
mod permissions;
pub mod ready;
mod running;

pub use running::{Outcome, Output, Running};

/// A command and what it is allowed; like [`std::process::Command`], but the command sees
/// nothing of this machine except what is given here and the system's own programs.
///
/// Without a word it has no network, no files of the user's, no variables of the environment but
/// a harmless few, 512 MiB of memory and 128 processes. Nothing is looked at before the
/// start: the setters never fail, and [`spawn`](Self::spawn) tells the first thing that is wrong.
///
/// The program that uses it may have any number of threads. It has to call
/// [`helper::dispatch`](crate::helper::dispatch) first in `main`, or to name a
/// [`helper`](Self::helper).
///
/// ```standalone_crate
/// use std::time::Duration;
/// use mcp_sandbox::{Bytes, Control, Ending, Sandbox};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     mcp_sandbox::helper::dispatch();
/// #   if !cfg!(target_os = "linux") { return Ok(()); }
///
///     // It sees what it was given …
///     let notes = std::env::temp_dir().join(format!("notes-{}", std::process::id()));
///     std::fs::write(&notes, "remember the milk")?;
///     let output = Sandbox::new("cat").arg(&notes).read(&notes).output()?;
///     assert_eq!(output.stdout, b"remember the milk");
///
///     // … and nothing else.
///     let output = Sandbox::new("cat").arg(&notes).output()?;
///     assert_eq!(output.outcome.code(), Some(1));
///     std::fs::remove_file(&notes)?;
///
///     // It ends when it has to, and tells what was enforced.
///     let outcome = Sandbox::new("sleep")
///         .arg("60")
///         .memory(Bytes::mib(64))
///         .timeout(Duration::from_millis(200))
///         .status()?;
///     assert_eq!(outcome.ending, Ending::Timeout);
///     let report = outcome.report.ok_or("killed before it could tell")?;
///     assert!(report.controls[&Control::Network].is_enforced());
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Sandbox {
    command: Vec<OsString>,
    cwd: Option<PathBuf>,
    home: Option<PathBuf>,
    programs: Vec<OsString>,
    identity: Identity,
    policy: Option<Policy>,
    permissions: LayerBuilder,
    secrets: Vec<(OsString, Secret)>,
    fallback: Fallback,
    strict: bool,
    judged: Option<Judged>,
    helper: Option<PathBuf>,
    stdio: [Stream; 3],
    /// The first thing that was wrong, told at the start.
    wrong: Option<(String, String)>,
}

/// One of the standard descriptors. A [`Stdio`] cannot be copied, so it serves one start.
#[derive(Debug)]
enum Stream {
    Unsaid,
    Given(Stdio),
    Used,
}

impl Stream {
    fn take(&mut self, name: &str, unsaid: fn() -> Stdio) -> Result<Stdio, Error> {
        match std::mem::replace(self, Stream::Used) {
            Stream::Unsaid => {
                *self = Stream::Unsaid;
                Ok(unsaid())
            }
            Stream::Given(stdio) => Ok(stdio),
            Stream::Used => Err(Error::Input {
                what: name.to_owned(),
                why: "was used by an earlier start; set it again".to_owned(),
            }),
        }
    }
}

impl Sandbox {
    /// A sandbox for what is asked for here. What the other methods say is added to its policy.
    pub(crate) fn from_spec(spec: RunSpec) -> Sandbox {
        let RunSpec { policy, command, cwd, home, programs, identity } = spec;
        Sandbox { command, cwd, home, programs, identity, policy: Some(policy), ..Sandbox::new("") }
    }

    /// What the guard said: for the report, and for the rule that nothing that the guard left to the sandbox runs
    /// without a whole one.
    pub(crate) fn judged(mut self, judged: Judged) -> Sandbox {
        self.judged = Some(judged);
        self
    }

    /// A sandbox for this program, a path or a name to be found on `PATH`.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Sandbox {
        let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        // Not `home_dir`, which asks the C library where HOME is not set: a static program must not.
        let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
        let home = home.map(PathBuf::from).filter(|home| home.is_absolute());
        Sandbox {
            command: vec![program.as_ref().to_owned()],
            cwd: None,
            home: None,
            programs: Vec::new(),
            identity: Identity::None,
            policy: None,
            permissions: Layer::command_line(current, home),
            secrets: Vec::new(),
            fallback: Fallback::Deny,
            strict: false,
            judged: None,
            helper: None,
            stdio: [Stream::Unsaid, Stream::Unsaid, Stream::Unsaid],
            wrong: None,
        }
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Sandbox {
        self.command.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Sandbox {
        self.command.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Where the command starts, as a path inside. Without it: the current directory where the
    /// command can see it, else its own HOME.
    pub fn current_dir(&mut self, dir: impl AsRef<Path>) -> &mut Sandbox {
        self.cwd = Some(dir.as_ref().to_owned());
        self
    }

    /// A directory of the host that is the command's HOME, and keeps what it writes there.
    /// Without it, HOME is empty and gone after the run.
    pub fn home(&mut self, dir: impl AsRef<Path>) -> &mut Sandbox {
        self.home = Some(dir.as_ref().to_owned());
        self
    }

    /// Starts from this policy instead of the defaults. What the other methods say is added to
    /// it, or replaces its single values, in whatever order they are called.
    pub fn policy(&mut self, policy: Policy) -> &mut Sandbox {
        self.policy = Some(policy);
        self
    }

    /// Further programs that the command may start; those that the user has on PATH are shown,
    /// wherever they are installed.
    pub fn programs(
        &mut self,
        programs: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> &mut Sandbox {
        self.programs.extend(programs.into_iter().map(|program| program.as_ref().to_owned()));
        self
    }

    /// In whose name git commits are made inside.
    pub fn identity(&mut self, identity: Identity) -> &mut Sandbox {
        self.identity = identity;
        self
    }

    /// What the command reads.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Sandbox {
        self.stdio[0] = Stream::Given(stdin.into());
        self
    }

    /// Where the command writes.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Sandbox {
        self.stdio[1] = Stream::Given(stdout.into());
        self
    }

    /// Where the command writes its errors.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Sandbox {
        self.stdio[2] = Stream::Given(stderr.into());
        self
    }

    /// What to do when a boundary cannot be enforced here. Limits always degrade, in the open. There is no terminal
    /// to ask on, so [`Fallback::Prompt`] does not start.
    pub fn fallback(&mut self, fallback: Fallback) -> &mut Sandbox {
        self.fallback = fallback;
        self
    }

    /// Refuses to start when anything, limits included, is less than asked for.
    pub fn strict(&mut self) -> &mut Sandbox {
        self.strict = true;
        self
    }

    /// An `mcp` binary that launches the sandbox, instead of this program started once more.
    /// Then [`helper::dispatch`](crate::helper::dispatch) need not be called.
    pub fn helper(&mut self, path: impl AsRef<Path>) -> &mut Sandbox {
        self.helper = Some(path.as_ref().to_owned());
        self
    }

    /// Starts the command. Standard descriptors that were not set are this program's own.
    ///
    /// A [`Stdio`] that was set serves one start, and has to be set again for the next.
    ///
    /// # Errors
    ///
    /// When something is wrong with the order: the command is not found, a granted path does not
    /// exist, the policy contradicts itself, a boundary cannot be enforced here. What the
    /// system refuses after that is told by [`Running::wait`].
    pub fn spawn(&mut self) -> Result<Running, Error> {
        self.start([Stdio::inherit, Stdio::inherit, Stdio::inherit])
    }

    /// Runs the command to its end and collects what it writes. Standard descriptors that were
    /// not set: an empty input, and collected outputs.
    ///
    /// # Errors
    ///
    /// As for [`spawn`](Self::spawn) and [`Running::wait`]. A command that fails is no error.
    pub fn output(&mut self) -> Result<Output, Error> {
        self.start([Stdio::null, Stdio::piped, Stdio::piped])?.wait_with_output()
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    ///
    /// As for [`spawn`](Self::spawn) and [`Running::wait`]. A command that fails is no error.
    pub fn status(&mut self) -> Result<Outcome, Error> {
        self.spawn()?.wait()
    }

    fn start(&mut self, unsaid: [fn() -> Stdio; 3]) -> Result<Running, Error> {
        let order = self.order()?.to_bytes()?;
        // The program would run its main once more, and take that for a launcher.
        if self.helper.is_none() && !ready::is_set() {
            return Err(Error::Input {
                what: "helper".to_owned(),
                why: "mcp_sandbox::helper::dispatch() was not called; call it first in main, or \
                      name an mcp binary with Sandbox::helper"
                    .to_owned(),
            });
        }
        let [stdin, stdout, stderr] = &mut self.stdio;
        let stdio = [
            stdin.take("stdin", unsaid[0])?,
            stdout.take("stdout", unsaid[1])?,
            stderr.take("stderr", unsaid[2])?,
        ];
        Running::start(platform::start_launcher(self.helper.as_deref(), stdio)?, &order)
    }

    fn order(&self) -> Result<Order, Error> {
        if let Some((what, why)) = &self.wrong {
            return Err(Error::Input { what: what.clone(), why: why.clone() });
        }
        let home = self.home.as_ref().map(|home| {
            let why = |e: std::io::Error| e.to_string();
            let refuse = |why| Error::Grant { flag: "home".to_owned(), path: home.clone(), why };
            home.canonicalize().map_err(|e| refuse(why(e)))
        });
        Ok(Order::new(Received {
            spec: RunSpec {
                policy: self.effective_policy().map_err(|error| Error::Input {
                    what: "policy".to_owned(),
                    why: error.to_string(),
                })?,
                command: self.command.clone(),
                cwd: self.cwd.clone(),
                home: home.transpose()?,
                programs: self.programs.clone(),
                identity: self.identity,
            },
            secrets: self.secrets.clone(),
            fallback: self.fallback,
            strict: self.strict,
            judged: self.judged.clone(),
        }))
    }

    fn effective_policy(&self) -> Result<Policy, mcp_policy::Error> {
        let own = self.permissions.clone().build()?;
        let Some(policy) = self.policy.clone() else {
            return Policy::merge(&[own], Defaults::run());
        };
        let defaults = Defaults {
            limits: policy.limits.clone(),
            env_allow: Vec::new(),
            protect: policy.protect.value,
        };
        Policy::merge(&[layer_of(policy), own], defaults)
    }

    fn refuse(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.wrong.get_or_insert((what.into(), why.into()));
    }

    /// The name of a variable; `None` was refused.
    fn variable(&mut self, name: &OsStr) -> Option<EnvName> {
        match name.to_str().map(str::parse) {
            Some(Ok(name)) => return Some(name),
            Some(Err(error)) => self.refuse("env", error.to_string()),
            None => self.refuse("env", format!("{} is not UTF-8", name.display())),
        }
        None
    }
}

/// A policy as a layer below the builder's own; its limits are the defaults of the merge.
fn layer_of(policy: Policy) -> Layer {
    Layer {
        kind: LayerKind::PolicyFile,
        filesystem: policy.filesystem,
        protect: Some(policy.protect),
        network_mode: Some(policy.network.mode),
        allow: policy.network.allow,
        unix: policy.network.unix,
        listen: policy.network.listen,
        trust: Some(policy.network.trust),
        subprocess: Some(policy.process.subprocess),
        limits: LayerLimits::default(),
        env: policy.env,
        tools: Tools::default(),
    }
}

#[cfg(test)]
mod tests;
