//! Protected places that another process removes or replaces while the command runs: the user, or another run. The kernel
//! drops the mount that protects them; they are closed again, and what was there is known by its file, not by its name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::require;
use crate::support::{Finished, Live, Run, Scratch, eventually, patience, soon};

const CONFIG: &str = "[core]\n\tbare = false\n";

fn project() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    scratch.file("project/.git/HEAD", "ref: refs/heads/main\n");
    scratch.file("project/.git/config", CONFIG);
    scratch.file("project/.git/hooks/pre-commit", "#!/bin/sh\n");
    scratch.file("project/.git/objects/x", "");
    scratch.file("project/.git/refs/x", "");
    scratch.file("project/.mcp.json", "{}");
    scratch.file("project/.vscode/tasks.json", "{}");
    let project = scratch.join("project");
    (scratch, project)
}

/// What is mounted below the project, as the command sees it.
fn mounted(project: &Path, live: &Live) -> Vec<String> {
    let seen_by = |process: u32| {
        let table = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default();
        let places = table.lines().filter_map(|line| line.split(' ').nth(4));
        let below = places.filter(|place| Path::new(place).starts_with(project));
        let mut below: Vec<_> = below.map(str::to_owned).collect();
        below.sort();
        below
    };
    // One that has just ended sees nothing.
    live.descendants().into_iter().map(seen_by).max_by_key(Vec::len).unwrap_or_default()
}

/// Says that it is there, waits for `go`, and does something.
fn waiting(project: &Path, flag: &str, act: &str) -> Live {
    let script = format!("echo up; while [ ! -e go ]; do sleep 0.02; done; {act}; echo over");
    let live = Run::new().flag(flag).write(project).cwd(project).shell(&script).spawn();
    live.await_output("up");
    live
}

/// Lets it go on once everything that was closed is closed again. The kernel takes a mount away together with the name below
/// it, so there is no moment at which this holds too early.
fn go_when_closed(project: &Path, live: Live, closed: &[String]) -> Finished {
    // A mount that was moved away with its file is one more.
    let is_closed = || {
        let now = mounted(project, &live);
        closed.iter().all(|place| now.contains(place))
    };
    assert!(eventually(patience(), is_closed), "{closed:?}\n{:?}", mounted(project, &live));
    go(project, live)
}

/// Waits until the launcher has dealt with what happened: it neither runs nor waits for a processor, and no longer
/// looks again and again, as it does for a while when there was something.
fn rest(live: &Live) {
    let launcher = format!("/proc/{}/status", live.pid());
    let mut looks: Vec<u64> = Vec::new();
    let is_quiet = || {
        let status = fs::read_to_string(&launcher).unwrap();
        let sleeps =
            |line: &str| line.strip_prefix("voluntary_ctxt_switches:\t")?.parse::<u64>().ok();
        match status.contains("State:\tS") {
            true => looks.extend(status.lines().find_map(sleeps)),
            false => looks.clear(),
        }
        looks.len() > 20 && looks[looks.len() - 1] - looks[looks.len() - 20] < 5
    };
    assert!(eventually(patience(), is_quiet), "the launcher does not come to rest");
}

fn go_when_noticed(project: &Path, live: Live) -> Finished {
    rest(&live);
    go(project, live)
}

fn go(project: &Path, live: Live) -> Finished {
    fs::write(project.join("go"), "").unwrap();
    live.await_output("over");
    live.wait()
}

/// As git and editors save: another file takes the name.
fn replace(file: &Path, text: &str) {
    let beside = file.with_extension("lock");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, file).unwrap();
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

const ATTACK: &str = "echo '[core] fsmonitor = evil' >> .git/config && echo written";

#[test]
fn a_replaced_file_is_closed_again() {
    require!("userns");
    let saved = "[core]\n\tbare = false\n[user]\n\tname = me\n";
    for times in [1, 5] {
        let (_scratch, project) = project();
        let live = waiting(&project, "--protect", ATTACK);
        let closed = mounted(&project, &live);
        (0..times).for_each(|_| replace(&project.join(".git/config"), saved));
        let finished = go_when_closed(&project, live, &closed);
        assert!(!finished.text().contains("written"), "{finished}");
        assert_eq!(text(project.join(".git/config")), saved, "{finished}");
        // It was compared, and it is not what it was.
        assert!(!finished.stderr.contains("was not changed"), "{finished}");
    }
    // The same, unprotected.
    let (_scratch, project) = project();
    let live = waiting(&project, "--no-protect", ATTACK);
    replace(&project.join(".git/config"), saved);
    let finished = go(&project, live);
    assert!(finished.text().contains("written"), "{finished}");
}

