//! The one place where the operating system is chosen.

use std::fs::File;
use std::path::{Path, PathBuf};

use mcp_policy::Policy;

pub use crate::core::check::Check;
use crate::core::error::Error;
pub use crate::core::lasting::Removed;
use crate::core::notices::Notices;
use crate::core::plan::Plan;
use crate::core::report::Report;
use crate::core::request::{Request, Unshown};
use crate::core::run_record::Record;
use crate::core::run_spec::RunSpec;
#[cfg(unix)]
use crate::unix::writable::Writable;

#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(target_os = "macos")]
pub use macos::*;

#[cfg(windows)]
pub use windows::*;

/// Returns free memory to the system, where the allocator has a way to do that and does not do it by itself.
pub fn give_back_memory() {
    #[cfg(target_os = "linux")]
    crate::linux::give_back_memory();
}

#[cfg(not(target_os = "linux"))]
fn pass(check: Option<Check<'_>>) -> Result<(), Error> {
    match check {
        Some(check) if !check() => Err(Error::Changed),
        _ => Ok(()),
    }
}

/// A file that a policy's own command may have put in the place of the one that a person named: how a file that is
/// open was reached through a place that may be written, and lies outside of it.
#[cfg(unix)]
pub fn led_out(policy: &Policy, path: &Path, file: &File) -> Option<Unshown> {
    Writable::of(policy).led_out(path, file)
}

/// Whether a path lies in, or leads through, what a policy gives for writing.
#[cfg(unix)]
pub fn is_writable(policy: &Policy, path: &Path) -> bool {
    !Writable::of(policy).is_untouched(path)
}

/// Not looked at there.
#[cfg(windows)]
pub fn led_out(_: &Policy, _: &Path, _: &File) -> Option<Unshown> {
    None
}

#[cfg(windows)]
pub fn is_writable(_: &Policy, _: &Path) -> bool {
    false
}

/// Removes what runs left on purpose, for the next ones: on Windows only.
#[cfg(windows)]
pub fn remove_lasting() -> Removed {
    use crate::windows::lasting_log;
    lasting_log::remove_all(&lasting_log::directory())
}

#[cfg(not(windows))]
pub fn remove_lasting() -> Removed {
    Removed::default()
}

/// Whether a program starts in a job with one UI limit of Windows.
#[cfg(windows)]
pub fn starts_under_ui_limit(
    limit: u32,
    program: &Path,
    arguments: &[std::ffi::OsString],
) -> std::io::Result<bool> {
    crate::windows::ui_limit::starts_under(limit, program, arguments)
}

