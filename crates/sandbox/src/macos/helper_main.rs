//! The helper: this program once more, inside the sandbox, until it becomes the command.
//!
//! It finds out from inside that the sandbox holds, sets the limits on itself (on its parent they
//! would bind the launcher), lets go of every descriptor and executes. Whatever fails is sent to
//! the launcher with the number of its step, and nothing runs.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::exit;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};

use crate::macos::channel::{Channel, Failed, Go, HelperOrder, Reply, Seen, Task};
use crate::macos::step::Act;
use crate::macos::sys::{self, Signals};
use crate::unix::terminal::standard;

/// The first argument of a helper, before the number of its descriptor.
pub const MARK: &str = "mcp-sandbox-inside";
const NOT_SET_UP: i32 = crate::core::exit_code::NOT_SET_UP as i32;

/// Becomes the command where this program was started as a helper; else returns.
pub fn dispatch() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|first| first != MARK) {
        return;
    }
    let number = args.next().and_then(|number| number.to_str()?.parse().ok()).filter(|fd| *fd > 2);
    let channel = match number.map(sys::adopt) {
        Some(Ok(fd)) if !sys::is_privileged_start() => Channel::from_fd(fd),
        _ => {
            eprintln!("{MARK}: started by hand; it is for mcp itself");
            exit(NOT_SET_UP)
        }
    };
    become_command(channel)
}

fn become_command(mut channel: Channel) -> ! {
    let Ok(Some(order)) = channel.receive::<HelperOrder>() else { exit(NOT_SET_UP) };
    let mut seen = Vec::new();
    for (step, task) in &order.tasks {
        match carry_out(task, &order, &channel) {
            Ok(answer) => seen.push((*step, answer)),
            Err((errno, why)) => fail(&mut channel, *step, errno, why),
        }
    }
    // The launcher has to know this process's tree before there is one.
    let ready = channel.send(&Reply::Ready(seen));
    if ready.is_err() || !matches!(channel.receive::<Go>(), Ok(Some(Go))) {
        exit(NOT_SET_UP)
    }
    let (errno, why) = match execute(&order) {
        Ok(error) => (error.raw_os_error().unwrap_or(libc::EIO), String::new()),
        Err((errno, why)) => (errno, why),
    };
    fail(&mut channel, order.execute, errno, why)
}

fn fail(channel: &mut Channel, step: usize, errno: i32, why: String) -> ! {
    let _ = channel.send(&Reply::Failed(Failed { step, errno, why }));
    exit(NOT_SET_UP)
}

type StepError = (i32, String);

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn step_error(error: io::Error) -> StepError {
    (number(&error), String::new())
}

fn carry_out(task: &Task, order: &HelperOrder, channel: &Channel) -> Result<Seen, StepError> {
    match task {
        Task::Session { has_terminal } => {
            let session = rustix::process::setsid().map_err(|e| step_error(e.into()))?;
            if *has_terminal {
                let terminal = (0..3).map(standard).find(|fd| rustix::termios::isatty(fd));
                let terminal = terminal.ok_or((libc::ENOTTY, String::new()))?;
                rustix::process::ioctl_tiocsctty(terminal).map_err(|e| step_error(e.into()))?;
            }
            Ok(Seen::Confirmed(format!("session {}", session.as_raw_nonzero())))
        }
        Task::Refused(act) => is_refused(act, order),
        Task::Limit { number, value } => limit(*number, *value),
        Task::Descriptors => {
            sys::close_others(channel.as_fd().as_raw_fd()).map_err(step_error)?;
            Ok(Seen::Confirmed(String::new()))
        }
        Task::Environment => Ok(Seen::Confirmed(String::new())),
    }
}

/// Done all the same: the sandbox is not what was asked for.
const NOT_REFUSED: &str = "was NOT refused: the sandbox does not hold";

fn is_refused(act: &Act, order: &HelperOrder) -> Result<Seen, StepError> {
    let tried = attempt(act, order).map_err(step_error)?;
    match tried {
        Ok(()) => Err((libc::EPERM, NOT_REFUSED.to_owned())),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EPERM | libc::EACCES)) => {
            Ok(Seen::Confirmed(format!("tried to {act}: refused")))
        }
        // Failed for another reason, which proves nothing.
        Err(e) => Err((number(&e), "could not be tried".to_owned())),
    }
}