/// The command can write to settings that the user's git puts there until they are closed, and to `config.lock` before. Who wrote
/// what is not known then: settings that name other programs than at the start do not stay.
#[test]
fn replaced_settings_do_not_stay_with_a_program_that_they_did_not_name() {
    require!("userns");
    let before = format!("{CONFIG}[alias]\n\tst = status\n");
    let (_scratch, project) = project();
    let config = project.join(".git/config");
    fs::write(&config, &before).unwrap();
    let live = waiting(&project, "--protect", "true");
    let closed = mounted(&project, &live);
    let evil = format!("{before}[core]\n\tfsmonitor = evil\n");
    replace(&config, &evil);
    let finished = go_when_closed(&project, live, &closed);
    assert_eq!(text(&config), before, "{finished}");
    assert_eq!(text(project.join(".git/config.mcp-aside")), evil, "{finished}");
    assert!(finished.stderr.contains(".git/config.mcp-aside"), "{finished}");
    assert!(!project.join(".git/config.mcp-aside-1").exists(), "{finished}");
    // What the user sets otherwise stays.
    fs::remove_file(project.join("go")).unwrap();
    let live = waiting(&project, "--protect", "true");
    let closed = mounted(&project, &live);
    let named = format!("{before}[user]\n\tname = me\n");
    replace(&config, &named);
    let finished = go_when_closed(&project, live, &closed);
    assert_eq!(text(&config), named, "{finished}");
    assert!(finished.stderr.contains(".git/config was replaced"), "{finished}");
}

#[test]
fn a_replaced_directory_is_closed_again() {
    require!("userns");
    let (_scratch, project) = project();
    let attack = "echo evil > .vscode/tasks.json && echo written; \
                  echo evil > .git/hooks/post-commit && echo written; \
                  mv .git old && echo moved";
    let live = waiting(&project, "--protect", attack);
    let closed = mounted(&project, &live);
    for name in [".vscode", ".git"] {
        let away = project.join("away");
        fs::rename(project.join(name), &away).unwrap();
        fs::create_dir(project.join(name)).unwrap();
        for entry in fs::read_dir(&away).unwrap() {
            let entry = entry.unwrap();
            fs::rename(entry.path(), project.join(name).join(entry.file_name())).unwrap();
        }
        fs::remove_dir(&away).unwrap();
    }
    let finished = go_when_closed(&project, live, &closed);
    assert!(!finished.text().contains("written"), "{finished}");
    assert!(!finished.text().contains("moved"), "{finished}");
    // By whom it was replaced we cannot say.
    assert!(finished.stderr.contains("was replaced while the command ran"), "{finished}");
    assert!(!project.join(".git/hooks/post-commit").exists());
    // The names were free for a moment, so the command could have made what came: it is put aside, and nothing is lost.
    assert!(!project.join(".vscode").exists(), "{finished}");
    assert_eq!(text(project.join(".vscode.mcp-aside/tasks.json")), "{}");
    assert_eq!(text(project.join(".git/hooks.mcp-aside/pre-commit")), "#!/bin/sh\n");
    assert_eq!(text(project.join(".git/config")), CONFIG);
    let (_scratch, project) = self::project();
    let live = waiting(&project, "--no-protect", attack);
    assert!(go(&project, live).text().contains("written\nwritten\nmoved"));
}

/// Editors move the old file out of the way and write a new one: the name is free for a moment, and the mount goes
/// with the old file. The command could have made the new one, so it does not stay under that name.
#[test]
fn a_file_that_was_moved_away_and_written_anew_is_closed_again() {
    require!("userns");
    let (_scratch, project) = project();
    let live = waiting(&project, "--protect", "echo evil > .mcp.json && echo written");
    let closed = mounted(&project, &live);
    fs::rename(project.join(".mcp.json"), project.join(".mcp.json~")).unwrap();
    fs::write(project.join(".mcp.json"), "saved").unwrap();
    let finished = go_when_closed(&project, live, &closed);
    assert!(!finished.text().contains("written"), "{finished}");
    assert!(!project.join(".mcp.json").exists(), "{finished}");
    assert_eq!(text(project.join(".mcp.json.mcp-aside")), "saved", "{finished}");
    assert!(finished.stderr.contains(".mcp.json is now .mcp.json.mcp-aside"), "{finished}");
}

