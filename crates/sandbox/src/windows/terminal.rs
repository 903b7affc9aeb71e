//! A user at a console: the command gets a pseudo console of its own, and we copy between the two. Since Windows 10
//! 1809; elsewhere, and where the system takes a pseudo console and does not use it, the command has pipes.
//!
//! Stops: typing into the user's console for the shell that reads it next. Leaves open: escape sequences in
//! output reach the user's console, as with any program.

use std::io::{self, PipeWriter, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::core::request::Stdio;
use crate::windows::confinement::Confinement;
use crate::windows::helper_main::CONSOLE_MARK;
use crate::windows::own_program::{OwnProgram, nothing};
use crate::windows::self_test;
use crate::windows::stdio_copy::{DRAIN, Output};
use crate::windows::sys::pty::{self, Modes, PseudoConsole};

/// A look at how large the user's console is costs little.
const LOOK: Duration = Duration::from_millis(200);
/// How long our own program may take to look around in a console.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Terminal {
    console: Option<Arc<PseudoConsole>>,
    picture: Output,
    is_over: Arc<AtomicBool>,
    follower: Option<std::thread::JoinHandle<()>>,
    modes: Option<Modes>,
    keys: Option<PipeWriter>,
}

impl Terminal {
    /// Where all three handles are consoles, and the system has pseudo consoles that work in this confinement.
    pub fn open(stdio: &[Stdio; 3], confinement: &Confinement) -> Option<Terminal> {
        if stdio.iter().any(|kind| *kind != Stdio::Terminal)
            || works(confinement).ok() != Some(true)
        {
            return None;
        }
        Terminal::join().ok()
    }

    fn join() -> io::Result<Terminal> {
        let (console, keys, picture) = PseudoConsole::make(pty::size()?)?;
        let modes = Modes::raw()?;
        let console = Arc::new(console);
        let is_over = Arc::new(AtomicBool::new(false));
        let follower = std::thread::spawn({
            let (console, is_over) = (console.clone(), is_over.clone());
            move || follow(&console, &is_over)
        });
        Ok(Terminal {
            console: Some(console),
            picture: Output::start(1, picture),
            is_over,
            follower: Some(follower),
            modes: Some(modes),
            keys: Some(keys),
        })
    }

    pub fn console(&self) -> Option<&PseudoConsole> {
        self.console.as_deref()
    }

    /// Begins to pass on what is typed, once the command is there to read it.
    pub fn listen(&mut self) {
        if let Some(keys) = self.keys.take() {
            // A thread that waits for a key cannot be woken, so this one is not joined.
            std::thread::spawn(move || pass_on(keys));
        }
    }
}

impl Drop for Terminal {
    /// In this order: resizing stops, the console is closed while its picture is still read, the last of
    /// the picture is shown, and the user has the modes that were there before.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(follower) = self.follower.take() {
            let _ = follower.join();
        }
        drop(self.console.take());
        self.picture.finish(Instant::now() + DRAIN);
        drop(self.modes.take());
    }
}

fn follow(console: &PseudoConsole, is_over: &AtomicBool) {
    let mut last = pty::size().ok();
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
        let now = pty::size().ok();
        if let (Some(size), true) = (now, now != last) {
            let _ = console.resize(size);
            last = now;
        }
    }
}

fn pass_on(mut keys: PipeWriter) {
    /// What Rust's library takes for the end of the input, typed.
    const CONTROL_Z: &[u8] = &[0x1a];
    let mut from = io::stdin();
    let mut chunk = [0; 4096];
    loop {
        let written = match from.read(&mut chunk) {
            Ok(0) => keys.write_all(CONTROL_Z),
            Ok(count) => keys.write_all(chunk.get(..count).unwrap_or_default()),
            Err(_) => return,
        };
        if written.is_err() {
            return;
        }
    }
}

/// Whether a program in a pseudo console has that one, and not ours: tried with our own program, in the confinement of
/// the run.
fn works(confinement: &Confinement) -> io::Result<bool> {
    let (console, keys, picture) = PseudoConsole::make((80, 25))?;
    let reader = std::thread::spawn(move || io::copy(&mut { picture }, &mut io::sink()));
    let launcher = std::process::id().to_string();
    let own = OwnProgram::with(&[CONSOLE_MARK.into(), launcher.into()])?;
    let stdio = [nothing()?, nothing()?, nothing()?];
    let process = own.start(confinement, &stdio).suspended_in(&console)?.resume()?;
    let ended = process.ended(PATIENCE)?;
    if ended.is_none() {
        process.kill(1);
    }
    self_test::forget(confinement);
    drop(console);
    drop(keys);
    let _ = reader.join();
    Ok(ended == Some(0))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::windows::environment;
    use crate::windows::job::JobLimits;
    use crate::windows::sys::handles::Inheritable;
    use crate::windows::sys::job::Job;
    use crate::windows::sys::process::{Children, Start};

    /// A program in a pseudo console writes to it, reads what is typed there, and its code passes.
    #[test]
    fn a_program_lives_in_a_console_of_its_own() {
        let (console, mut keys, mut picture) = match PseudoConsole::make((80, 25)) {
            Ok(made) => made,
            Err(e) => return println!("NOT VERIFIED: pseudo console: {e}"),
        };
        let reader = std::thread::spawn(move || {
            let mut seen = Vec::new();
            let _ = picture.read_to_end(&mut seen);
            String::from_utf8_lossy(&seen).into_owned()
        });
        let root = std::env::var_os("SystemRoot").unwrap();
        let shell = std::path::Path::new(&root).join(r"System32\cmd.exe");
        let text = "set /p x= & call echo [%x%] & exit 7";
        let line = format!("cmd.exe /d /c \"{text}\"");
        let nothing = std::fs::OpenOptions::new().read(true).write(true).open("NUL").unwrap();
        let stdio = [0; 3].map(|_| Inheritable::of(&nothing).unwrap());
        let job = Job::new().unwrap();
        job.set_limits(JobLimits::default()).unwrap();
        let mut environment = environment::block(&[("SystemRoot".into(), root.clone())]);
        environment.sort();
        let start = Start {
            program: shell.as_os_str(),
            command_line: OsStr::new(&line),
            environment: &environment,
            directory: &root,
            stdio: &stdio,
            job: &job,
            token: None,
            container: None,
            desktop: None,
            children: Children::Allowed,
        };
        let process = start.suspended_in(&console).unwrap().resume().unwrap();
        keys.write_all(b"typed\r").unwrap();
        let ended = process.ended(Duration::from_secs(20)).unwrap();
        drop(console);
        let seen = reader.join().unwrap();
        assert_eq!(ended, Some(7), "{seen:?}");
        assert!(seen.contains("[typed]"), "{seen:?}");
    }
}
