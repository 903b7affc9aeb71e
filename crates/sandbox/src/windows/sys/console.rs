//! Console control events (Ctrl-C, Ctrl-Break, close): received by the launcher, and sent to another console.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use windows_sys::Win32::System::Console::{
    AttachConsole, CTRL_BREAK_EVENT, CTRL_C_EVENT, FreeConsole, GenerateConsoleCtrlEvent,
    SetConsoleCtrlHandler,
};

use super::check;
use super::port::Port;

/// Where events go. `None` between runs: then the system's default handler acts.
static LISTENER: Mutex<Option<Port>> = Mutex::new(None);

/// Words of [`Port::wake`].
pub const INTERRUPT: u32 = 1;
pub const CLOSE: u32 = 2;
/// The caller of the library wants the command to end.
pub const TERMINATE: u32 = 3;

/// How long the system lets us clean up when a console is closed, at most.
const LAST_WORDS: Duration = Duration::from_secs(4);

/// Tells a port about Ctrl-C while this lives.
pub struct Listening;

impl Listening {
    pub fn to(port: &Port) -> io::Result<Listening> {
        if let Ok(mut listener) = LISTENER.lock() {
            *listener = Some(port.clone());
        }
        // SAFETY: the handler is a function of this program, and stays.
        check(unsafe { SetConsoleCtrlHandler(Some(heard), 1) })?;
        Ok(Listening)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Ok(mut listener) = LISTENER.lock() {
            *listener = None;
        }
        // SAFETY: takes away what was set above.
        unsafe { SetConsoleCtrlHandler(Some(heard), 0) };
    }
}

/// Tells the run, where there is one; whether there was.
pub fn tell(word: u32) -> bool {
    let port = LISTENER.lock().ok().and_then(|listener| listener.clone());
    if let Some(port) = &port {
        port.wake(word);
    }
    port.is_some()
}

/// Called by the system, in a thread of its own.
unsafe extern "system" fn heard(event: u32) -> i32 {
    let Ok(listener) = LISTENER.lock() else { return 0 };
    let Some(port) = listener.clone() else { return 0 };
    drop(listener);
    if event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT {
        port.wake(INTERRUPT);
        return 1;
    }
    // The process ends when this returns.
    port.wake(CLOSE);
    std::thread::sleep(LAST_WORDS);
    1
}

/// Sends Ctrl-Break to the process group of a process in a console of its own. Leaves this process's console,
/// so it is for a process that does nothing else.
pub fn send_break(process: u32) -> io::Result<()> {
    // SAFETY: numbers only. Without a console of ours there is nothing to leave.
    unsafe {
        FreeConsole();
        check(AttachConsole(process))?;
        check(SetConsoleCtrlHandler(None, 1))?;
        // Where it leads no group, everybody in that console is meant, this process included.
        check(GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, process))
            .or_else(|_| check(GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, 0)))
    }
}