/// The inner result is the system's answer to the act, the outer one whether it could be tried.
fn attempt(act: &Act, order: &HelperOrder) -> io::Result<io::Result<()>> {
    Ok(match act {
        Act::Read { path } => File::open(path).map(drop),
        Act::Create { path } => File::create_new(path).map(drop),
        Act::Connect => {
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, order.port));
            TcpStream::connect_timeout(&to, Duration::from_secs(5)).map(drop)
        }
        Act::Signal => {
            let launcher = rustix::process::Pid::from_raw(order.launcher);
            let launcher = launcher.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            rustix::process::test_kill_process(launcher).map_err(io::Error::from)
        }
        Act::Inspect => sys::is_told_about(order.launcher),
        Act::Fork => match sys::fork() {
            Ok(sys::Forked::Child) => exit(0),
            Ok(sys::Forked::Parent(_)) => Ok(()),
            Err(e) => Err(e),
        },
        // Success would leave nothing of this helper: the launcher sees its channel close before the report.
        Act::Exec => Err(sys::execute(c"/usr/bin/true", &[c"true".to_owned()], &[])),
        Act::SetUserId { path } => set_user_id(path)?,
    })
}

fn set_user_id(path: &Path) -> io::Result<io::Result<()>> {
    File::create_new(path)?;
    let changed = fs::set_permissions(path, fs::Permissions::from_mode(0o4700));
    fs::remove_file(path)?;
    Ok(changed)
}

fn limit(number: i32, value: u64) -> Result<Seen, StepError> {
    let resource = resource(number).ok_or((libc::EINVAL, String::new()))?;
    let before = rustix::process::getrlimit(resource);
    // Less than asked for is allowed, more is not.
    let value = before.maximum.map_or(value, |most| most.min(value));
    let wanted = Rlimit { current: Some(value), maximum: Some(value) };
    match rustix::process::setrlimit(resource, wanted) {
        Ok(()) => {}
        Err(rustix::io::Errno::INVAL) if resource == Resource::As => {
            return Ok(Seen::Less("this macOS refuses RLIMIT_AS (EINVAL)".to_owned()));
        }
        Err(e) => return Err(step_error(e.into())),
    }
    let seen = rustix::process::getrlimit(resource);
    match seen.current.zip(seen.maximum) {
        Some((current, maximum)) if current <= value && maximum <= value => {
            Ok(Seen::Confirmed(format!("{resource:?} {current}")))
        }
        _ => Err((libc::EINVAL, format!("was accepted, and reads {seen:?}"))),
    }
}

fn resource(number: i32) -> Option<Resource> {
    Some(match number {
        libc::RLIMIT_CPU => Resource::Cpu,
        libc::RLIMIT_DATA => Resource::Data,
        libc::RLIMIT_AS => Resource::As,
        libc::RLIMIT_NPROC => Resource::Nproc,
        libc::RLIMIT_NOFILE => Resource::Nofile,
        libc::RLIMIT_FSIZE => Resource::Fsize,
        libc::RLIMIT_CORE => Resource::Core,
        _ => return None,
    })
}

/// Gives the reason why the command did not start.
fn execute(order: &HelperOrder) -> Result<io::Error, StepError> {
    std::env::set_current_dir(&order.cwd)
        .map_err(|e| (number(&e), format!("enter {}", order.cwd.display())))?;
    let program = sys::c_string(order.program.as_os_str()).map_err(step_error)?;
    let argv: io::Result<Vec<CString>> =
        order.argv.iter().map(|word| sys::c_string(word)).collect();
    let variable = |(name, value): &(OsString, OsString)| {
        let mut text = name.clone();
        text.push("=");
        text.push(value);
        sys::c_string(&text)
    };
    let env: io::Result<Vec<CString>> = order.env.iter().map(variable).collect();
    let (argv, env) = (argv.map_err(step_error)?, env.map_err(step_error)?);
    Signals::restore_for_exec();
    Ok(sys::execute(&program, &argv, &env))
}
