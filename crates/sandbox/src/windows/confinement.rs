//! Job, token, AppContainer and DACL entries of one run. They are created in the order of the plan before a process
//! starts, and read back where the system allows that. Dropping them ends the processes inside and undoes the changes
//! on the machine.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcp_policy::WindowsPath;

use crate::core::plan::Plan;
use crate::core::report::{Answer, Evidence};
use crate::core::run_record::RunId;
use crate::windows::access::{Access, Grant};
use crate::windows::acl_apply;
use crate::windows::channel::Failed;
use crate::windows::dacl;
use crate::windows::disk::{self, Disk};
use crate::windows::exclusion::Exclusion;
use crate::windows::failure::{RunError, at_step};
use crate::windows::job::{CpuRate, JobLimits, UI_RESTRICTIONS};
use crate::windows::journal::Change;
use crate::windows::step::{Integrity, Step};
use crate::windows::sys::container::Container;
use crate::windows::sys::desktop::Desktop;
use crate::windows::sys::handles::Inheritable;
use crate::windows::sys::job::Job;
use crate::windows::sys::port::Port;
use crate::windows::sys::process::{Children, Start};
use crate::windows::sys::sid::ALL_CONTAINERS;
use crate::windows::sys::token::Token;
use crate::windows::undo_log::UndoLog;
use crate::windows::win32::{self, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE};
use crate::windows::{lasting, lasting_log, runs, tree_kill};

// Dropped in this order: the processes inside first, then their access.
pub struct Confinement {
    /// The job's name contains it, so that `mcp ps` finds the job.
    pub run: RunId,
    pub job: Job,
    pub port: Port,
    pub token: Option<Token>,
    pub container: Option<Container>,
    desktop: Option<Desktop>,
    pub children: Children,
    /// Settings of the command's job that a second job in the container needs too.
    job_settings: JobSettings,
    pub evidence: Vec<Evidence>,
    /// The run's private directory.
    pub scratch: PathBuf,
    exclusions: Vec<Exclusion>,
    undo_log: Option<UndoLog>,
    /// Open as long as the run lives, so that their entries are not removed under it.
    records: Vec<lasting_log::OpenRecord>,
}

impl Confinement {
    pub fn build(plan: &Plan<Step>) -> Result<Confinement, RunError> {
        let (run, job) = runs::new_job()?;
        let mut confinement = Confinement {
            run,
            job,
            port: Port::new()?,
            token: None,
            container: None,
            desktop: None,
            children: Children::Allowed,
            job_settings: JobSettings::default(),
            evidence: Vec::new(),
            scratch: PathBuf::new(),
            exclusions: Vec::new(),
            undo_log: None,
            records: Vec::new(),
        };
        for (step, planned) in plan.steps.iter().enumerate() {
            let built = confinement.add(&planned.step);
            match built {
                Ok(None) => {}
                Ok(Some(answer)) => confinement.evidence.push(Evidence { step, answer }),
                Err(SetupError::Io(error)) => return Err(at_step(step, &error)),
                Err(SetupError::Mismatch(why)) => {
                    return Err(RunError::Step(Failed {
                        step,
                        errno: win32::ERROR_NOT_SUPPORTED,
                        why,
                    }));
                }
            }
        }
        Ok(confinement)
    }

    fn add(&mut self, step: &Step) -> Result<Option<Answer>, SetupError> {
        let seen = |text: &str| Ok(Some(Answer::Confirmed(text.to_owned())));
        match step {
            Step::RunDirectory { at } => self.scratch(Path::new(&at.to_string())).map(Some),
            Step::Text { at, text } => {
                fs::write(at.to_string(), text)?;
                Ok(None)
            }
            Step::Job { limits } => {
                self.job.report_to(&self.port)?;
                self.job_settings.user_time = limits.user_time;
                bound(&self.job, *limits).map(Some)
            }
            Step::CpuRate { rate } => {
                self.job_settings.rate = Some(*rate);
                cap(&self.job, *rate).map(Some)
            }
            Step::Ui => {
                self.job_settings.ui = Some(UI_RESTRICTIONS);
                restrict(&self.job, UI_RESTRICTIONS).map(Some)
            }
            Step::Token { integrity } => {
                let token = Token::restricted()?;
                if *integrity == Integrity::Low {
                    token.lower_integrity()?;
                }
                self.token = Some(token);
                seen("")
            }
            Step::Container { profile, network } => {
                self.note(Change::Profile { name: profile.clone() })?;
                let container = Container::make(profile, *network)?;
                let text = container.sid.to_string();
                self.container = Some(container);
                seen(&text)
            }
            Step::Desktop => Ok(Some(self.own_desktop())),
            Step::Exclusion { exclusion } => {
                self.exclusions.push(exclusion.clone());
                seen("")
            }
            Step::Grant { grant } => self.grant(grant).map(Some),
            Step::LastingGrant { path } => self.lasting_grant(path).map(Some),
            Step::NoChildren => {
                self.children = Children::Refused;
                seen("")
            }
            Step::Relay
            | Step::ListenRelay { .. }
            | Step::Reached
            | Step::Served { .. }
            | Step::Mitigations
            | Step::Timeout { .. }
            | Step::Handles { .. }
            | Step::Refused { .. }
            | Step::Allowed { .. }
            | Step::Identity
            | Step::Environment { .. }
            | Step::Execute { .. } => Ok(None),
        }
    }

