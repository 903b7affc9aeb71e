//! Processes that do not want to die, and a shell's view of a job.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::acts::lifetime::live_for;
use crate::spec::{Args, Failure, Said};
use crate::sys::{self, Arg, Change, call};

use super::{c_string, command};

/// Double fork and a session of its own: a daemon that no wait and no process group reaches.
pub(crate) fn daemonize(args: Args<'_>) -> Said {
    let seconds = args.seconds(0)?;
    let heartbeat = args.get(1).map(PathBuf::from);
    let middle = sys::fork(|| {
        let _ = call(libc::SYS_setsid, &mut []);
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
    send_self(libc::SIGSTOP as u64)
}

pub(crate) fn signal_self(args: Args<'_>) -> Said {
    let signal = args.number(0)?;
    // Rust's runtime has handlers of its own, for SIGSEGV among others.
    sys::restore(signal as i32);
    send_self(signal)
}

fn send_self(signal: u64) -> Said {
    let pid = u64::from(std::process::id());
    call(libc::SYS_kill, &mut [Arg::Num(pid), Arg::Num(signal)])?;
    Ok("survived".into())
}

/// Runs a command as a shell with job control does: in a foreground process group of its own.
///
/// Appends `started PID`, `stopped SIGNAL`, `continued`, `exited STATUS` or `killed SIGNAL` to
/// the events file; a stopped job goes to the foreground again when `EVENTS.fg` appears.
pub(crate) fn job(args: Args<'_>) -> Said {
    let events = args.path(0);
    let tell = |event: String| -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(events)?;
        file.write_all(format!("{event}\n").as_bytes())
    };
    // The shell is in the background while it hands the terminal over.
    sys::ignore(libc::SIGTTOU);
    let job = sys::fork(|| {
        let own = u64::from(std::process::id());
        let _ = call(libc::SYS_setpgid, &mut [Arg::Num(0), Arg::Num(0)]);
        let _ = hand_terminal_to(own);
        sys::restore(libc::SIGTTOU);
        let error = std::process::Command::new(args.path(1)).args(args.rest(2)).exec();
        eprintln!("mcp-probe: {}: {error}", args.text(1));
        127
    })?;
    tell(format!("started {job}"))?;
    loop {
        let event = match sys::wait(job, libc::WUNTRACED | libc::WCONTINUED)? {
            Change::Exited(status) => format!("exited {status}"),
            Change::Killed(signal) => format!("killed {signal}"),
            Change::Stopped(signal) => format!("stopped {signal}"),
            Change::Continued => "continued".into(),
        };
        let (ended, stopped) = match event.split(' ').next() {
            Some("exited" | "killed") => (true, false),
            Some("stopped") => (false, true),
            _ => (false, false),
        };
        if ended || stopped {
            hand_terminal_to(call(libc::SYS_getpgid, &mut [Arg::Num(0)])?)?;
        }
        tell(event.clone())?;
        if ended {
            return Ok(event);
        }
        if stopped {
            await_foreground(events)?;
            hand_terminal_to(u64::from(job))?;
            let group = (-i64::from(job)).cast_unsigned();
            call(libc::SYS_kill, &mut [Arg::Num(group), Arg::Num(libc::SIGCONT as u64)])?;
        }
    }
}

fn await_foreground(events: &Path) -> io::Result<()> {
    let mut name = events.as_os_str().to_owned();
    name.push(".fg");
    while !Path::new(&name).exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::remove_file(name)
}

fn hand_terminal_to(group: u64) -> io::Result<u64> {
    let mut group = [group as u32].map(u32::to_ne_bytes);
    let command = command!(TIOCSPGRP);
    call(libc::SYS_ioctl, &mut [Arg::Num(0), command, Arg::Bytes(&mut group[0])])
}

/// Copies a program into an anonymous file and becomes it: no path, so no rule on paths sees it.
pub(crate) fn memfd_exec(args: Args<'_>) -> Said {
    let mut program = std::fs::read(args.path(0))?;
    let name = c_string("mcp-probe")?;
    let fd = call(libc::SYS_memfd_create, &mut [Arg::Text(&name), Arg::Num(0)])?;
    let mut rest = program.as_mut_slice();
    while !rest.is_empty() {
        let length = rest.len() as u64;
        let count = call(libc::SYS_write, &mut [Arg::Num(fd), Arg::Bytes(rest), Arg::Num(length)])?;
        rest = &mut rest[count as usize..];
    }
    let words: Vec<_> = args.rest(0).iter().map(c_string).collect::<Result<_, Failure>>()?;
    let mut argv: Vec<u64> = words.iter().map(|word| word.as_ptr() as u64).collect();
    argv.push(0);
    let empty = c_string("")?;
    call(
        libc::SYS_execveat,
        &mut [
            Arg::Num(fd),
            Arg::Text(&empty),
            Arg::Words(&mut argv),
            Arg::Words(&mut [0]),
            Arg::Num(libc::AT_EMPTY_PATH as u64),
        ],
    )?;
    Ok(String::new())
}
