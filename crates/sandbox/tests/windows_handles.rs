//! Nothing leaks: a process that has launched eighty runs has as many handles as before them, but for what
//! the system keeps for itself. Its own main, because it is its own helper.

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
fn main() {
    mcp_sandbox::helper::dispatch();
    windows::check();
}

#[cfg(windows)]
mod windows {
    #![allow(clippy::unwrap_used, clippy::panic, unsafe_code)]

    use std::ffi::OsString;
    use std::fs::File;
    use std::net::TcpListener;
    use std::os::windows::io::AsRawHandle;

    use mcp_policy::{Defaults, Layer, Policy};
    use mcp_sandbox::{Ending, Error, Identity, Notices, Report, RunSpec, platform};

    const RUNS: u32 = 80;
    const THREADS: u32 = 4;
    /// Each takes its time, and would leave more than one handle.
    const CONNECTED: u32 = 12;
    /// What was opened on first use and stays.
    const SLACK: u32 = 8;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetCurrentProcess() -> *mut core::ffi::c_void;
        fn GetProcessHandleCount(process: *mut core::ffi::c_void, count: *mut u32) -> i32;
    }

    /// As the system counts them; where it does not (Wine says 0), by the number that the next one gets:
    /// numbers of closed handles are given out again.
    fn handles() -> u32 {
        let mut count = 0;
        // SAFETY: the pseudo handle of this process is always valid, the count is a live local.
        assert_ne!(unsafe { GetProcessHandleCount(GetCurrentProcess(), &raw mut count) }, 0);
        if count > 0 {
            return count;
        }
        let next = File::open("NUL").unwrap();
        next.as_raw_handle() as usize as u32 / 4
    }

    /// The control: handles that stay open are noticed.
    fn leaks_are_noticed() {
        let before = handles();
        let leaked: Vec<File> = (0..RUNS).map(|_| File::open("NUL").unwrap()).collect();
        assert!(handles() >= before + RUNS - SLACK, "{before} {}", handles());
        drop(leaked);
        assert!(handles() <= before + SLACK, "{before} {}", handles());
    }

    fn spec(policy: Policy, command: Vec<OsString>) -> RunSpec {
        let (cwd, home) = (None, None);
        RunSpec { policy, command, cwd, home, programs: Vec::new(), identity: Identity::None }
    }

    fn start(policy: Policy, command: Vec<OsString>) -> Result<Report, Error> {
        let request = platform::resolve(spec(policy, command)).unwrap();
        let mut facts = platform::assume_host().unwrap();
        let reservation = platform::reserve(&request, &mut facts);
        let plan = mcp_sandbox::platform::plan(&request, &facts);
        platform::run(&plan, &request, reservation, Notices::Silent, None)
    }

    fn start_under(policy: Policy, code: &str) -> Result<Report, Error> {
        start(policy, ["cmd", "/c", "exit", code].map(Into::into).to_vec())
    }

    fn run(code: &str) {
        let report = start_under(Policy::merge(&[], Defaults::run()).unwrap(), code).unwrap();
        assert_eq!(report.ending, Ending::Exited(code.parse().unwrap()));
    }

    /// With a relay in each direction. A port that was free may be somebody's by the time it is used.
    fn run_connected(code: &str) {
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut flags = Layer::command_line(".", None);
            flags.allow_net("127.0.0.1:9".parse().unwrap()).listen(port);
            let policy = Policy::merge(&[flags.build().unwrap()], Defaults::run()).unwrap();
            match start_under(policy, code) {
                Err(e) if e.to_string().contains("cannot listen on") => {}
                other => {
                    assert_eq!(other.unwrap().ending, Ending::Exited(code.parse().unwrap()));
                    return;
                }
            }
        }
        panic!("ten free ports were taken before the run could listen on them");
    }

    /// A start that fails half-way must not leave anything open either.
    fn fail() {
        let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
        let name = format!("mcp-broken-{}-{thread}.exe", std::process::id());
        let broken = std::env::temp_dir().join(name);
        std::fs::write(&broken, "no program").unwrap();
        let policy = Policy::merge(&[], Defaults::run()).unwrap();
        assert!(start(policy, vec![broken.clone().into()]).is_err());
        std::fs::remove_file(broken).unwrap();
    }

    pub fn check() {
        for _ in 0..3 {
            run("3");
            run_connected("4");
            fail();
        }
        leaks_are_noticed();
        let before = handles();
        // Side by side: most of a start is waiting.
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for number in 0..RUNS / THREADS {
                        run("3");
                        if number % 10 == 0 {
                            fail();
                        }
                    }
                });
            }
        });
        for _ in 0..CONNECTED {
            run_connected("4");
        }
        let after = handles();
        println!("handles before {before}, after {RUNS} runs {after}");
        assert!(after <= before + SLACK, "{before} handles became {after} over {RUNS} runs");
    }
}
