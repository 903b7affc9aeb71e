//! Acts that last, end, or become another program.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::spec::{Args, Failure, Said};

const BEAT: Duration = Duration::from_millis(20);

pub(crate) fn sleep(args: Args<'_>) -> Said {
    std::thread::sleep(args.seconds(0)?);
    Ok("slept".into())
}

/// Adds a byte to a file again and again, for ever: a file that stops growing is a dead process.
pub(crate) fn heartbeat(args: Args<'_>) -> Said {
    let mut file = OpenOptions::new().append(true).create(true).open(args.path(0))?;
    loop {
        file.write_all(b".")?;
        std::thread::sleep(args.millis_or(1, 20)?);
    }
}

/// Waits until a file holds something: what writes to it has begun.
pub(crate) fn await_file(args: Args<'_>) -> Said {
    let holds = || std::fs::metadata(args.path(0)).is_ok_and(|metadata| metadata.len() > 0);
    await_event(holds, "the file stays empty")
}

/// For as long as a slow machine may need, and not for ever.
pub(crate) fn await_event(mut has_come: impl FnMut() -> bool, otherwise: &str) -> Said {
    let end = Instant::now() + Duration::from_secs(60);
    while !has_come() {
        if Instant::now() > end {
            return Err(Failure::after(&io::Error::from(io::ErrorKind::TimedOut), otherwise));
        }
        std::thread::sleep(BEAT);
    }
    Ok("came".into())
}

/// Sleeps, and shows it is alive if there is a file to show it in.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) fn live_for(duration: Duration, heartbeat: Option<&Path>) -> io::Result<()> {
    let end = Instant::now() + duration;
    let mut file = match heartbeat {
        Some(path) => Some(OpenOptions::new().append(true).create(true).open(path)?),
        None => None,
    };
    while Instant::now() < end {
        if let Some(file) = &mut file {
            file.write_all(b".")?;
        }
        std::thread::sleep(BEAT.min(duration));
    }
    Ok(())
}

pub(crate) fn exit(args: Args<'_>) -> Said {
    let status =
        u8::try_from(args.number(0)?).map_err(|_| Failure::usage("a status is below 256"))?;
    std::process::exit(i32::from(status))
}

/// Becomes another program; where that cannot be, runs it and leaves with its status.
pub(crate) fn exec(args: Args<'_>) -> Said {
    let mut command = std::process::Command::new(args.path(0));
    command.args(args.rest(1));
    #[cfg(unix)]
    {
        Err(std::os::unix::process::CommandExt::exec(&mut command).into())
    }
    #[cfg(not(unix))]
    {
        let status = command.status()?;
        std::process::exit(status.code().unwrap_or(1))
    }
}
