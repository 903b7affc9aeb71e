//! The life of the syscall proxy: it becomes the user, says so, and answers calls until the launcher is gone.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{self, DumpableBehavior, Signal};

use super::calls::Parser;
use super::memory::CallerMemory;
use super::places::GrantedPlaces;
use super::signals::SignalCalls;
use super::{FromProxy, ProxySettings, ToProxy, errno, files};
use crate::linux::channel::{Channel, Seen};
use crate::linux::privileges::drop_privileges;
use crate::linux::sys::{self, Notification, Verdict};

/// The only descriptor it keeps, besides 0 to 2, which lead nowhere.
const CHANNEL: i32 = 3;

/// Never returns: the memory of this process is a copy of the launcher's, and nothing of the launcher must run in it.
pub fn live(channel: &Channel, settings: ProxySettings) -> ! {
    let channel = match prepare(channel, &settings) {
        Ok((own, seen)) => match own.send(&FromProxy::Ready(seen)) {
            Ok(()) => own,
            Err(_) => sys::exit_now(125),
        },
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            let _ = channel.send(&FromProxy::Failed(number));
            sys::exit_now(125)
        }
    };
    // However it ends: no process is left that could ask.
    let _ = serve(&channel, settings);
    sys::exit_now(0)
}

/// Gives the channel at the number where it stands now, and what this process is, by the kernel's word.
fn prepare(channel: &Channel, settings: &ProxySettings) -> io::Result<(Channel, String)> {
    // Signals to the launcher's group are not for it.
    process::setsid()?;
    process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    process::chdir("/")?;
    sys::scrub_start(c"mcp-syscalls");
    if let Some(ids) = settings.user {
        sys::become_user(ids.uid, ids.gid, sys::Groups::Drop)?;
        let (uid, gid) = (process::getuid().as_raw(), process::getgid().as_raw());
        if (uid, gid) != (ids.uid, ids.gid) || !process::getgroups()?.is_empty() {
            return Err(errno(libc::EPERM));
        }
    }
    if process::geteuid() != process::getuid() || process::getegid() != process::getgid() {
        return Err(errno(libc::EPERM));
    }
    let (Seen::Confirmed(privileges) | Seen::Less(privileges)) = drop_privileges()?;
    // Both were reset when the ids changed. What the launcher has in memory is in here too.
    process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let own = keep_only(channel)?;
    let mut fds = [PollFd::new(&own, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if fds[0].revents().contains(PollFlags::HUP) {
        return Err(errno(libc::EPIPE));
    }
    let uid = process::getuid().as_raw();
    Ok((own, format!("uid {uid}, {privileges}, not dumpable")))
}

fn keep_only(channel: &Channel) -> io::Result<Channel> {
    // Out of the way first: it may stand where it goes.
    let high = fcntl_dupfd_cloexec(channel, 16)?;
    sys::let_go_below(CHANNEL)?;
    sys::place_descriptor(high.as_fd(), CHANNEL)?;
    sys::close_on_exec(CHANNEL)?;
    let own = Channel::from_fd(sys::own(CHANNEL));
    // Closed below, by its number.
    std::mem::forget(high);
    sys::close_from(CHANNEL as u32 + 1)?;
    Ok(own)
}

/// What it needs to answer.
struct CallServer {
    settings: ProxySettings,
    listener: OwnedFd,
    places: GrantedPlaces,
    signals: SignalCalls,
}

fn serve(channel: &Channel, settings: ProxySettings) -> io::Result<()> {
    let Some((ToProxy::Begin { top }, Some(listener))) = channel.receive()? else {
        return Ok(());
    };
    // The directories of the run are there by now.
    let places = GrantedPlaces::hold(&settings.rules);
    let signals = SignalCalls { arch: settings.arch, top };
    let server = CallServer { settings, listener, places, signals };
    while let Some((ToProxy::Answer(notification), memory)) = channel.receive()? {
        let verdict = server.verdict(&notification, &CallerMemory::from_descriptor(memory));
        // A caller that is gone needs no answer.
        let _ = sys::answer(server.listener.as_fd(), notification, verdict);
    }
    Ok(())
}

impl CallServer {
    fn verdict(&self, notification: &Notification, memory: &CallerMemory) -> Verdict {
        let verdict = match self.signals.answer(notification) {
            Some(verdict) => verdict,
            None => self.file(notification, memory).map(Verdict::Done),
        };
        verdict.unwrap_or_else(|e| Verdict::Errno(e.raw_os_error().unwrap_or(libc::EPERM)))
    }

    fn file(&self, notification: &Notification, memory: &CallerMemory) -> io::Result<i64> {
        let parser = Parser { arch: self.settings.arch, notification, memory };
        let (named, act) = parser.parse().unwrap_or_else(|| Err(errno(libc::EPERM)))?;
        let file = files::open(notification.thread, &named)?;
        // Everything above was read of the thread that asks and not of a later one.
        if !sys::still_waits(self.listener.as_fd(), *notification) {
            return Err(errno(libc::ENOENT));
        }
        match self.places.contain(&file, act.reach())? {
            true => files::perform(&file, &act, memory, self.settings.largest_file),
            false => Err(act.refusal()),
        }
    }
}
