//! Drives the built `mcp` with the probe program, inside and outside the sandbox.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// No run of a test takes longer, however slow the machine: what does has hung.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub fn mcp() -> PathBuf {
    std::env::var_os("MCP_BIN").map_or_else(|| env!("CARGO_BIN_EXE_mcp").into(), PathBuf::from)
}

pub fn probe() -> PathBuf {
    let beside = || mcp().with_file_name("mcp-probe.exe");
    let path = std::env::var_os("MCP_PROBE_BIN").map_or_else(beside, PathBuf::from);
    assert!(path.exists(), "{} is missing: run `cargo build -p mcp-probe`", path.display());
    path
}

/// A directory of the test's own, gone when the test is.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let name = format!("mcp-test-{}-{number}-{now:x}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        // As Windows spells it once it is resolved: what the system calls TEMP may have short names in it.
        Scratch(mcp_policy::windows_path::plain(path.canonicalize().unwrap()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What `mcp doctor` found on this machine.
pub fn doctor() -> &'static Value {
    static FOUND: OnceLock<Value> = OnceLock::new();
    FOUND.get_or_init(|| {
        let home = Scratch::new();
        let mut command = Command::new(mcp());
        own_places(&mut command, &home);
        let output = command.args(["doctor", "--json"]).stdin(Stdio::null()).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
    })
}

/// Why something does not hold here, by the word of the probes.
pub fn missing(fact: &str) -> Option<String> {
    let found = &doctor()["host"][fact];
    match found["state"].as_str() {
        Some("fails") => Some(found["why"].as_str().unwrap_or_default().to_owned()),
        Some(_) => None,
        None => panic!("no fact is named {fact}"),
    }
}

/// Whether a test makes sense here. What is in `MCP_REQUIRE` must hold.
#[track_caller]
pub fn holds(fact: &str) -> bool {
    let Some(why) = missing(fact) else { return true };
    let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == fact),
        "MCP_REQUIRE={required}, but {fact} does not hold: {why}"
    );
    println!("NOT VERIFIED: {fact}: {why}");
    false
}

/// Homes of the test's own: the user's must not change a test, nor be changed.
fn own_places(command: &mut Command, home: &Scratch) {
    for name in ["USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
        command.env(name, home.dir(name));
    }
}

pub struct Run {
    bare: bool,
    own_console: bool,
    words: Vec<OsString>,
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    input: Input,
    pub home: Scratch,
}

enum Input {
    Nothing,
    Bytes(Vec<u8>),
    Open,
}

impl Run {
    /// As it is meant to be; where this machine has no container, with what it has.
    pub fn new() -> Run {
        let run = Run::strict();
        match missing("container") {
            Some(_) => run.flag("--fallback").flag("warn"),
            None => run,
        }
    }

    /// Without a word about what may be missing.
    pub fn strict() -> Run {
        Run {
            bare: false,
            own_console: false,
            words: Vec::new(),
            command: Vec::new(),
            environment: Vec::new(),
            input: Input::Nothing,
            home: Scratch::new(),
        }
    }

    /// The same command without a sandbox: the control.
    pub fn bare() -> Run {
        Run { bare: true, ..Run::strict() }
    }

    /// The launcher gets a console that no other process has.
    pub fn own_console(mut self) -> Run {
        self.own_console = true;
        self
    }

    pub fn flag(mut self, word: impl AsRef<OsStr>) -> Run {
        self.words.push(word.as_ref().to_owned());
        self
    }

    pub fn write(self, path: &Path) -> Run {
        self.flag("--write").flag(path)
    }

    pub fn read(self, path: &Path) -> Run {
        self.flag("--read").flag(path)
    }

