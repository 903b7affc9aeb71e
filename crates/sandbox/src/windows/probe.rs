//! What this machine can do. A run asks what costs nothing (jobs and tokens are read back); `doctor` and
//! `--explain` start processes and have them try.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use mcp_policy::windows_path::Spelling;
use mcp_policy::{Defaults, Origin, Policy, Sourced, WindowsPath};

use crate::core::error::Error;
use crate::core::host::Fact;
use crate::core::notices::Notices;
use crate::core::plan::{Plan, Planned};
use crate::core::request::Request;
use crate::core::run_record::RunId;
use crate::windows::channel::{Attempt, HelperOrder, Reply, Task};
use crate::windows::confinement::Confinement;
use crate::windows::facts::WindowsFacts;
use crate::windows::failure::RunError;
use crate::windows::job::{CpuRate, JobLimits, UI_RESTRICTIONS};
use crate::windows::launch;
use crate::windows::plan::plan;
use crate::windows::proxy_host::ProxyHost;
use crate::windows::self_test;
use crate::windows::step::Step;
use crate::windows::sys::job::{Job, is_in_job};
use crate::windows::sys::sid::ALL_CONTAINERS;
use crate::windows::sys::token::{self, Token};
use crate::windows::sys::{container, version};
use crate::windows::tree_kill::{dies_with_its_job, start_in};
use crate::windows::{dacl, disk, undo_log};

/// The facts a run starts from.
pub fn assume() -> Result<WindowsFacts, Error> {
    let doing = |doing: &str| {
        let doing = doing.to_owned();
        move |source: io::Error| Error::Io { doing, source }
    };
    let nonce = RunId::random().to_string();
    let temporary =
        resolved(&std::env::temp_dir()).map_err(doing("find the temporary directory"))?;
    let scratch = temporary
        .join(&format!("mcp-{nonce}"))
        .map_err(|why| Error::Input { what: temporary.to_string(), why: why.to_owned() })?;
    let helper = std::env::current_exe().and_then(|exe| resolved(&exe));
    let (major, minor, build) = version();
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    let system_root = resolved(&PathBuf::from(root)).map_err(doing("find Windows itself"))?;
    Ok(WindowsFacts {
        system: format!("Windows {major}.{minor}.{build}"),
        architecture: std::env::consts::ARCH.to_owned(),
        processors: std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        tree_kill: Fact::Assumed,
        limits: fact(read_back()),
        cpu_rate: fact(cap()),
        ui: fact(restrict()),
        token: fact(diminish()),
        container: fact(container::is_known().map_err(|e| e.to_string())),
        drive_root: drive_root(&system_root),
        relay: Fact::Assumed,
        scratch,
        nonce,
        helper: helper.map_err(doing("find this program"))?,
        readable: readable(&system_root),
        stripped: Vec::new(),
        store: undo_log::directory().parent().and_then(|own| resolved(&own.join("store")).ok()),
        system_root,
    })
}

/// As its DACL says; where there are no containers, nothing was asked.
fn drive_root(system_root: &WindowsPath) -> Fact {
    match (container::is_known(), disk::is_root_readable(system_root)) {
        (Err(_), _) => Fact::Assumed,
        (Ok(()), true) => Fact::Works,
        (Ok(()), false) => Fact::Fails {
            why: "cmd.exe starts no program by its full path, and Node may end at its start; an administrator can run \
                  once: icacls C:\\ /grant *S-1-15-2-1:(RA,REA,RC,S)"
                .to_owned(),
        },
    }
}

/// Nothing found to be wrong is not yet something that holds.
fn fact(tried: Result<(), String>) -> Fact {
    match tried {
        Ok(()) => Fact::Assumed,
        Err(why) => Fact::Fails { why },
    }
}

/// Without links and in its one spelling.
pub fn resolved(path: &std::path::Path) -> io::Result<WindowsPath> {
    let path = path.canonicalize()?;
    let text = path.to_str().ok_or_else(|| io::Error::other("is not valid Unicode"))?;
    WindowsPath::parse(text, Spelling::Resolved).map_err(io::Error::other)
}

