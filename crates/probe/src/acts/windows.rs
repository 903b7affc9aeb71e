//! Acts as Windows has them.

use std::io;
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::acts::lifetime::live_for;
pub(crate) use crate::acts::proxied::kill as kill_proxy;
use crate::acts::resources;
use crate::spec::{Args, Failure, Said};
use crate::sys;

const DETACHED_PROCESS: u32 = 0x8;
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;

/// Our own program once more, as it was started itself.
fn own() -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    let first = std::env::args_os().nth(1).filter(|word| word == "__guest");
    command.args(first);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// Signal 0 only finds out whether it could be done.
pub(crate) fn kill(args: Args<'_>) -> Said {
    let process = u32::try_from(args.number(0)?).map_err(|_| Failure::usage("a pid"))?;
    sys::terminate(process, args.number(1)? != 0)?;
    Ok("sent".into())
}

pub(crate) fn alloc_shared(args: Args<'_>) -> Said {
    resources::alloc(args)
}

/// Processes that are alive together; then they are ended.
pub(crate) fn fork(args: Args<'_>) -> Said {
    let mut alive: Vec<Child> = Vec::new();
    let mut refusal = None;
    for _ in 0..args.count(0)? {
        match own()?.args(["sleep", "30"]).spawn() {
            Ok(child) => alive.push(child),
            Err(error) => {
                refusal = Some(error);
                break;
            }
        }
    }
    std::thread::sleep(args.millis_or(1, 0)?);
    let count = alive.len().to_string();
    for mut child in alive {
        let _ = child.kill();
        let _ = child.wait();
    }
    match refusal {
        Some(error) => Err(Failure::after(&error, count)),
        None => Ok(count),
    }
}

/// A process of its own group without a console, whose parent does not wait for it.
pub(crate) fn daemonize(args: Args<'_>) -> Said {
    let mut command = own()?;
    match args.get(1) {
        Some(heartbeat) => {
            command.arg("ignore-term").arg(args.get(0).unwrap_or_default()).arg(heartbeat)
        }
        None => command.arg("sleep").arg(args.get(0).unwrap_or_default()),
    };
    let child = command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP).spawn()?;
    Ok(child.id().to_string())
}

pub(crate) fn ignore_term(args: Args<'_>) -> Said {
    sys::ignore_breaks()?;
    live_for(args.seconds(0)?, args.get(1).map(std::path::Path::new))?;
    Ok("lived".into())
}

/// Starts a process that is to leave this one's job.
pub(crate) fn break_away(_: Args<'_>) -> Said {
    let mut child =
        own()?.args(["sleep", "30"]).creation_flags(CREATE_BREAKAWAY_FROM_JOB).spawn()?;
    let _ = child.kill();
    let _ = child.wait();
    Ok("left".into())
}

pub(crate) fn in_job(_: Args<'_>) -> Said {
    Ok(sys::is_in_job()?.to_string())
}

/// Puts this process into a job of its own making, beside those that it is in.
pub(crate) fn nested_job(_: Args<'_>) -> Said {
    sys::enter_own_job()?;
    Ok("nested".into())
}

/// Whether the standard handles are a console.
pub(crate) fn console(_: Args<'_>) -> Said {
    use std::io::IsTerminal;
    match io::stdin().is_terminal() && io::stdout().is_terminal() {
        true => Ok("console".into()),
        false => Err(Failure::from(io::Error::from(io::ErrorKind::NotFound))),
    }
}

pub(crate) fn in_container(_: Args<'_>) -> Said {
    Ok(sys::is_in_container()?.to_string())
}

pub(crate) fn read_handle(args: Args<'_>) -> Said {
    Ok(sys::read_handle(args.count(0)?)?)
}

/// Serves pipes of this name for N seconds.
pub(crate) fn pipe_serve(args: Args<'_>) -> Said {
    let pipes = sys::named_pipes(&args.text(0))?;
    std::thread::sleep(args.seconds(1)?);
    Ok(format!("{} pipes", pipes.len()))
}

/// Opens one of them, to read and to write.
pub(crate) fn pipe_open(args: Args<'_>) -> Said {
    let path = format!(r"\\.\pipe\{}", args.text(0));
    std::fs::OpenOptions::new().read(true).write(true).open(path)?;
    Ok("opened".into())
}