/// The launcher looks at everything when one thing changes. What it cannot look at is not gone.
#[test]
fn a_closed_directory_is_not_taken_for_gone() {
    require!("userns");
    let (_scratch, project) = project();
    let script = "chmod 0 .git; echo up; while [ ! -e go ]; do sleep 0.02; done; echo over";
    let live = Run::new().flag("--protect").write(&project).cwd(&project).shell(script).spawn();
    live.await_output("up");
    let closed = mounted(&project, &live);
    replace(&project.join(".mcp.json"), "saved");
    let finished = go_when_closed(&project, live, &closed);
    fs::set_permissions(project.join(".git"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(text(project.join(".git/hooks/pre-commit")), "#!/bin/sh\n", "{finished}");
    assert_eq!(text(project.join(".git/config")), CONFIG, "{finished}");
    assert!(!finished.stderr.contains("mcp-aside"), "{finished}");
}

/// What was there at the start and went is new when it comes back.
#[test]
fn a_place_that_went_is_not_left_to_the_command() {
    require!("userns");
    let plant = "mkdir -p .vscode; echo evil > .vscode/tasks.json && echo written";
    for (flag, is_left) in [("--protect", false), ("--no-protect", true)] {
        let (_scratch, project) = project();
        let live = waiting(&project, flag, plant);
        fs::remove_dir_all(project.join(".vscode")).unwrap();
        let finished = go_when_noticed(&project, live);
        assert!(finished.text().contains("written"), "{finished}");
        assert_eq!(project.join(".vscode").exists(), is_left, "{finished}");
        // It could have been the user's: nothing is lost.
        let aside = project.join(".vscode.mcp-aside/tasks.json");
        assert_eq!(aside.exists(), !is_left, "{finished}");
        assert_eq!(finished.stderr.contains(".vscode is now .vscode.mcp-aside"), !is_left);
    }
}

/// What one run planted was there when the other began, and goes with the first.
#[test]
fn two_runs_do_not_hide_each_others_plants() {
    require!("userns");
    let (_scratch, project) = project();
    let plant = "mkdir -p .zed && echo evil > .zed/settings.json";
    let first = Run::new().flag("--protect").write(&project).cwd(&project);
    let first = first
        .shell(&format!("{plant}; echo up; while [ ! -e end ]; do sleep 0.02; done; echo over"));
    let first = first.spawn();
    first.await_output("up");
    let second = waiting(&project, "--protect", plant);
    fs::write(project.join("end"), "").unwrap();
    first.await_output("over");
    first.wait();
    assert!(!project.join(".zed").exists());
    let finished = go_when_noticed(&project, second);
    assert!(!project.join(".zed").exists(), "{finished}");
    assert!(finished.stderr.contains(".zed"), "{finished}");
}

/// The second run waits for the moment in which the first one's plant is removed, and plants its own at once. It is stopped
/// then, and has friends that let it go on.
fn plants_again(flag: &str, wait: &str) -> (bool, Finished) {
    let (_scratch, project) = project();
    let run = |flag: &str, script: &str| {
        Run::new().flag(flag).write(&project).cwd(&project).shell(script).spawn()
    };
    let first = "mkdir .zed; echo evil > .zed/settings.json; echo {} > crush.json; \
                 echo up; while [ ! -e end ]; do sleep 0.02; done";
    let first = run("--protect", first);
    first.await_output("up");
    let second = format!(
        "for i in 1 2 3; do (while :; do kill -CONT -1; done) & done; echo up; {wait}; echo planted; sleep 0.2"
    );
    let second = run(flag, &second);
    second.await_output("up");
    fs::write(project.join("end"), "").unwrap();
    first.wait();
    second.await_output("planted");
    let finished = second.wait();
    let is_evil = |name: &str| fs::read_to_string(project.join(name)).is_ok_and(|t| t == "evil\n");
    (is_evil(".zed/settings.json") || is_evil("crush.json"), finished)
}

#[test]
fn a_second_run_does_not_plant_again_what_the_first_had_to_give_up() {
    require!("userns");
    for wait in [
        "until mkdir .zed 2>/dev/null; do :; done; echo evil > .zed/settings.json",
        "set -C; until echo evil 2>/dev/null > crush.json; do :; done",
    ] {
        // The first run may still find what the second made.
        let is_left = || plants_again("--no-protect", wait).0;
        assert!((0..8).any(|_| is_left()), "the attack works nowhere: {wait}");
        for _ in 0..6 {
            let (is_left, finished) = plants_again("--protect", wait);
            assert!(!is_left, "{finished}");
        }
    }
}

/// When a program outside replaces a file, it is open for a moment, and the command can rename one of its own over it.
#[test]
fn a_second_replacement_is_not_taken_for_the_users() {
    require!("userns");
    let attack = "echo evil > own; echo up; \
                  until mv -f own .mcp.json 2>/dev/null || [ -e go ]; do :; done; \
                  while [ ! -e go ]; do sleep 0.02; done; echo over";
    let run = |flag: &str, project: &Path| {
        Run::new().flag(flag).write(project).cwd(project).shell(attack).spawn()
    };
    for _ in 0..4 {
        let (_scratch, project) = project();
        let live = run("--protect", &project);
        live.await_output("up");
        let closed = mounted(&project, &live);
        replace(&project.join(".mcp.json"), "saved");
        let finished = go_when_closed(&project, live, &closed);
        let now = fs::read_to_string(project.join(".mcp.json")).unwrap_or_default();
        assert_ne!(now, "evil\n", "{finished}");
    }
    let (_scratch, project) = project();
    let live = run("--no-protect", &project);
    assert!(eventually(soon(), || text(project.join(".mcp.json")) == "evil\n"));
    go(&project, live);
}

/// Without a launcher no process closes anything, but what is new is known all the same.
#[test]
fn a_killed_launcher_leaves_no_replacement_behind() {
    require!("userns");
    let (_scratch, project) = project();
    let plant = "mkdir -p .vscode; echo evil > .vscode/tasks.json; echo x > planted; sleep 60";
    let live = waiting(&project, "--protect", plant);
    fs::remove_dir_all(project.join(".vscode")).unwrap();
    rest(&live);
    fs::write(project.join("go"), "").unwrap();
    assert!(eventually(soon(), || project.join("planted").exists()));
    live.signal(libc::SIGKILL);
    live.wait();
    assert!(eventually(soon(), || !project.join(".vscode").exists()));
}
