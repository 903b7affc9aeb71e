//! The one place where the operating system is chosen.

use std::path::Path;

use crate::error::Error;
use crate::host::HostFacts;
use crate::notices::Notices;
use crate::plan::Plan;
use crate::report::Report;
use crate::request::Request;
use crate::wish::Wish;

#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(not(target_os = "linux"))]
pub use unbuilt::*;

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    pub(crate) use crate::linux::line::{
        Launcher, Line, caller, ending_signal, is_single_threaded, let_go_of_stdio,
    };

    pub fn assume_host() -> Result<HostFacts, Error> {
        Ok(crate::linux::probe::assume())
    }

    pub fn probe_host() -> Result<HostFacts, Error> {
        Ok(crate::linux::probe::probe())
    }

    pub fn resolve(wish: Wish) -> Result<Request, Error> {
        let mut request = crate::unix::resolve::resolve(wish, crate::linux::stdio::inspect()?)?;
        crate::linux::landlock::find_strays(&mut request);
        Ok(request)
    }

    pub use crate::linux::claim::Claim;
    pub use crate::linux::runs::RunHandle;

    /// Takes what the run needs of the host before it is planned, and completes the facts.
    pub fn claim(request: &Request, facts: &mut HostFacts) -> Claim {
        crate::linux::claim::claim(request, facts)
    }

    pub fn run(
        plan: &Plan,
        request: &Request,
        claim: Claim,
        notices: Notices,
    ) -> Result<Report, Error> {
        crate::linux::launch::run(plan, request, claim, notices)
    }

    pub(crate) fn list_runs() -> Result<Vec<crate::runs::Run>, Error> {
        Ok(crate::linux::runs::list())
    }

    pub(crate) fn start_launcher(
        helper: Option<&Path>,
        stdio: [std::process::Stdio; 3],
    ) -> Result<Launcher, Error> {
        let name = helper.unwrap_or(Path::new("this program")).display();
        Launcher::start(helper, stdio)
            .map_err(|source| Error::Io { doing: format!("start {name} as the helper"), source })
    }
}

/// Systems whose launcher is not built yet say so instead of running anything.
#[cfg(not(target_os = "linux"))]
mod unbuilt {
    use super::*;
    pub(crate) use crate::unbuilt::{
        Launcher, Line, caller, ending_signal, is_single_threaded, let_go_of_stdio,
    };

    fn not_built<T>() -> Result<T, Error> {
        Err(Error::Unsupported(format!(
            "running programs on {} is not built yet; mcp runs them on Linux for now",
            std::env::consts::OS
        )))
    }

    pub fn assume_host() -> Result<HostFacts, Error> {
        not_built()
    }

    pub fn probe_host() -> Result<HostFacts, Error> {
        not_built()
    }

    #[cfg(unix)]
    pub fn resolve(wish: Wish) -> Result<Request, Error> {
        use crate::request::Stdio;
        crate::unix::resolve::resolve(wish, [Stdio::Direct, Stdio::Direct, Stdio::Direct])
    }

    #[cfg(not(unix))]
    pub fn resolve(_: Wish) -> Result<Request, Error> {
        not_built()
    }

    pub use crate::unbuilt::{Claim, RunHandle};

    pub fn claim(_: &Request, _: &mut HostFacts) -> Claim {
        Claim
    }

    pub fn run(_: &Plan, _: &Request, _: Claim, _: Notices) -> Result<Report, Error> {
        not_built()
    }

    pub(crate) fn list_runs() -> Result<Vec<crate::runs::Run>, Error> {
        not_built()
    }

    pub(crate) fn start_launcher(
        _: Option<&Path>,
        _: [std::process::Stdio; 3],
    ) -> Result<Launcher, Error> {
        not_built()
    }
}
