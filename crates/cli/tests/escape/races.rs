//! A friend of the command outside changes what a grant names while the sandbox is set up.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::require;
use crate::support::{Finished, Run, Scratch};

const ROUNDS: u32 = 150;

/// A grant that is a symlink when it is looked at is one of what it leads to, and a symlink
/// inside as well. What is a directory inside must be the one that was granted.
const LOOK: &str = "if [ -L \"$1\" ]; then echo link; else cat \"$1/note\"; fi";

struct Scene {
    scratch: Scratch,
}

impl Scene {
    fn new() -> Scene {
        let scratch = Scratch::new();
        for (name, text) in [("granted", "harmless"), ("forbidden", "secret")] {
            let note = scratch.file(format!("{name}/note"), text);
            fs::set_permissions(note, fs::Permissions::from_mode(0o644)).unwrap();
        }
        Scene { scratch }
    }

    fn look(&self, flag: &str) -> Finished {
        let granted = self.scratch.join("granted");
        let run = Run::new().flag("--quiet").flag(flag).arg(&granted);
        run.command(&["sh", "-c", LOOK, "sh"]).command(&[granted]).run()
    }
}

/// Puts a symlink in the place of the granted directory and takes it away again.
fn swap(scratch: &Path, stop: &AtomicBool) {
    let [granted, aside, forbidden] =
        ["granted", "aside", "forbidden"].map(|name| scratch.join(name));
    while !stop.load(Ordering::Relaxed) {
        fs::rename(&granted, &aside).unwrap();
        symlink(&forbidden, &granted).unwrap();
        thread::yield_now();
        fs::remove_file(&granted).unwrap();
        fs::rename(&aside, &granted).unwrap();
        thread::yield_now();
    }
}

fn race(flag: &str) {
    let scene = Scene::new();
    let control = scene.look(flag);
    assert_eq!(control.text(), "harmless", "{control}");
    let stop = AtomicBool::new(false);
    let (mut seen, mut caught) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| swap(scene.scratch.path(), &stop));
        for _ in 0..ROUNDS {
            let finished = scene.look(flag);
            if finished.text().contains("secret") {
                stop.store(true, Ordering::Relaxed);
                panic!("a directory that was not granted is in the place of one that was");
            }
            seen += u32::from(finished.text() == "harmless");
            caught += u32::from(finished.code == 125 || finished.text() == "link\n");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(seen + caught > 0, "nothing was tried");
    if caught == 0 {
        println!("SKIP: control: no round met the moment of the swap");
    }
}

#[test]
fn read_grant_swapped_for_a_symlink() {
    require!("userns");
    race("--read");
}

#[test]
fn write_grant_swapped_for_a_symlink() {
    require!("userns");
    race("--write");
}
