//! Killed at any moment, and interrupted by others: nothing is lost.

use std::fs;
use std::time::{Duration, Instant};

use crate::place::Home;

fn large() -> String {
    let server = |n: usize| {
        format!("    \"s{n}\": {{ \"command\": \"npx\", \"args\": [\"-y\", \"p{n}\"] }}")
    };
    let servers: Vec<String> = (0..40).map(server).collect();
    format!("{{\n  \"mcpServers\": {{\n{}\n  }}\n}}\n", servers.join(",\n"))
}

/// 200 kills at moments all over a run: the file is the old one or the new one, and can be taken back.
#[test]
fn killed_200_times_nothing_is_lost() {
    let home = Home::new();
    let text = large();
    let file = home.file(".cursor/mcp.json", &text);
    let start = Instant::now();
    home.mcp(&["wire", "--yes"]).good();
    let whole = start.elapsed();
    let wired = fs::read_to_string(&file).unwrap();
    home.mcp(&["unwire"]).good();
    let (mut old, mut new) = (0, 0);
    for n in 0..200u32 {
        // Spread over a run and a little more, in an order that a repeat repeats.
        let share = f64::from(n.wrapping_mul(2_654_435_761) % 1000) / 900.0;
        let words: &[&str] = if n % 4 == 3 { &["unwire"] } else { &["wire", "--yes"] };
        let mut child = home.command(words);
        child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = child.spawn().unwrap();
        std::thread::sleep(whole.mul_f64(share));
        let _ = child.kill();
        child.wait().unwrap();
        let now = fs::read_to_string(&file).unwrap();
        match now {
            _ if now == text => old += 1,
            _ if now == wired => new += 1,
            _ => panic!("kill {n} left something else:\n{now}"),
        }
        if n % 8 == 7 {
            home.mcp(&["unwire"]).good();
            assert_eq!(fs::read_to_string(&file).unwrap(), text, "after kill {n}");
        }
    }
    println!("{old} times the old file, {new} times the new one");
    home.mcp(&["wire", "--yes"]).good();
    assert_eq!(fs::read_to_string(&file).unwrap(), wired);
    home.mcp(&["unwire"]).good();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    // The temporary file of a run that was killed is gone with the next one.
    let beside: Vec<_> =
        fs::read_dir(home.at(".cursor")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(beside, ["mcp.json"]);
}

/// Several of ours at once: one after the other, by the journal's lock.
#[test]
fn several_at_once() {
    let home = Home::new();
    let text = large();
    let file = home.file(".cursor/mcp.json", &text);
    let children: Vec<_> = (0..6)
        .map(|n| {
            let server = format!("s{n}");
            let mut command = home.command(&["wire", "--yes", "--server", &server]);
            command.stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let mut done = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        match output.status.code() {
            Some(0) => done += 1,
            // Another one was faster, and that is said.
            Some(1) => assert!(err.contains("changed the file meanwhile"), "{err}"),
            code => panic!("{code:?}: {err}"),
        }
    }
    let count = fs::read_to_string(&file).unwrap().matches("npm:p").count();
    assert_eq!(count, done);
    assert!(done >= 1);
    home.mcp(&["unwire"]).good();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

/// Half a line at the end of the journal costs that line alone.
#[test]
fn a_torn_journal() {
    let home = Home::new();
    let text = large();
    let file = home.file(".cursor/mcp.json", &text);
    home.mcp(&["wire", "--yes", "--server", "s1"]).good();
    let journal = home.at(".local/share/mcp/wire/journal.jsonl");
    let whole = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, format!("{whole}{}", &whole[..whole.len() / 2])).unwrap();
    home.mcp(&["wire", "--yes", "--server", "s2"]).good();
    home.mcp(&["unwire"]).good();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

/// A home without a single file of a client: how long that takes is printed, not judged.
#[test]
fn an_empty_home() {
    let home = Home::new();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..10 {
        let start = Instant::now();
        home.mcp(&["wire", "--yes"]).good();
        times.push(start.elapsed());
    }
    times.sort();
    println!("an empty home: {:?} (median of 10)", times[5]);
}