/// Windows lets every container read these.
fn readable(system_root: &WindowsPath) -> Vec<WindowsPath> {
    let mut readable = vec![system_root.clone()];
    for name in ["ProgramFiles", "ProgramW6432", "ProgramFiles(x86)"] {
        let path = std::env::var_os(name).and_then(|path| resolved(&PathBuf::from(path)).ok());
        readable.extend(path.filter(|path| !path.is_root()));
    }
    readable
}

/// Which of the places that a request shows lost the entry that Windows gives every container there.
pub fn stripped(request: &Request, facts: &WindowsFacts) -> Vec<WindowsPath> {
    let everyone = dacl::sid(ALL_CONTAINERS).unwrap_or_default();
    let ask = |path: &WindowsPath| disk::granted_access(path, &everyone).ok();
    facts.stripped_among(shown(request), ask)
}

/// The places that a request shows, without links.
fn shown(request: &Request) -> Vec<WindowsPath> {
    let places = request.shown.iter().chain(&request.read);
    places.filter_map(|place| resolved(&place.path).ok()).collect()
}

fn words(error: &io::Error) -> String {
    error.to_string()
}

fn read_back() -> Result<(), String> {
    let job = Job::new().map_err(|e| words(&e))?;
    let limits =
        JobLimits { memory: Some(64 << 20), processes: Some(7), user_time: Some(10_000_000) };
    job.set_limits(limits).map_err(|e| words(&e))?;
    match job.limits().map_err(|e| words(&e))? {
        (flags, read) if read == limits && flags == limits.flags() => Ok(()),
        (flags, _) => {
            Err(format!("limits were accepted, and read back as none (flags {flags:#x})"))
        }
    }
}

fn cap() -> Result<(), String> {
    let job = Job::new().map_err(|e| words(&e))?;
    match job.cap_cpu(CpuRate(5000)).map_err(|e| words(&e))? {
        5000 => Ok(()),
        read => Err(format!("a cap of 5000 was accepted, and reads {read}")),
    }
}

fn restrict() -> Result<(), String> {
    let job = Job::new().map_err(|e| words(&e))?;
    match job.restrict_ui(UI_RESTRICTIONS).map_err(|e| words(&e))? {
        UI_RESTRICTIONS => {}
        read => return Err(format!("restrictions were accepted, and read {read:#x}")),
    }
    // A job with such restrictions cannot be inside another, where ours has us in one.
    match is_in_job().map_err(|e| words(&e))? {
        true => start_in(&job).map(drop).map_err(|e| format!("mcp itself is in a job: {e}")),
        false => Ok(()),
    }
}

fn diminish() -> Result<(), String> {
    let restricted = || -> io::Result<token::TokenIdentity> {
        let token = Token::restricted()?;
        token.lower_integrity()?;
        token.identity()
    };
    let identity = restricted().map_err(|e| words(&e))?;
    let mut left = identity.privileges;
    left.extend(identity.powerful_groups);
    if identity.integrity > token::LOW {
        left.push(format!("integrity {:#x}", identity.integrity));
    }
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("a token was made, and still has {}", left.join(", "))),
    }
}

/// The facts that `mcp doctor` and `--explain` show: everything tried.
pub fn probe() -> Result<WindowsFacts, Error> {
    let mut facts = assume()?;
    facts.tree_kill = match dies_with_its_job() {
        Ok(true) => Fact::Works,
        Ok(false) => Fact::Fails { why: "a process outlived its job".to_owned() },
        Err(e) => Fact::Fails { why: e.to_string() },
    };
    let request = nothing()
        .map_err(|e| Error::Input { what: "default policy".to_owned(), why: e.to_string() })?;
    // Whatever does not hold is left out, until the rest does.
    for _ in 0..8 {
        let plan = plan(&request, &facts);
        let failed = match launch::rehearse(&plan, None) {
            Ok(()) => {
                confirm(&mut facts);
                break;
            }
            Err(RunError::Step(failed)) => failed,
            Err(RunError::Io(source)) => {
                return Err(Error::Io { doing: "try the sandbox".to_owned(), source });
            }
        };
        let why = match failed.why.is_empty() {
            true => io::Error::from_raw_os_error(failed.errno).to_string(),
            false => failed.why,
        };
        let Some(Planned { step, .. }) = plan.steps.get(failed.step) else { break };
        let why = format!("{step}: {why}");
        let fact = match step {
            Step::Job { .. } => &mut facts.limits,
            Step::CpuRate { .. } => &mut facts.cpu_rate,
            Step::Ui => &mut facts.ui,
            Step::Token { .. } => &mut facts.token,
            _ if facts.container.usable() => &mut facts.container,
            _ => &mut facts.tree_kill,
        };
        if !fact.usable() {
            break;
        }
        *fact = Fact::Fails { why };
        rename(&mut facts);
    }
    facts.relay = try_relay(&request, &facts);
    if facts.limits.usable() {
        facts.limits = try_limits(&request, &facts);
    }
    Ok(facts)
}

