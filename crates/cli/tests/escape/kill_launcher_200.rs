//! SIGKILL for the launcher at any moment leaves no process, no mount and no file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::require;
use crate::support::{Run, Scratch, eventually, soon};

const ROUNDS: u32 = 200;

/// How long a run takes here, with some more: the moments to kill the launcher in. The first run
/// fills the caches.
fn longest() -> Duration {
    let once = || {
        let begun = Instant::now();
        Run::new().command(&["true"]).run().code_is(0);
        begun.elapsed()
    };
    once();
    once().mul_f64(1.5)
}

/// Parent and start time of every process, by pid: start times tell a reused pid from the same one.
fn processes() -> BTreeMap<u32, (u32, String)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let Some((_, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let fields: Vec<_> = rest.split_whitespace().collect();
        if fields[0] != "Z" {
            found.insert(pid, (fields[1].parse().unwrap(), fields[19].to_owned()));
        }
    }
    found
}

/// The processes below `ancestor`, with their start times.
fn descendants(ancestor: u32) -> Vec<(u32, String)> {
    let all = processes();
    let mut found = Vec::new();
    let mut pending = vec![ancestor];
    while let Some(parent) = pending.pop() {
        for (pid, (above, start)) in &all {
            if *above == parent {
                pending.push(*pid);
                found.push((*pid, start.clone()));
            }
        }
    }
    found
}

fn alive(family: &[(u32, String)]) -> Vec<u32> {
    let all = processes();
    let same = |(pid, start): &&(u32, String)| all.get(pid).is_some_and(|(_, now)| now == start);
    family.iter().filter(same).map(|(pid, _)| *pid).collect()
}

/// The processes with the marker in their arguments or their environment.
fn marked(marker: &str) -> Vec<u32> {
    let holds = |pid: u32, file: &str| {
        let content = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&content).contains(marker)
    };
    processes().into_keys().filter(|pid| holds(*pid, "cmdline") || holds(*pid, "environ")).collect()
}

fn mounts() -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().map(str::to_owned).collect()
}

#[test]
fn nothing_stays_behind() {
    require!("userns");
    let scratch = Scratch::new();
    let marker = format!("mcp-escape-marker-{}", std::process::id());
    let names =
        ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_STATE_HOME"];
    for name in names {
        scratch.dir(name);
    }
    // Where records of runs are kept; the directory stays.
    let records = scratch.dir("XDG_RUNTIME_DIR/mcp");
    fs::set_permissions(records, fs::Permissions::from_mode(0o700)).unwrap();
    let (files, table) = (scratch.tree(), mounts());
    let mut seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let mut caught_inside = 0;
    let marked_run = || {
        // The audit log is to stay.
        let run = Run::new().flag("--no-log").env("MCP_TEST_MARKER", &marker);
        names.iter().fold(run, |run, name| run.env(name, scratch.join(name)))
    };
    let longest = longest().as_micros() as u64;
    for round in 0..ROUNDS {
        let live = marked_run().command(&["sh", "-c", "sleep 600 & sleep 601", &marker]).spawn();
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let delay = Duration::from_micros(seed % longest);
        std::thread::sleep(delay);
        let mut family = Vec::new();
        if round % 2 == 0 {
            // Stopped, the launcher makes no more processes while they are counted.
            live.signal(libc::SIGSTOP);
            family = descendants(live.pid());
            caught_inside += u32::from(!family.is_empty());
        }
        live.signal(libc::SIGKILL);
        live.wait();
        let gone = eventually(soon(), || alive(&family).is_empty() && marked(&marker).is_empty());
        assert!(
            gone,
            "round {round}, killed after {delay:?}: processes remain: {:?}",
            (alive(&family), marked(&marker))
        );
    }
    assert!(caught_inside > 0, "no round caught a sandbox alive: the test proves nothing");
    let new: Vec<_> = mounts().into_iter().filter(|line| !table.contains(line)).collect();
    assert!(new.is_empty(), "mounts remain: {new:#?}");
    // A killed launcher's record is taken away by the next run.
    marked_run().command(&["true"]).run().code_is(0);
    // Without a mount of its own a sandbox removes its directories as its last act.
    eventually(Duration::from_secs(5), || scratch.tree() == files);
    assert_eq!(scratch.tree(), files, "files remain");
}

#[test]
fn marker_is_found_while_the_run_lives() {
    require!("userns");
    let marker = format!("mcp-escape-control-{}", std::process::id());
    let live = Run::new().command(&["sh", "-c", "echo ready; sleep 600", &marker]).spawn();
    live.await_output("ready");
    assert!(marked(&marker).len() >= 2, "the search finds nothing, so its silence means nothing");
    assert!(!descendants(live.pid()).is_empty());
    live.signal(libc::SIGKILL);
    live.wait();
}