    fn own_desktop(&mut self) -> Answer {
        let name = format!("mcp-{}", self.run);
        let container = self.container.as_ref().map(|container| container.sid.to_string());
        match Desktop::make(&name, &container.unwrap_or_else(|| ALL_CONTAINERS.to_owned())) {
            Ok(desktop) => {
                self.desktop = Some(desktop);
                Answer::Confirmed(String::new())
            }
            Err(e) => Answer::Less(format!("the user's desktop is used: {e}")),
        }
    }

    /// Processes that are started from now on are on the launcher's desktop.
    pub fn leave_desktop(&mut self) {
        self.desktop = None;
    }

    fn note(&mut self, made: Change) -> io::Result<()> {
        match &mut self.undo_log {
            Some(undo_log) => undo_log.note(made),
            None => Err(io::Error::other("no journal")),
        }
    }

    fn scratch(&mut self, at: &Path) -> Result<Answer, SetupError> {
        let name = at.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.undo_log = Some(UndoLog::begin(&name)?);
        self.note(Change::RunDirectory { at: at.to_string_lossy().into_owned() })?;
        // An existing directory is refused: another user may have made it.
        fs::create_dir(at)?;
        self.scratch = at.to_owned();
        for directory in [r"home\AppData\Roaming", r"home\AppData\Local", "tmp"] {
            fs::create_dir_all(at.join(directory))?;
        }
        fs::write(at.join("canary"), "not for the command\n")?;
        Ok(Answer::Confirmed(String::new()))
    }

    fn grant(&mut self, grant: &Grant) -> Result<Answer, SetupError> {
        let Some(sid) = self.container.as_ref().map(|container| container.sid.to_string()) else {
            return Err(SetupError::Mismatch(
                "the plan has no container before this grant".to_owned(),
            ));
        };
        let Grant { path, access } = grant;
        let bytes = |text: &str| {
            dacl::sid(text).ok_or_else(|| SetupError::Mismatch(format!("{text} is no SID")))
        };
        if *access < Access::Write && is_open_to_all(path, *access) {
            return Ok(Answer::Confirmed(format!("ALL APPLICATION PACKAGES can {access} {path}")));
        }
        self.note(Change::Entry { sid: sid.clone(), path: path.to_string() })?;
        match acl_apply::add_aces(&Disk, &bytes(&sid)?, grant, &self.exclusions) {
            Ok(()) => Ok(Answer::Confirmed(String::new())),
            // A directory above that belongs to another user: files below can still be opened by their full paths.
            Err(e)
                if *access == Access::Attributes && e.kind() == io::ErrorKind::PermissionDenied =>
            {
                Ok(Answer::Confirmed(format!(
                    "this user cannot change the DACL of {path}: a program that reads the attributes of every directory above \
                     its script (Node) needs this once, as administrator: icacls \"{path}\" /grant *S-1-15-2-1:(RA)"
                )))
            }
            Err(e) => Err(e.into()),
        }
    }

    fn lasting_grant(&mut self, path: &WindowsPath) -> Result<Answer, SetupError> {
        if is_open_to_all(path, Access::Read) {
            let said = format!("ALL APPLICATION PACKAGES can read {path}");
            return Ok(Answer::Confirmed(said));
        }
        let Some(container) = &mut self.container else {
            return Err(SetupError::Mismatch(
                "the plan has no container before this grant".to_owned(),
            ));
        };
        let (record, seen) = lasting_log::show(&lasting_log::directory(), path)?;
        container.add_capability(&lasting::capability_sid(path))?;
        self.records.push(record);
        Ok(Answer::Confirmed(seen.to_owned()))
    }

    /// A job for a process of ours in the container, which the command can take over: its own memory limit, one process,
    /// and otherwise the settings of the command's job.
    pub fn job_beside(&self, memory: u64) -> io::Result<Job> {
        let job = Job::new()?;
        let JobSettings { user_time, rate, ui } = self.job_settings;
        job.set_limits(JobLimits { memory: Some(memory), processes: Some(1), user_time })?;
        let others =
            [rate.map(|rate| cap(&job, rate)), ui.map(|restrictions| restrict(&job, restrictions))];
        for held in others.into_iter().flatten() {
            held.map_err(|refused| match refused {
                SetupError::Io(error) => error,
                SetupError::Mismatch(why) => io::Error::other(why),
            })?;
        }
        Ok(job)
    }

