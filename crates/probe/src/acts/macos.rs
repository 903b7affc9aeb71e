//! Acts as a Mac has them: through libc, since its system calls have no stable numbers.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::acts::lifetime::live_for;
use crate::spec::{Args, Failure, Said};
use crate::sys::{self, Change, Pages, Sharing};

pub(crate) fn chmod(args: Args<'_>) -> Said {
    let mode =
        u32::from_str_radix(&args.text(1), 8).map_err(|_| Failure::usage("an octal mode"))?;
    fs::set_permissions(args.path(0), fs::Permissions::from_mode(mode))?;
    Ok(format!("{mode:o}"))
}

pub(crate) fn unix_connect(args: Args<'_>) -> Said {
    UnixStream::connect(args.path(0))?;
    Ok("connected".into())
}

pub(crate) fn kill(args: Args<'_>) -> Said {
    let pid = i32::try_from(args.number(0)?.cast_signed()).map_err(|_| Failure::usage("a pid"))?;
    let signal = i32::try_from(args.number(1)?).map_err(|_| Failure::usage("a signal"))?;
    sys::kill(pid, signal)?;
    Ok("sent".into())
}

const LIMITS: [(&str, i32); 8] = [
    ("cpu", libc::RLIMIT_CPU),
    ("fsize", libc::RLIMIT_FSIZE),
    ("data", libc::RLIMIT_DATA),
    ("stack", libc::RLIMIT_STACK),
    ("core", libc::RLIMIT_CORE),
    ("as", libc::RLIMIT_AS),
    ("nproc", libc::RLIMIT_NPROC),
    ("nofile", libc::RLIMIT_NOFILE),
];

/// `name soft hard`, one per line.
pub(crate) fn list(_: Args<'_>) -> Said {
    let mut lines = Vec::new();
    for (name, resource) in LIMITS {
        let [soft, hard] = sys::limit(resource)?.map(|value| match value {
            libc::RLIM_INFINITY => "unlimited".to_owned(),
            value => value.to_string(),
        });
        lines.push(format!("{name} {soft} {hard}"));
    }
    Ok(lines.join("\n"))
}

pub(crate) fn alloc_shared(args: Args<'_>) -> Said {
    let bytes = args.count(0)?;
    let _pages = Pages::touch(bytes, Sharing::Shared)?;
    std::thread::sleep(args.millis_or(1, 0)?);
    Ok(bytes.to_string())
}

/// Makes processes and gives the number that were alive together.
pub(crate) fn fork(args: Args<'_>) -> Said {
    brood(args.count(0)?, args.millis_or(1, 0)?, || {})
}

/// Makes processes that each touch memory: a sum no per-process limit sees.
pub(crate) fn fork_alloc(args: Args<'_>) -> Said {
    let bytes = args.count(1)?;
    brood(args.count(0)?, args.millis_or(2, 0)?, || {
        // Kept until the child ends.
        std::mem::forget(Pages::touch(bytes, Sharing::Private));
    })
}

/// The children wait for the end of a pipe, and so never outlive the probe.
fn brood(count: usize, hold: Duration, first: impl Fn()) -> Said {
    let (reader, writer) = io::pipe()?;
    let mut writer = Some(writer);
    let (mut children, mut refusal) = (Vec::new(), None);
    for _ in 0..count {
        let child = sys::fork(|| {
            drop(writer.take());
            first();
            let _ = (&reader).read(&mut [0]);
            0
        });
        match child {
            Ok(child) => children.push(child),
            Err(error) => {
                refusal = Some(error);
                break;
            }
        }
    }
    std::thread::sleep(hold);
    drop(writer);
    let ended =
        children.iter().filter(|child| matches!(sys::wait(**child, 0), Ok(Change::Exited(0))));
    let ended = ended.count().to_string();
    match refusal {
        Some(error) => Err(Failure::after(&error, ended)),
        None => Ok(ended),
    }
}

/// Double fork and a session of its own: a daemon that no wait and no process group reaches.
pub(crate) fn daemonize(args: Args<'_>) -> Said {
    let seconds = args.seconds(0)?;
    let heartbeat = args.get(1).map(PathBuf::from);
    let middle = sys::fork(|| {
        sys::new_session();
        let daemon = sys::fork(|| u8::from(live_for(seconds, heartbeat.as_deref()).is_err()));
        u8::from(daemon.is_err())
    })?;
    match sys::wait(middle, 0)? {
        Change::Exited(0) => Ok("started".into()),
        _ => Err(io::Error::from_raw_os_error(libc::EAGAIN).into()),
    }
}

pub(crate) fn ignore_term(args: Args<'_>) -> Said {
    let signals = [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT];
    for signal in signals {
        sys::ignore(signal);
    }
    let lived = live_for(args.seconds(0)?, args.get(1).map(Path::new));
    for signal in signals {
        sys::restore(signal);
    }
    lived?;
    Ok("survived".into())
}

pub(crate) fn stop_self(_: Args<'_>) -> Said {
    send_self(libc::SIGSTOP)
}

pub(crate) fn signal_self(args: Args<'_>) -> Said {
    let signal = i32::try_from(args.number(0)?).map_err(|_| Failure::usage("a signal"))?;
    // Rust's runtime has handlers of its own, for SIGSEGV among others.
    sys::restore(signal);
    send_self(signal)
}

fn send_self(signal: i32) -> Said {
    sys::kill(std::process::id().cast_signed(), signal)?;
    Ok("survived".into())
}
