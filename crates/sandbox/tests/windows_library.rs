//! The library on Windows, as a program uses it. Its own main, because it is its own helper.

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
fn main() {
    mcp_sandbox::helper::dispatch();
    windows::check();
}

#[cfg(windows)]
mod windows {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::io::{BufRead, BufReader, Write};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use mcp_sandbox::{Control, Ending, Error, Fallback, Running, Sandbox, runs};

    const LONG: Duration = Duration::from_secs(60);

    /// What a boundary needs and this machine has not is known from the first try, and then done without.
    fn fallback() -> Fallback {
        static KNOWN: std::sync::OnceLock<Fallback> = std::sync::OnceLock::new();
        *KNOWN.get_or_init(|| match Sandbox::new("cmd").args(["/c", "exit 0"]).status() {
            Err(error @ Error::NotEnforced { .. }) => {
                println!("NOT VERIFIED: the library behind an AppContainer: {error}");
                assert!(error.to_string().contains("AppContainer"), "{error}");
                Fallback::Warn
            }
            other => {
                assert!(other.unwrap().success());
                Fallback::Deny
            }
        })
    }

    fn sandbox(program: &str, arguments: &[&str]) -> Sandbox {
        let mut sandbox = Sandbox::new(program);
        sandbox.args(arguments).fallback(fallback());
        sandbox
    }

    fn shell(line: &str) -> Sandbox {
        sandbox("cmd", &["/c", line])
    }

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("mcp-lib-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn within(mut is_so: impl FnMut() -> bool) -> bool {
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            if is_so() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    fn beats(path: &Path) -> u64 {
        std::fs::metadata(path).map_or(0, |file| file.len())
    }

    /// Or says what has become of it instead.
    fn comes_to_life(running: &mut Running, path: &Path, beyond: u64) {
        let lives = within(|| beats(path) > beyond);
        assert!(lives, "{} beats, and then {:?}", beats(path), running.try_wait());
    }

    fn is_still(path: &Path) -> bool {
        let before = beats(path);
        std::thread::sleep(Duration::from_millis(600));
        beats(path) == before
    }

    /// This program once more, in a part of its own.
    fn play(part: &str, argument: &Path) -> Sandbox {
        let own = std::env::current_exe().unwrap();
        let mut sandbox = Sandbox::new(&own);
        sandbox.arg(part).arg(argument).fallback(fallback());
        sandbox
    }

    /// Writes to a file for as long as it lives, in a process of its own below the command.
    fn heart(scratch: &Scratch) -> (Sandbox, PathBuf) {
        let path = scratch.0.join("beat");
        let mut sandbox = play("play-parent", &path);
        sandbox.write(&scratch.0).stdin(Stdio::null()).stdout(Stdio::null());
        (sandbox, path)
    }

    fn play_part(part: &str, argument: &str) {
        match part {
            "play-parent" => {
                let own = std::env::current_exe().unwrap();
                Command::new(own).args(["play-heart", argument]).status().unwrap();
            }
            "play-heart" => loop {
                let mut file =
                    std::fs::OpenOptions::new().create(true).append(true).open(argument).unwrap();
                file.write_all(b"x").unwrap();
                std::thread::sleep(Duration::from_millis(20));
            },
            "play-cat" => {
                std::io::copy(&mut std::io::stdin(), &mut std::io::stdout()).unwrap();
            }
            "play-caller" => {
                let scratch = Scratch(argument.into());
                let _ = heart(&scratch).0.status();
            }
            _ => panic!("no such part: {part}"),
        }
    }

    fn outputs_and_codes() {
        let output = shell("echo hello& echo bad 1>&2& exit 7").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        assert_eq!(text(&output.stdout), "hello");
        assert_eq!(text(&output.stderr), "bad");
        assert_eq!(output.outcome.code(), Some(7));
        let report = output.outcome.report.unwrap();
        assert_eq!(report.exit_code, 7);
        assert!(report.controls.contains_key(&Control::Network));
        assert!(report.controls[&Control::TreeKill].is_enforced(), "{report:?}");
        assert!(shell("exit 0").status().unwrap().success());
    }

    fn much_in_and_out() {
        let mut sandbox = play("play-cat", Path::new("x"));
        let mut running = sandbox.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, stdout) = (running.stdin.take().unwrap(), running.stdout.take().unwrap());
        let writer = std::thread::spawn(move || {
            for number in 0..20_000 {
                writeln!(stdin, "line {number}").unwrap();
            }
        });
        let count = BufReader::new(stdout).lines().map_while(Result::ok).count();
        writer.join().unwrap();
        assert!(running.wait().unwrap().success());
        assert_eq!(count, 20_000);
    }

    fn timeouts_end_it() {
        let scratch = Scratch::new("timeout");
        let (mut sandbox, path) = heart(&scratch);
        let outcome = sandbox
            .timeout(Duration::from_secs(2))
            .grace(Duration::from_millis(200))
            .status()
            .unwrap();
        assert_eq!(outcome.ending, Ending::Timeout);
        assert!(beats(&path) > 0 && is_still(&path));
    }