#[cfg(not(windows))]
pub fn starts_under_ui_limit(_: u32, _: &Path, _: &[std::ffi::OsString]) -> std::io::Result<bool> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Only Linux has to look through directories before a run.
#[cfg(not(target_os = "linux"))]
pub fn resolve_knowing(spec: RunSpec, _: &[PathBuf]) -> Result<Request, Error> {
    resolve(spec)
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    pub use crate::linux::facts::LinuxFacts as Facts;
    pub(crate) use crate::linux::helper_link::{
        HelperLink, Launcher, caller, ending_signal, is_single_threaded, let_go_of_stdio,
    };
    pub use crate::linux::own_networks::own_networks;
    pub use crate::linux::phases::LinuxPlan as RunPlan;
    pub use crate::linux::plan::plan;
    pub use crate::linux::step::Step;
    pub use crate::linux::view::is_visible;

    /// A plan as a list of steps.
    pub fn outline(plan: &RunPlan) -> Plan<Step<'_>> {
        plan.outline()
    }

    pub fn assume_host() -> Result<Facts, Error> {
        Ok(crate::linux::probe::assume())
    }

    pub fn probe_host() -> Result<Facts, Error> {
        Ok(crate::linux::probe::probe())
    }

    pub fn resolve(spec: RunSpec) -> Result<Request, Error> {
        resolve_knowing(spec, &[])
    }

    /// The same, where it is known of directories that they hold files, directories and links only.
    pub fn resolve_knowing(spec: RunSpec, plain: &[PathBuf]) -> Result<Request, Error> {
        let mut request = crate::unix::resolve::resolve(spec, crate::linux::stdio::inspect()?)?;
        crate::linux::landlock::find_strays(&mut request, plain);
        Ok(request)
    }

    pub use crate::linux::reservation::Reservation;
    pub use crate::linux::runs::RunHandle;

    /// Takes what the run needs of the host before it is planned, and completes the facts.
    pub fn reserve(request: &Request, facts: &mut Facts) -> Reservation {
        crate::linux::reservation::reserve(request, facts)
    }

    pub fn run(
        plan: &RunPlan,
        request: &Request,
        reservation: Reservation,
        notices: Notices,
        check: Option<Check<'_>>,
    ) -> Result<Report, Error> {
        crate::linux::launch::run(plan, request, reservation, notices, check)
    }

    pub(crate) use crate::linux::plan::same_walls;

    pub(crate) fn list_runs() -> Result<Vec<(Record, RunHandle)>, Error> {
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

#[cfg(target_os = "macos")]
mod macos {
    use super::*;
    pub use crate::macos::facts::MacFacts as Facts;
    pub(crate) use crate::macos::helper_link::{
        HelperLink, Launcher, caller, ending_signal, is_single_threaded, let_go_of_stdio,
    };
    pub use crate::macos::own_networks;
    pub use crate::macos::plan::plan;
    pub use crate::macos::profile::is_visible;
    pub use crate::macos::step::Step;

    /// The plan of a run.
    pub type RunPlan = Plan<Step>;

    /// A plan as a list of steps.
    pub fn outline(plan: &RunPlan) -> RunPlan {
        plan.clone()
    }

    pub fn assume_host() -> Result<Facts, Error> {
        crate::macos::probe::assume()
    }

    pub fn probe_host() -> Result<Facts, Error> {
        crate::macos::probe::probe()
    }

    pub fn resolve(spec: RunSpec) -> Result<Request, Error> {
        let request = crate::unix::resolve::resolve(spec, crate::macos::stdio::inspect()?)?;
        Ok(crate::macos::on_disk_case::as_stored(request))
    }

    pub use crate::macos::proxy_host::ProxyPort as Reservation;
    pub use crate::macos::runs::RunHandle;

    /// Takes the port of the run's proxy, which its profile names.
    pub fn reserve(request: &Request, facts: &mut Facts) -> Reservation {
        crate::macos::proxy_host::reserve_port(request, facts)
    }

    pub fn run(
        plan: &RunPlan,
        request: &Request,
        reservation: Reservation,
        notices: Notices,
        check: Option<Check<'_>>,
    ) -> Result<Report, Error> {
        pass(check)?;
        crate::macos::launch::run(plan, request, reservation, notices)
    }

    /// Names are new in each plan; what it intends is not.
    pub(crate) fn same_walls(plan: &RunPlan, other: &RunPlan) -> bool {
        plan.controls == other.controls
    }

    pub(crate) fn list_runs() -> Result<Vec<(Record, RunHandle)>, Error> {
        crate::macos::runs::list()
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

#[cfg(windows)]
mod windows {
    use super::*;
    pub use crate::windows::facts::WindowsFacts as Facts;
    pub(crate) use crate::windows::helper_link::{
        HelperLink, Launcher, caller, ending_signal, is_single_threaded, let_go_of_stdio,
    };
    pub use crate::windows::own_networks;
    pub use crate::windows::plan::{is_visible, plan};
    pub use crate::windows::runs::RunHandle;
    pub use crate::windows::step::Step;

    /// The plan of a run.
    pub type RunPlan = Plan<Step>;

    /// A plan as a list of steps.
    pub fn outline(plan: &RunPlan) -> RunPlan {
        plan.clone()
    }

    pub fn assume_host() -> Result<Facts, Error> {
        crate::windows::probe::assume()
    }

    pub fn probe_host() -> Result<Facts, Error> {
        crate::windows::probe::probe()
    }

    pub fn resolve(spec: RunSpec) -> Result<Request, Error> {
        crate::windows::resolve::resolve(spec)
    }

    pub struct Reservation;

    /// Nothing is taken of the host before a run. What it shows is looked at: an installer may have closed it to
    /// containers.
    pub fn reserve(request: &Request, facts: &mut Facts) -> Reservation {
        if facts.container.usable() {
            facts.stripped = crate::windows::probe::stripped(request, facts);
        }
        Reservation
    }

    pub fn run(
        plan: &RunPlan,
        request: &Request,
        _: Reservation,
        notices: Notices,
        check: Option<Check<'_>>,
    ) -> Result<Report, Error> {
        pass(check)?;
        crate::windows::launch::run(plan, request, notices)
    }

    /// Names are new in each plan; what it intends is not.
    pub(crate) fn same_walls(plan: &RunPlan, other: &RunPlan) -> bool {
        plan.controls == other.controls
    }

    pub(crate) fn list_runs() -> Result<Vec<(Record, RunHandle)>, Error> {
        crate::windows::runs::list()
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
