//! The helper: this program again, started exactly as the command will be (same job, token, container, handles). It
//! tries what must be refused, reports, and ends before the command starts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use std::process::exit;
use std::time::Duration;

use crate::windows::channel::{Attempt, Failed, HelperOrder, Purpose, READY, Reply, Task};
use crate::windows::failure::{StepError, number};
use crate::windows::sys::{acl, console, desktop, handles, process, pty, token};
use crate::windows::win32::{
    DELETE, ERROR_ACCESS_DENIED, ERROR_CHILD_PROCESS_BLOCKED, ERROR_NOT_ENOUGH_QUOTA,
    FILE_APPEND_DATA, FILE_READ_DATA, FILE_WRITE_ATTRIBUTES, FILE_WRITE_DATA, WRITE_DAC,
    WRITE_OWNER,
};
use crate::windows::{listen_relay, relay_main};

/// The first argument of a helper.
pub const MARK: &str = "mcp-sandbox-inside";
/// The first argument of a process that sends Ctrl-Break to another's console.
pub const BREAK_MARK: &str = "mcp-sandbox-break";
/// The first argument of one that finds out whose console it has.
pub const CONSOLE_MARK: &str = "mcp-sandbox-console";
const NOT_SET_UP: i32 = crate::core::exit_code::NOT_SET_UP as i32;
/// A connection to this machine is there at once, or it is refused.
const PATIENCE: Duration = Duration::from_millis(300);

/// Does its work and ends where this program was started as a helper; else returns.
pub fn dispatch() {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == MARK => inside(),
        Some(first) if first == relay_main::MARK => relay_main::serve(),
        Some(first) if first == relay_main::MARK_IN => {
            relay_main::serve_in(args.next().and_then(|word| word.to_str()?.parse().ok()))
        }
        Some(first) if first == BREAK_MARK => {
            let process = args.next().and_then(|word| word.to_str()?.parse().ok());
            let sent = process.map(console::send_break);
            exit(if matches!(sent, Some(Ok(()))) { 0 } else { NOT_SET_UP })
        }
        Some(first) if first == CONSOLE_MARK => {
            let launcher = args.next().and_then(|word| word.to_str()?.parse().ok());
            exit(if launcher.is_some_and(has_own_console) { 0 } else { NOT_SET_UP })
        }
        _ => {}
    }
}

/// There is a console, and the launcher is not in it.
fn has_own_console(launcher: u32) -> bool {
    let is_shown = io::stdin().is_terminal() && io::stdout().is_terminal();
    is_shown && pty::neighbours().is_ok_and(|list| !list.contains(&launcher))
}

fn inside() -> ! {
    let mut text = Vec::new();
    let heard = io::stdin().read_to_end(&mut text);
    let order = heard.ok().and_then(|_| serde_json::from_slice::<HelperOrder>(&text).ok());
    let Some(order) = order else {
        eprintln!("{MARK}: started by hand; it is for mcp itself");
        exit(NOT_SET_UP)
    };
    let mut stdout = io::stdout();
    let servers = Servers::open(&order);
    if servers.has_all() {
        let _ = stdout.write_all(READY).and_then(|()| stdout.flush());
    }
    let word = match carry_out(&order, &servers) {
        Ok(seen) => Reply::Ready(seen),
        Err(failed) => Reply::Failed(failed),
    };
    let answer = serde_json::to_vec(&word).unwrap_or_default();
    let said = stdout.write_all(&answer).and_then(|()| stdout.flush());
    exit(if said.is_ok() { 0 } else { NOT_SET_UP })
}

/// Where the command's servers will be.
struct Servers(Vec<(u16, io::Result<TcpListener>)>);

impl Servers {
    fn open(order: &HelperOrder) -> Servers {
        let ports = order.tasks.iter().filter_map(|(_, task)| match task {
            Task::Served(port) => Some(*port),
            _ => None,
        });
        Servers(ports.map(|port| (port, listen_relay::listen(port))).collect())
    }

    fn has_all(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|(_, server)| server.is_ok())
    }

    fn is_served(&self, port: u16, word: &str) -> Result<String, StepError> {
        let served = match self.0.iter().find(|(own, _)| *own == port) {
            Some((_, Ok(server))) => listen_relay::serve_once(server, word),
            Some((_, Err(e))) => {
                let why = format!(
                    "cannot listen on 127.0.0.1:{port} ({e}): a container shares the ports of this machine, so choose \
                     another port, or stop the program that uses this one"
                );
                return Err((number(e), why));
            }
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match served {
            Ok(()) => Ok(format!("the launcher's word arrived on 127.0.0.1:{port}")),
            Err(e) => Err((number(&e), "the launcher's word does not arrive there".to_owned())),
        }
    }
}

fn carry_out(order: &HelperOrder, servers: &Servers) -> Result<Vec<(usize, String)>, Failed> {
    let mut seen = Vec::new();
    for (step, task) in &order.tasks {
        let done = match task {
            Task::Refused(attempt) => is_refused(attempt, order),
            Task::Allowed(directory) => is_allowed(Path::new(directory)),
            Task::Reached(port) => relay_main::is_reached(*port),
            Task::Served(port) => servers.is_served(*port, &order.marker),
            Task::Identity => is_diminished(),
            Task::Desktop => {
                Ok(desktop::is_usable().err().map(|e| e.to_string()).unwrap_or_default())
            }
        };
        match done {
            Ok(text) => seen.push((*step, text)),
            Err((errno, why)) => return Err(Failed { step: *step, errno, why }),
        }
    }
    Ok(seen)
}

