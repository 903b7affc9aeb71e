//! What a Windows machine can do, and what belongs to one run on it.

use mcp_policy::WindowsPath;
use mcp_policy::windows_path::Spelling;
use serde::Serialize;

use crate::core::host::Fact;
use crate::windows::access::Access;

/// What the names of all profiles of runs begin with.
pub const PROFILE: &str = "mcp.run.";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WindowsFacts {
    pub system: String,
    pub architecture: String,
    pub processors: u32,
    /// A job whose processes are dead when its last handle is closed.
    pub tree_kill: Fact,
    /// What is set on a job is what it says it has.
    pub limits: Fact,
    /// A hard cap on the job's share of the processors.
    pub cpu_rate: Fact,
    /// Restrictions on windows, clipboard and desktop.
    pub ui: Fact,
    /// A token with fewer privileges, without administrators' groups, at low integrity.
    pub token: Fact,
    /// AppContainers: a profile can be made, and closes files, network and processes.
    pub container: Fact,
    /// Containers can ask about the root of the system's drive, as cmd.exe and Node do.
    pub drive_root: Fact,
    /// Two processes of a container can connect to each other on its loopback, and our relay is one.
    pub relay: Fact,
    /// The command's own directories are made in here, and removed with it.
    pub scratch: WindowsPath,
    /// A name that no other run has.
    pub nonce: String,
    /// What looks around inside before the command: this very program.
    pub helper: WindowsPath,
    pub system_root: WindowsPath,
    /// Directories that every container can read, as Windows sets them up.
    pub readable: Vec<WindowsPath>,
    /// Places below them that lost the entry: installers of Node have set a DACL of their own (nodejs/node 63590).
    pub stripped: Vec<WindowsPath>,
    /// Where packages are: what is in there is never changed in place.
    pub store: Option<WindowsPath>,
}

impl WindowsFacts {
    /// A machine as it usually is, for plans that are made elsewhere.
    pub fn usual() -> Result<WindowsFacts, &'static str> {
        let path = |text: &str| WindowsPath::parse(text, Spelling::Resolved);
        Ok(WindowsFacts {
            system: "Windows".to_owned(),
            architecture: "x86_64".to_owned(),
            processors: 4,
            tree_kill: Fact::Assumed,
            limits: Fact::Assumed,
            cpu_rate: Fact::Assumed,
            ui: Fact::Assumed,
            token: Fact::Assumed,
            container: Fact::Assumed,
            drive_root: Fact::Assumed,
            relay: Fact::Assumed,
            scratch: path(r"C:\Users\you\AppData\Local\Temp\mcp-run")?,
            nonce: "run".to_owned(),
            helper: path(r"C:\Program Files\mcp\mcp.exe")?,
            system_root: path(r"C:\Windows")?,
            readable: vec![
                path(r"C:\Windows")?,
                path(r"C:\Program Files")?,
                path(r"C:\Program Files (x86)")?,
            ],
            stripped: Vec::new(),
            store: Some(path(r"C:\Users\you\AppData\Local\mcp\store")?),
        })
    }

    pub fn home(&self) -> WindowsPath {
        self.own("home")
    }

    pub fn temporary(&self) -> WindowsPath {
        self.own("tmp")
    }

    /// A file outside every grant, for the self-check to be refused at.
    pub fn canary(&self) -> WindowsPath {
        self.own("canary")
    }

    pub fn own(&self, name: &str) -> WindowsPath {
        self.scratch.join(name).unwrap_or_else(|_| self.scratch.clone())
    }

    /// Whether every container can read a path without an entry of its own.
    pub fn is_readable(&self, path: &WindowsPath) -> bool {
        let is_below = |places: &[WindowsPath]| places.iter().any(|place| path.is_within(place));
        is_below(&self.readable) && !is_below(&self.stripped)
    }

    /// Those of the places that are no longer what Windows made them. `ask` tells what a path allows every container;
    /// what cannot be asked is taken for what it was.
    pub fn stripped_among(
        &self,
        places: Vec<WindowsPath>,
        ask: impl Fn(&WindowsPath) -> Option<u32>,
    ) -> Vec<WindowsPath> {
        let wanted = Access::Read.mask();
        let is_closed = |path: &WindowsPath| ask(path).is_some_and(|mask| mask & wanted != wanted);
        places.into_iter().filter(|path| self.is_readable(path) && is_closed(path)).collect()
    }

    /// The name of the run's container profile.
    pub fn profile(&self) -> String {
        format!("{PROFILE}{}", self.nonce)
    }
}
