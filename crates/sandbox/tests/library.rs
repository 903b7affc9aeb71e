//! The library as a program uses it. Not run by libtest: a sandbox starts the current program
//! once more as its helper, so `main` has to be ours.

#[path = "library/checks.rs"]
mod checks;
#[path = "library/lifetime.rs"]
mod lifetime;
#[path = "library/stress.rs"]
mod stress;
#[path = "library/support.rs"]
mod support;

use std::process::ExitCode;

use support::Check;

/// `--list` and names to select by are understood; other options of libtest change nothing here.
fn main() -> ExitCode {
    mcp_sandbox::helper::dispatch();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = lifetime::play_caller(&args) {
        return code;
    }
    let all: Vec<(&str, Check)> =
        [checks::ALL, lifetime::ALL, stress::ALL].into_iter().flatten().copied().collect();
    if args.iter().any(|arg| arg == "--list") {
        let is_ignored_list = args.iter().any(|arg| arg == "--ignored");
        for (name, _) in all.iter().filter(|_| !is_ignored_list) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    if let Some(reason) = support::missing() {
        println!("SKIP: userns: {reason}");
        return ExitCode::from(u8::from(support::is_required("userns")));
    }
    let exact = args.iter().any(|arg| arg == "--exact");
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| {
        let matches = |word: &&String| if exact { *word == name } else { name.contains(*word) };
        words.is_empty() || words.iter().any(matches)
    };
    let (mut passed, mut failed) = (0, 0);
    for (name, check) in all.iter().filter(|(name, _)| is_wanted(name)) {
        match check() {
            Ok(()) => {
                passed += 1;
                println!("check {name} ... ok");
            }
            Err(why) => {
                failed += 1;
                println!("check {name} ... FAILED: {why}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}