    /// How to start a process in this confinement.
    pub fn start<'a>(
        &'a self,
        program: &'a OsStr,
        command_line: &'a OsStr,
        environment: &'a [OsString],
        directory: &'a OsStr,
        stdio: &'a [Inheritable; 3],
    ) -> Start<'a> {
        Start {
            program,
            command_line,
            environment,
            directory,
            stdio,
            job: &self.job,
            token: self.token.as_ref(),
            container: self.container.as_ref(),
            desktop: self.desktop.as_ref(),
            children: self.children,
        }
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        // Windows does not remove the current directory of a live process.
        let _ = self.job.terminate(1);
        for _ in 0..500 {
            if self.job.counted().is_ok_and(|counted| counted.active == 0) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        drop(self.undo_log.take());
    }
}

/// Whether every container has this access already.
fn is_open_to_all(path: &WindowsPath, access: Access) -> bool {
    let given = dacl::sid(ALL_CONTAINERS).and_then(|all| disk::granted_access(path, &all).ok());
    given.is_some_and(|given| given & access.mask() == access.mask())
}

#[derive(Debug, Clone, Copy, Default)]
struct JobSettings {
    user_time: Option<i64>,
    rate: Option<CpuRate>,
    ui: Option<u32>,
}

enum SetupError {
    Io(io::Error),
    /// The system accepted the setting, but reads back another one.
    Mismatch(String),
}

impl From<io::Error> for SetupError {
    fn from(error: io::Error) -> SetupError {
        SetupError::Io(error)
    }
}

fn bound(job: &Job, limits: JobLimits) -> Result<Answer, SetupError> {
    job.set_limits(limits)?;
    let (flags, read) = job.limits()?;
    if read != limits {
        return Err(SetupError::Mismatch(format!("was accepted, and reads {read:?}")));
    }
    if flags & JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE != 0 {
        return Ok(Answer::Confirmed(format!("read back: flags {flags:#x}, {read:?}")));
    }
    match tree_kill::jobs_kill()? {
        true => Ok(Answer::Confirmed(
            "this system does not tell what a job has; a process died with its job when it was tried"
                .to_owned(),
        )),
        false => Err(SetupError::Mismatch("a process outlived its job".to_owned())),
    }
}

fn restrict(job: &Job, restrictions: u32) -> Result<Answer, SetupError> {
    match job.restrict_ui(restrictions)? {
        read if read == restrictions => {
            Ok(Answer::Confirmed("restrictions were read back".to_owned()))
        }
        read => Err(SetupError::Mismatch(format!("was accepted, and reads {read:#x}"))),
    }
}

fn cap(job: &Job, rate: CpuRate) -> Result<Answer, SetupError> {
    match job.cap_cpu(rate)? {
        read if read == rate.0 => Ok(Answer::Confirmed(format!("read back: {read} of 10000"))),
        read => Err(SetupError::Mismatch(format!("was accepted, and reads {read}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::control::Control;
    use crate::core::plan::{Intents, Planned};

    /// A command that takes over a process of ours gains nothing that its own job does not have.
    #[test]
    fn a_job_beside_has_what_the_commands_has() {
        let limits = JobLimits { memory: None, processes: None, user_time: Some(70_000_000) };
        let rate = CpuRate(1234);
        let steps = [Step::Job { limits }, Step::CpuRate { rate }, Step::Ui];
        let of = |step: &Step| Planned { step: step.clone(), for_controls: vec![Control::Cpu] };
        let plan = |steps: &[Step]| Plan {
            controls: Intents::from_iter([]),
            steps: steps.iter().map(of).collect(),
        };
        let Ok(confinement) = Confinement::build(&plan(&steps)) else {
            println!("NOT VERIFIED: limits: this system does not report the limits of a job");
            // A job without limits can be created there too.
            let confinement = Confinement::build(&plan(&[]));
            assert!(confinement.is_ok_and(|confinement| confinement.job_beside(1 << 20).is_ok()));
            return;
        };
        let job = confinement.job_beside(64 << 20).unwrap();
        let (flags, read) = job.limits().unwrap();
        let user_time = limits.user_time;
        assert_eq!(read, JobLimits { memory: Some(64 << 20), processes: Some(1), user_time });
        assert_ne!(flags & JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, 0);
        assert_eq!((job.ui().unwrap(), job.cpu_rate().unwrap()), (UI_RESTRICTIONS, rate.0));
    }
}