/// The forbidden act succeeded: the confinement is not what was asked for.
const NOT_REFUSED: &str = "was NOT refused: the sandbox does not hold";

fn is_refused(attempt: &Attempt, order: &HelperOrder) -> Result<String, StepError> {
    match tried(attempt, order) {
        Ok(()) => Err((ERROR_ACCESS_DENIED, NOT_REFUSED.to_owned())),
        Err(e) if is_refusal(attempt, &e) => Ok(format!("tried to {}: refused", words(attempt))),
        // Failed for another reason, which proves nothing.
        Err(e) => Err((number(&e), format!("could not be tried: {e}"))),
    }
}

fn is_refusal(attempt: &Attempt, error: &io::Error) -> bool {
    let kind = error.kind();
    match attempt {
        // Packets that are dropped in silence are refused as well; the launcher sees that none arrived.
        Attempt::Connect => matches!(
            kind,
            io::ErrorKind::PermissionDenied
                | io::ErrorKind::TimedOut
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::HostUnreachable
        ),
        Attempt::Spawn => {
            [ERROR_ACCESS_DENIED, ERROR_NOT_ENOUGH_QUOTA, ERROR_CHILD_PROCESS_BLOCKED]
                .contains(&number(error))
        }
        Attempt::Inherit | Attempt::Allocate(_) => true,
        // A file that is gone cannot be opened either.
        Attempt::Open(..) => {
            matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound)
        }
        _ => kind == io::ErrorKind::PermissionDenied,
    }
}

fn words(attempt: &Attempt) -> String {
    match attempt {
        Attempt::Read(path) => format!("read {path}"),
        Attempt::Create(path) => format!("create {path}"),
        Attempt::Connect => "connect to a port of the launcher".to_owned(),
        Attempt::OpenLauncher => "open the launcher's process".to_owned(),
        Attempt::Inherit => "use a handle that was not handed over".to_owned(),
        Attempt::BreakAway => "start a process outside of the job".to_owned(),
        Attempt::Spawn => "start a process".to_owned(),
        Attempt::Open(Purpose::Anything, path) => format!("open {path}"),
        Attempt::Open(Purpose::Changing, path) => format!("change {path}"),
        Attempt::Open(Purpose::Moving, path) => format!("remove or rename {path}"),
        Attempt::Allocate(bytes) => format!("take {bytes} bytes of memory"),
    }
}

fn tried(attempt: &Attempt, order: &HelperOrder) -> io::Result<()> {
    match attempt {
        Attempt::Read(path) => File::open(path).map(drop),
        Attempt::Create(path) => File::create_new(path).map(drop),
        Attempt::Connect => {
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, order.port));
            TcpStream::connect_timeout(&to, PATIENCE).map(drop)
        }
        Attempt::OpenLauncher => process::open_other(order.launcher),
        Attempt::Inherit => match handles::reaches(order.handle, &order.marker) {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::NotFound)),
        },
        Attempt::BreakAway => process::break_away(),
        Attempt::Spawn => process::spawn(),
        Attempt::Open(purpose, path) => open(*purpose, path),
        Attempt::Allocate(bytes) => allocate(*bytes),
    }
}

/// Tries one right after the other: an attack needs only one of them.
fn open(purpose: Purpose, path: &str) -> io::Result<()> {
    const READ: &[u32] = &[FILE_READ_DATA];
    const WRITE: &[u32] = &[FILE_WRITE_DATA, FILE_APPEND_DATA, FILE_WRITE_ATTRIBUTES];
    const TAKE: &[u32] = &[DELETE, WRITE_DAC, WRITE_OWNER];
    let rights: &[&[u32]] = match purpose {
        Purpose::Anything => &[READ, WRITE, TAKE],
        Purpose::Changing => &[WRITE, TAKE],
        Purpose::Moving => &[TAKE],
    };
    let mut refused = io::Error::from(io::ErrorKind::PermissionDenied);
    for right in rights.iter().copied().flatten() {
        let opened = OpenOptions::new().access_mode(*right).custom_flags(acl::FLAGS).open(path);
        match opened {
            Ok(_) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            Err(e) => refused = e,
        }
    }
    Err(refused)
}

fn allocate(bytes: usize) -> io::Result<()> {
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    memory.resize(bytes, 1);
    std::hint::black_box(&memory);
    Ok(())
}

fn is_allowed(directory: &Path) -> Result<String, StepError> {
    let path = directory.join(".mcp-allowed");
    let made = File::create_new(&path).and_then(|file| {
        drop(file);
        fs::remove_file(&path)
    });
    match made {
        Ok(()) => Ok(format!("made a file in {}", directory.display())),
        Err(e) => {
            Err((number(&e), "is granted, but the self-test cannot create a file in it".to_owned()))
        }
    }
}

fn is_diminished() -> Result<String, StepError> {
    let identity = token::identity().map_err(|e| (number(&e), String::new()))?;
    let fail = |why: String| Err((ERROR_ACCESS_DENIED, why));
    if !identity.is_container {
        return fail("the process is in no container".to_owned());
    }
    if identity.integrity > token::LOW {
        return fail(format!("integrity is {:#x}, and not low", identity.integrity));
    }
    if !identity.privileges.is_empty() {
        return fail(format!("privileges are left: {}", identity.privileges.join(", ")));
    }
    if !identity.powerful_groups.is_empty() {
        return fail(format!("groups are left: {}", identity.powerful_groups.join(", ")));
    }
    Ok("in a container, at low integrity, without privileges".to_owned())
}