    fn killing_ends_the_tree() {
        let scratch = Scratch::new("kill");
        let (mut sandbox, path) = heart(&scratch);
        let mut running = sandbox.spawn().unwrap();
        comes_to_life(&mut running, &path, 3);
        assert_eq!(running.wait_timeout(Duration::from_millis(50)).unwrap(), None);
        assert_eq!(running.try_wait().unwrap(), None);
        running.kill().unwrap();
        let outcome = running.wait().unwrap();
        assert_eq!(outcome.ending, Ending::Signaled(9), "{outcome:?}");
        assert!(is_still(&path), "still alive");
        running.kill().unwrap();
        // Letting go does the same.
        let (mut sandbox, path) = heart(&scratch);
        let before = beats(&path);
        let mut running = sandbox.spawn().unwrap();
        comes_to_life(&mut running, &path, before + 3);
        drop(running);
        assert!(is_still(&path), "still alive");
    }

    fn asked_to_end() {
        let scratch = Scratch::new("terminate");
        let (mut sandbox, path) = heart(&scratch);
        let mut running = sandbox.spawn().unwrap();
        comes_to_life(&mut running, &path, 3);
        running.terminate().unwrap();
        // It may refuse: then it is killed.
        match running.wait_timeout(Duration::from_secs(5)).unwrap() {
            Some(outcome) => assert!(!outcome.success(), "{outcome:?}"),
            None => {
                println!("NOT VERIFIED: Ctrl-Break: the command did not end by it");
                running.kill().unwrap();
                running.wait().unwrap();
            }
        }
        assert!(is_still(&path), "still alive");
    }

    /// Another program that uses the library is killed: the sandbox goes with it.
    fn a_caller_that_dies() {
        let scratch = Scratch::new("caller");
        let path = scratch.0.join("beat");
        let own = std::env::current_exe().unwrap();
        let mut caller = Command::new(own);
        caller.arg("play-caller").arg(&scratch.0).stdin(Stdio::null()).stdout(Stdio::null());
        let mut caller = caller.spawn().unwrap();
        assert!(within(|| beats(&path) > 3), "never lived");
        caller.kill().unwrap();
        caller.wait().unwrap();
        assert!(within(|| is_still(&path)), "still alive");
    }

    fn mistakes_are_told() {
        let error = sandbox("no-such-program", &[]).spawn().unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
        let error = shell("exit 0").read(r"C:\no\such\place").spawn().unwrap_err();
        assert!(matches!(error, Error::Grant { .. }), "{error}");
        let error = shell("exit 0").helper(r"C:\no\such.exe").spawn().unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        // A program that is no helper, and ends by itself.
        let root = std::env::var("SystemRoot").unwrap();
        let other = format!(r"{root}\System32\hostname.exe");
        if Path::new(&other).exists() {
            let mut sandbox = shell("exit 0");
            let error = sandbox.helper(other).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            assert!(matches!(error, Err(Error::Input { .. })), "{error:?}");
        }
    }

    fn secrets_and_variables() {
        let output = shell("echo [%GIVEN%] [%TOKEN%] [%CARGO_PKG_NAME%]")
            .env("GIVEN", "a b")
            .secret("TOKEN", "s3cret")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("[a b] [s3cret]"), "{text}");
        assert!(!text.contains("mcp-sandbox"), "{text}");
    }

    /// What runs is listed, measured and killed by others.
    fn runs_are_listed() {
        let scratch = Scratch::new("listed");
        let (mut sandbox, path) = heart(&scratch);
        let mut running = sandbox.spawn().unwrap();
        comes_to_life(&mut running, &path, 3);
        let mine = |launcher: u32| {
            let all = runs::list().unwrap();
            all.into_iter().find(|run| run.record.launcher == launcher)
        };
        let run = mine(running.id()).unwrap();
        assert!(run.record.command.contains(&"play-parent".to_owned()), "{:?}", run.record);
        assert!(run.stats().processes.unwrap() >= 1, "{:?}", run.stats());
        run.kill().unwrap();
        assert!(is_still(&path), "still alive");
        let outcome = running.wait().unwrap();
        assert_eq!(outcome.code(), Some(137), "{outcome:?}");
        assert!(mine(running.id()).is_none());
        run.kill().unwrap();
    }

    fn many_at_once() {
        std::thread::scope(|scope| {
            for number in 0..6 {
                scope.spawn(move || {
                    let output = shell(&format!("echo {number}")).output().unwrap();
                    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                    assert_eq!(text, number.to_string());
                });
            }
        });
    }

    pub fn check() {
        let mut args = std::env::args().skip(1);
        if let (Some(part), Some(argument)) = (args.next(), args.next())
            && part.starts_with("play-")
        {
            return play_part(&part, &argument);
        }
        let all: [(&str, fn()); 10] = [
            ("outputs_and_codes", outputs_and_codes),
            ("much_in_and_out", much_in_and_out),
            ("timeouts_end_it", timeouts_end_it),
            ("killing_ends_the_tree", killing_ends_the_tree),
            ("asked_to_end", asked_to_end),
            ("a_caller_that_dies", a_caller_that_dies),
            ("mistakes_are_told", mistakes_are_told),
            ("secrets_and_variables", secrets_and_variables),
            ("runs_are_listed", runs_are_listed),
            ("many_at_once", many_at_once),
        ];
        for (name, check) in all {
            check();
            println!("test {name} ... ok");
        }
    }
}
