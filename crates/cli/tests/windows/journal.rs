//! What a run changes is taken back, by itself or by the next one.

use std::os::windows::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::support::{Run, Scratch, heart_beats, mcp};

fn journals(run: &Run) -> PathBuf {
    run.home.dir(r"LOCALAPPDATA\mcp\runs")
}

/// A name such as a run's own directory has.
const PRIVATE: &str = "mcp-0123abcd";

/// In the words of a launcher that was killed.
fn scratch_line(scratch: &Scratch) -> String {
    let at = scratch.join(PRIVATE);
    std::fs::create_dir_all(at.join("tmp")).unwrap();
    format!("{}\n", serde_json::json!({ "made": "scratch", "at": at }))
}

#[test]
fn what_a_killed_launcher_left_is_taken_back() {
    let scratch = Scratch::new();
    let run = Run::new().probe(&["exit", "0"]);
    let journal = journals(&run).join("mcp-00000000.journal");
    std::fs::write(&journal, scratch_line(&scratch) + "half a li").unwrap();
    let live = run.spawn();
    // The run's home is removed with it, so it is looked at from its own place.
    live.wait_and(|| {
        assert!(!scratch.join(PRIVATE).exists());
        assert!(!journal.exists());
    })
    .code_is(0);
}

#[test]
fn a_journal_cannot_have_other_directories_removed() {
    let scratch = Scratch::new();
    let precious = scratch.dir("precious");
    let run = Run::new().probe(&["exit", "0"]);
    let line = format!("{}\n", serde_json::json!({ "made": "scratch", "at": precious }));
    std::fs::write(journals(&run).join("mcp-00000000.journal"), line).unwrap();
    run.run().code_is(0);
    assert!(precious.exists());
}

#[test]
fn what_belongs_to_a_living_launcher_is_left_alone() {
    let scratch = Scratch::new();
    let run = Run::new().probe(&["exit", "0"]);
    let journal = journals(&run).join("mcp-00000000.journal");
    std::fs::write(&journal, scratch_line(&scratch)).unwrap();
    let held = std::fs::OpenOptions::new().read(true).share_mode(0).open(&journal).unwrap();
    run.spawn()
        .wait_and(|| {
            assert!(scratch.join(PRIVATE).exists());
            assert!(journal.exists());
        })
        .code_is(0);
    drop(held);
}

/// The private directory, too, and the journal itself.
#[test]
fn nothing_is_left_of_an_ordinary_run() {
    let run = Run::new().probe(&["getenv", "TEMP"]);
    let journals = journals(&run);
    let finished = run.spawn().wait_and(|| {
        assert_eq!(std::fs::read_dir(&journals).unwrap().count(), 0);
    });
    let last = finished.last();
    let temporary = last["detail"].as_str().unwrap();
    assert!(temporary.ends_with(r"\tmp"), "{finished:#?}");
    assert!(!std::path::Path::new(temporary).exists(), "{temporary}");
}

#[test]
fn a_killed_launchers_directory_goes_with_the_next_run() {
    let scratch = Scratch::new();
    let heart = scratch.dir("grant").join("beat");
    let text = heart.to_str().unwrap();
    let run = Run::new().write(&scratch.join("grant")).probe(&["loop-heartbeat", text, "20"]);
    let first_home = run.home.path().to_owned();
    let mut live = run.spawn();
    heart_beats(&heart);
    live.child.kill().unwrap();
    let journals = first_home.join(r"LOCALAPPDATA\mcp\runs");
    let line = live.wait_and_give(|| {
        let journal = std::fs::read_dir(&journals).unwrap().next().unwrap().unwrap().path();
        std::fs::read_to_string(journal).unwrap()
    });
    let made: serde_json::Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    let left = PathBuf::from(made["at"].as_str().unwrap());
    assert!(left.exists(), "the control: a killed launcher cleans nothing up");
    let next = Run::new().probe(&["exit", "0"]);
    let journal = self::journals(&next).join("mcp-killed.journal");
    std::fs::write(&journal, line).unwrap();
    next.spawn().wait_and(|| assert!(!left.exists())).code_is(0);
}

/// What a command may have written there names no directory of ours, and what a running sandbox holds open is left.
#[test]
fn records_of_entries_that_stay_are_removed_by_the_doctor() {
    let scratch = Scratch::new();
    let records = scratch.dir(r"mcp\entries");
    let record = records.join("x.entries");
    let line = serde_json::json!({ "made": "entry", "path": scratch.path(), "sid": "S-1-1-0" });
    std::fs::write(&record, format!("{line}\n")).unwrap();
    let clean = || {
        let mut command = std::process::Command::new(mcp());
        command.args(["doctor", "--clean", "--json"]).env("LOCALAPPDATA", scratch.path());
        let output = command.output().unwrap();
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), told["directories"].clone(), told["in_use"].clone())
    };
    const SHARED: u32 = 3;
    let held = std::fs::OpenOptions::new().read(true).share_mode(SHARED).open(&record).unwrap();
    assert_eq!(clean(), (Some(1), 0.into(), 1.into()));
    assert!(record.exists());
    drop(held);
    assert_eq!(clean(), (Some(0), 1.into(), 0.into()));
    assert!(!record.exists() && scratch.path().exists());
}