/// Another run needs other names.
fn rename(facts: &mut WindowsFacts) {
    facts.nonce = RunId::random().to_string();
    let beside = facts.scratch.parent();
    let scratch = beside.and_then(|above| above.join(&format!("mcp-{}", facts.nonce)).ok());
    if let Some(scratch) = scratch {
        facts.scratch = scratch;
    }
}

/// Starts a relay in the confinement that this machine allows, and connects to it from inside.
fn try_relay(request: &Request, facts: &WindowsFacts) -> Fact {
    let mut facts = facts.clone();
    rename(&mut facts);
    let mut request = request.clone();
    let Ok(rule) = "127.0.0.1:9".parse() else { return Fact::Assumed };
    request.policy.network.allow.push(Sourced::new(rule, Origin::Default));
    let plan = plan(&request, &facts);
    let proxy_host = match ProxyHost::prepare(&plan, &request, Notices::Silent) {
        Ok(proxy_host) => proxy_host,
        Err(e) => return Fact::Fails { why: e.to_string() },
    };
    match launch::rehearse(&plan, proxy_host) {
        Ok(()) => Fact::Works,
        Err(RunError::Step(failed)) if failed.why.is_empty() => {
            Fact::Fails { why: io::Error::from_raw_os_error(failed.errno).to_string() }
        }
        Err(RunError::Step(failed)) => Fact::Fails { why: failed.why },
        Err(RunError::Io(e)) => Fact::Fails { why: e.to_string() },
    }
}

/// A whole rehearsal went well: what it rests on works.
fn confirm(facts: &mut WindowsFacts) {
    for fact in [&mut facts.ui, &mut facts.token, &mut facts.container, &mut facts.cpu_rate] {
        if *fact == Fact::Assumed {
            *fact = Fact::Works;
        }
    }
}

/// A policy of defaults for a command that is never started.
fn nothing() -> Result<Request, mcp_policy::Error> {
    let policy = Policy::merge(&[], Defaults::run())?;
    Ok(Request::bare(policy, PathBuf::new(), vec![OsString::from("nothing")]))
}

/// Our own program in a job of one process and little memory, told to take more of both.
fn try_limits(request: &Request, facts: &WindowsFacts) -> Fact {
    let bare = WindowsFacts {
        container: Fact::Fails { why: "not for this".to_owned() },
        nonce: RunId::random().to_string(),
        scratch: facts.own("limits"),
        ..facts.clone()
    };
    let mut plan: Plan<Step> = plan(request, &bare);
    plan.steps.retain(|planned| matches!(planned.step, Step::Job { .. }));
    for planned in &mut plan.steps {
        planned.step = Step::Job {
            limits: JobLimits { memory: Some(64 << 20), processes: Some(1), user_time: None },
        };
    }
    let order = HelperOrder {
        tasks: vec![
            (0, Task::Refused(Attempt::Allocate(256 << 20))),
            (0, Task::Refused(Attempt::Spawn)),
        ],
        launcher: 0,
        port: 0,
        handle: 0,
        marker: String::new(),
    };
    let asked = Confinement::build(&plan).map_err(|trouble| match trouble {
        RunError::Step(failed) => failed.why,
        RunError::Io(e) => e.to_string(),
    });
    match asked.and_then(|confinement| {
        self_test::ask(&confinement, &order, |_| ()).map_err(|e| e.to_string())
    }) {
        Ok((Some(Reply::Ready(_)), ..)) => Fact::Works,
        Ok((Some(Reply::Failed(failed)), ..)) => Fact::Fails { why: failed.why },
        Ok((None, ..)) => Fact::Fails { why: "our own program gave no answer".to_owned() },
        Err(why) => Fact::Fails { why },
    }
}
