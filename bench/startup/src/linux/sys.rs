//! The two system calls that are measured: a spawn as cheap as it gets, and one `clone3` with
//! every namespace. All `unsafe` of this program is here.
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::ptr;
use std::time::{Duration, Instant};

/// The namespaces our launcher asks for.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// NUL-terminated strings with the NULL-terminated array of pointers that exec wants.
struct CStrings {
    pointers: Vec<*mut c_char>,
    _owned: Vec<CString>,
}

impl CStrings {
    fn new(strings: impl IntoIterator<Item = OsString>) -> io::Result<Self> {
        let owned = strings
            .into_iter()
            .map(|string| CString::new(string.into_vec()))
            .collect::<Result<Vec<_>, _>>()?;
        // A CString keeps its bytes on the heap, so the pointers stay good when `owned` moves.
        let mut pointers: Vec<_> = owned.iter().map(|string| string.as_ptr().cast_mut()).collect();
        pointers.push(ptr::null_mut());
        Ok(Self { pointers, _owned: owned })
    }

    fn environment() -> io::Result<Self> {
        Self::new(std::env::vars_os().map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        }))
    }
}

/// A command line ready to be spawned many times without allocating: posix_spawn is vfork + exec
/// in glibc, so that the size of this process does not count.
pub struct Spawn {
    words: CStrings,
    environment: CStrings,
    actions: Box<libc::posix_spawn_file_actions_t>,
}

pub struct Run {
    pub took: Duration,
    /// None when a signal ended it.
    pub exit_code: Option<i32>,
}

impl Spawn {
    pub fn new(words: &[OsString]) -> io::Result<Self> {
        let words = CStrings::new(words.iter().cloned())?;
        let environment = CStrings::environment()?;
        // SAFETY: an all-zero file-actions object is valid storage; init fills it before any use.
        let mut actions = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: `actions` is live and exclusively borrowed for the call.
        check(unsafe { libc::posix_spawn_file_actions_init(&raw mut *actions) })?;
        // From here on Drop destroys the actions.
        let mut spawn = Self { words, environment, actions };
        for (fd, flags) in [(0, libc::O_RDONLY), (1, libc::O_WRONLY), (2, libc::O_WRONLY)] {
            // A terminal would make the launcher build a pty, which the others do not.
            // SAFETY: the actions are initialised; the path is a literal that libc copies.
            check(unsafe {
                libc::posix_spawn_file_actions_addopen(
                    &raw mut *spawn.actions,
                    fd,
                    c"/dev/null".as_ptr(),
                    flags,
                    0,
                )
            })?;
        }
        Ok(spawn)
    }

    /// From before the spawn until the exit has been collected.
    pub fn run(&self) -> io::Result<Run> {
        let mut pid = 0;
        let start = Instant::now();
        // SAFETY: both arrays end with NULL and their strings live in `self`; the file actions are
        // initialised; `pid` is live. The first word exists: callers pass a program.
        check(unsafe {
            libc::posix_spawn(
                &raw mut pid,
                self.words.pointers[0],
                &raw const *self.actions,
                ptr::null(),
                self.words.pointers.as_ptr(),
                self.environment.pointers.as_ptr(),
            )
        })?;
        let exit_code = wait(pid)?;
        Ok(Run { took: start.elapsed(), exit_code })
    }
}

impl Drop for Spawn {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed only here.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut *self.actions) };
    }
}

/// The floor: every namespace by one clone3, exec, nothing else. No id maps, no mounts.
pub fn run_in_namespaces(command: &OsStr) -> ExitCode {
    match spawn_in_namespaces(command).and_then(wait) {
        Ok(code) => ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)),
        Err(error) => {
            eprintln!("clone3 with all namespaces: {error}");
            ExitCode::from(125)
        }
    }
}

fn spawn_in_namespaces(command: &OsStr) -> io::Result<libc::pid_t> {
    let program = CString::new(command.as_bytes())?;
    let words = [program.as_ptr(), ptr::null()];
    let environment = [ptr::null::<c_char>()];
    // SAFETY: all fields of clone_args are plain integers, for which zero means "not asked for".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = u64::from(NAMESPACES.cast_unsigned());
    arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    // SAFETY: without CLONE_VM this is a fork: the child has its own copy of `program`, `words`
    // and `environment`, and this process has one thread. The child only calls execve and _exit.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>())
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: `program` is NUL-terminated and both arrays end with NULL, see above.
            unsafe {
                libc::execve(program.as_ptr(), words.as_ptr(), environment.as_ptr());
                libc::_exit(127)
            }
        }
        pid => libc::pid_t::try_from(pid).map_err(io::Error::other),
    }
}

fn wait(pid: libc::pid_t) -> io::Result<Option<i32>> {
    let mut status = 0;
    // SAFETY: `status` is live for the call; `pid` is a child of this process that nothing else awaits.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } == -1 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)))
}

/// The posix_spawn family returns the error instead of setting errno.
fn check(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit_code(words: &[&str]) -> Option<i32> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        Spawn::new(&words).unwrap().run().unwrap().exit_code
    }

    #[test]
    fn a_spawn_passes_arguments_and_returns_the_exit_code() {
        assert_eq!(exit_code(&["/bin/true"]), Some(0));
        assert_eq!(exit_code(&["/bin/sh", "-c", "exit 7"]), Some(7));
        assert_eq!(exit_code(&["/bin/sh", "-c", "kill -9 $$"]), None);
    }

    #[test]
    fn a_missing_program_is_an_error() {
        assert!(Spawn::new(&["/does/not/exist".into()]).unwrap().run().is_err());
    }
}
