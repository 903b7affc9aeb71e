//! Pid 1 of the sandbox: reaps, passes signals on, and takes everything with it when it goes.
//!
//! The kernel kills every process of a pid namespace when its init ends, however it ends, so
//! the end of the command, of the launcher or of init itself is the end of the whole tree. Without
//! a pid namespace init is the supervisor that all orphans come to, and ends them itself.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::linux::apply::InitContext;
use crate::linux::channel::{CommandEnd, LastWords, ToInit, ToLauncher};
use crate::linux::leftovers::{self, Leftovers};
use crate::linux::process_tree;
use crate::linux::sys::{self, Change};

/// As the launcher does.
const SETTLED_AFTER: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Runs until the command has ended or the launcher is gone.
pub fn reap(mut sandbox: InitContext<'_>, command: i32) -> ! {
    // The command's own ends must be the only ones, or its readers never see the end of file.
    sandbox.let_go();
    let (mut orders, mut stay) = (SocketOrders::Open, Stay::Brief);
    loop {
        if serve(&mut sandbox, command, &mut orders, &mut stay).is_err() {
            abandoned(&sandbox);
        }
    }
}

/// What of the program is kept in memory: a command may be over sooner than its pages come back.
#[derive(PartialEq)]
enum Stay {
    Brief,
    /// Without what waiting does not need.
    Long,
}

/// Whether the launcher may still ask for sockets.
#[derive(PartialEq)]
enum SocketOrders {
    Open,
    Closed,
}

fn serve(
    sandbox: &mut InitContext<'_>,
    command: i32,
    orders: &mut SocketOrders,
    stay: &mut Stay,
) -> io::Result<()> {
    collect(sandbox, command)?;
    let mut fds = [
        PollFd::new(&sandbox.channel, PollFlags::IN),
        PollFd::new(&sandbox.signals, PollFlags::IN),
        PollFd::new(sandbox.socket_factory(), PollFlags::IN),
    ];
    let watched = if *orders == SocketOrders::Open { 3 } else { 2 };
    let patience = (*stay == Stay::Brief).then_some(&SETTLED_AFTER);
    match poll(&mut fds[..watched], patience) {
        Ok(0) => {
            *stay = Stay::Long;
            sys::forget_code();
        }
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(e) => return Err(e.into()),
    }
    let (message, child) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
    // A launcher that can take no more sockets has its reasons; it is no end of the run.
    if !fds[2].revents().is_empty() && !sandbox.socket_factory().serve().unwrap_or(false) {
        *orders = SocketOrders::Closed;
    }
    if child {
        // Which child is for wait to say; the number of signals means nothing.
        while sandbox.signals.next()?.is_some() {}
    }
    if message {
        match sandbox.channel.receive::<ToInit>()? {
            None => abandoned(sandbox),
            Some((ToInit::Freeze, _)) => {
                sandbox.is_frozen = true;
                let _ = sys::signal_everyone(libc::SIGSTOP);
                sandbox.channel.send(&ToLauncher::Frozen)?;
            }
            Some((ToInit::Thaw, _)) => {
                // The launcher need not learn that the command stopped.
                collect(sandbox, command)?;
                sandbox.is_frozen = false;
                let _ = sys::signal_everyone(libc::SIGCONT);
            }
            Some((order, _)) => obey(sandbox, order, command),
        }
    }
    Ok(())
}

fn collect(sandbox: &InitContext<'_>, command: i32) -> io::Result<()> {
    loop {
        let waited = match sys::wait_any() {
            Ok(Some(waited)) => waited,
            Ok(None) => return Ok(()),
            Err(e) if e.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
            Err(e) => return Err(e),
        };
        if waited.pid != command {
            continue;
        }
        if let Change::Stopped(_) = waited.change
            && !sandbox.is_frozen
        {
            sandbox.channel.send(&ToLauncher::Stopped)?;
        }
        if let Some(ended) = CommandEnd::of(waited.change) {
            match sandbox.has_pid_namespace() {
                true => end_the_rest(),
                false => process_tree::end_all(None)?,
            }
            let left = match sandbox.has_own_root() {
                true => leftovers::look(sandbox.request),
                false => Leftovers::default(),
            };
            let last = LastWords { ended, left, used: sys::ProcessUsage::so_far() };
            sandbox.channel.send(&ToLauncher::Over(last))?;
            sys::exit_now(0);
        }
    }
}

/// The kernel would end the rest with us, but not count what it used. Where we have no child there is no other process of
/// the run, and the kernel need not go through all processes of the machine for the signal.
fn end_the_rest() {
    let rest = loop {
        match sys::wait_any() {
            Ok(Some(_)) => {}
            rest => break rest,
        }
    };
    if rest.is_ok() {
        let _ = sys::signal_everyone(libc::SIGKILL);
        while sys::wait_for(-1).is_ok() {}
    }
}

/// The launcher is gone, and all goes with it.
fn abandoned(sandbox: &InitContext<'_>) -> ! {
    if !sandbox.has_pid_namespace() {
        let _ = process_tree::end_all(None);
        sandbox.clear_away();
    }
    sys::exit_now(125)
}

/// Signals to processes that have just ended are no error.
fn obey(sandbox: &InitContext<'_>, order: ToInit, command: i32) {
    let _ = match order {
        ToInit::Mapped | ToInit::Checked | ToInit::Freeze | ToInit::Thaw => Ok(()),
        ToInit::Signal(signal) => sys::send_signal(command, signal),
        ToInit::SignalGroup(signal) => sys::send_signal(-command, signal),
        ToInit::SignalAll(signal) if sandbox.has_pid_namespace() => sys::signal_everyone(signal),
        ToInit::SignalAll(signal) => {
            process_tree::signal_all(std::process::id() as i32, signal);
            Ok(())
        }
    };
}