    pub fn env(mut self, name: &str, value: &str) -> Run {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub fn input(mut self, bytes: &str) -> Run {
        self.input = Input::Bytes(bytes.into());
        self
    }

    pub fn open_input(mut self) -> Run {
        self.input = Input::Open;
        self
    }

    /// An act of the probe; further acts follow in the same process.
    pub fn probe<S: AsRef<OsStr>>(mut self, words: &[S]) -> Run {
        if self.command.is_empty() {
            self.command.push(probe().into());
        } else {
            self.command.push("--then".into());
        }
        self.command(words)
    }

    pub fn command<S: AsRef<OsStr>>(mut self, words: &[S]) -> Run {
        self.command.extend(words.iter().map(|word| word.as_ref().to_owned()));
        self
    }

    pub fn spawn(self) -> Live {
        let mut words: Vec<OsString> = Vec::new();
        if !self.bare {
            words.extend([mcp().into(), "run".into(), "--no-log".into()]);
            words.extend(self.words);
            words.push("--".into());
        }
        words.extend(self.command);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        own_places(&mut command, &self.home);
        command.envs(self.environment);
        if self.own_console {
            const CREATE_NO_WINDOW: u32 = 0x0800_0000;
            const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
            command.creation_flags(CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP);
        }
        let piped = !matches!(self.input, Input::Nothing);
        command.stdin(if piped { Stdio::piped() } else { Stdio::null() });
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start");
        if let Input::Bytes(bytes) = self.input {
            let mut stdin = child.stdin.take().unwrap();
            std::thread::spawn(move || stdin.write_all(&bytes));
        }
        let reader = |mut from: Box<dyn Read + Send>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = from.read_to_end(&mut bytes);
                bytes
            })
        };
        let stdout = reader(Box::new(child.stdout.take().unwrap()));
        let stderr = reader(Box::new(child.stderr.take().unwrap()));
        Live { child, stdout, stderr, _home: self.home }
    }

    #[track_caller]
    pub fn run(self) -> Finished {
        self.spawn().wait()
    }

    /// Keeps the write end of the input until the run has ended.
    #[track_caller]
    pub fn run_with_open_input(self) -> Finished {
        let mut live = self.spawn();
        let held = live.child.stdin.take();
        let finished = live.wait();
        drop(held);
        finished
    }
}

pub struct Live {
    pub child: Child,
    stdout: std::thread::JoinHandle<Vec<u8>>,
    stderr: std::thread::JoinHandle<Vec<u8>>,
    _home: Scratch,
}

impl Live {
    #[track_caller]
    pub fn wait(self) -> Finished {
        self.wait_and(|| {})
    }

    /// Looks at something after the end, before the run's home is gone.
    #[track_caller]
    pub fn wait_and_give<T>(self, look: impl FnOnce() -> T) -> T {
        let mut seen = None;
        self.wait_and(|| seen = Some(look()));
        seen.unwrap()
    }

    #[track_caller]
    pub fn wait_and(mut self, look: impl FnOnce()) -> Finished {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                let _ = self.child.kill();
                panic!("does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        look();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Finished {
            code: status.code().unwrap(),
            stdout: text(self.stdout.join().unwrap()),
            stderr: text(self.stderr.join().unwrap()),
        }
    }
}

#[derive(Debug)]
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    #[track_caller]
    pub fn code_is(&self, code: i32) -> &Finished {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// What the probe said of each act.
    pub fn acts(&self) -> Vec<Value> {
        self.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[track_caller]
    pub fn last(&self) -> Value {
        self.acts().pop().unwrap_or_else(|| panic!("the probe said nothing: {self:#?}"))
    }
}

#[track_caller]
pub fn allowed(run: Run) -> String {
    let finished = run.run();
    let last = finished.last();
    assert_eq!(last["ok"], true, "should be allowed: {finished:#?}");
    last["detail"].as_str().unwrap().to_owned()
}

#[track_caller]
pub fn blocked(run: Run) {
    let finished = run.run();
    assert_eq!(finished.last()["ok"], false, "should be refused: {finished:#?}");
}

/// Asserts that the last act is refused where this machine has what refuses it. Where it has not, the act has to
/// work: so it is that, and not a mistake of the probe's, by which it is refused elsewhere.
#[track_caller]
pub fn blocked_by(fact: &str, run: Run) {
    match holds(fact) {
        true => blocked(run),
        false => drop(allowed(run)),
    }
}

/// Asserts that the last act of `attack` fails and that it works in `control`.
#[track_caller]
pub fn refused(attack: Run, control: Run) {
    allowed(control);
    blocked(attack);
}

/// Both: the last act of `attack` is refused by this, and works in `control` on every machine.
#[track_caller]
pub fn refused_by(fact: &str, attack: Run, control: Run) {
    allowed(control);
    blocked_by(fact, attack);
}

pub fn eventually(mut is: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        if is() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[track_caller]
pub fn heart_beats(path: &Path) {
    let before = size(path);
    assert!(eventually(|| size(path) > before + 2), "no heartbeat in {path:?}");
}

/// Asserts that a timeout ends the run whose heart beats in this file: one that is short, and longer where the machine was
/// too slow for the heart to begin before it.
#[track_caller]
pub fn heart_stops_in_time(path: &Path, run: impl Fn(&str) -> Run) {
    for timeout in ["700ms", "3s", "12s", "48s"] {
        run(timeout).run().code_is(124);
        if size(path) > 0 {
            break;
        }
    }
    heart_stops(path);
}

/// Asserts that a heartbeat file, which has grown, stops growing.
#[track_caller]
pub fn heart_stops(path: &Path) {
    assert!(size(path) > 0, "never lived: {path:?}");
    let stopped = eventually(|| {
        let before = size(path);
        std::thread::sleep(Duration::from_millis(300));
        size(path) == before
    });
    assert!(stopped, "still alive: {path:?}");
}
