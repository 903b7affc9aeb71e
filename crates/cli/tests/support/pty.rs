//! A terminal that the test types on and reads from.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use super::{Preparation, Run, eventually, patience, sys};

pub struct Pty {
    master: File,
    slave: OwnedFd,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Pty {
    pub fn new() -> Pty {
        let (master, slave) = sys::open_terminal(24, 80);
        let screen = Arc::new(Mutex::new(Vec::new()));
        let master = File::from(master);
        let (mut source, target) = (master.try_clone().unwrap(), screen.clone());
        // Ends by itself with the process: our own slave keeps the terminal alive.
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut chunk) {
                target.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
        Pty { master, slave, screen }
    }

    /// One more descriptor of the terminal, for a program's fd 0, 1 or 2.
    pub fn end(&self) -> Stdio {
        self.slave.try_clone().unwrap().into()
    }

    pub fn file(&self) -> OwnedFd {
        self.slave.try_clone().unwrap()
    }

    /// Puts the run on this terminal, as leader of its session.
    pub fn on(&self, run: Run) -> Run {
        run.stdin(self.end())
            .stdout(self.end())
            .stderr(self.end())
            .prepare(Preparation::TakeTerminal)
    }

    pub fn type_in(&self, text: &str) {
        (&self.master).write_all(text.as_bytes()).unwrap();
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        sys::resize(&self.master, rows, columns);
    }

    pub fn modes(&self) -> impl PartialEq + std::fmt::Debug {
        sys::modes(&self.slave)
    }

    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    /// All that was written to the terminal until now: what is still on its way is waited for.
    pub fn whole_screen(&self) -> String {
        const END: &str = "\u{1}the screen ends here\u{1}";
        File::from(self.file()).write_all(END.as_bytes()).unwrap();
        self.expect(END);
        self.screen().replace(END, "")
    }

    /// Waits until the screen holds the text.
    #[track_caller]
    pub fn expect(&self, text: &str) {
        let seen = eventually(patience(), || self.screen().contains(text));
        assert!(seen, "the terminal never showed {text:?}, but\n{}", self.screen());
    }
}
