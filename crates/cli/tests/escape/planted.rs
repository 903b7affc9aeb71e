//! Files that a hostile package plants beside its program: they must not choose what of the host
//! is shown, and must not hold up the start.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::require;
use crate::support::{Run, Scratch};

const SECRET: &str = "a secret that nobody granted";

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The program can read the secret bare, and not inside.
fn secret_stays_closed(program: &Path, run: Run) {
    let bare = Run::bare().command(&[program]).run();
    assert!(String::from_utf8_lossy(&bare.stdout).contains(SECRET), "no control: {bare}");
    let inside = run.command(&[program]).run();
    assert!(!String::from_utf8_lossy(&inside.stdout).contains(SECRET), "{inside}");
}

#[test]
fn virtual_environment_that_leads_to_a_secret() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.file("keys/id_rsa", SECRET);
    let program = scratch.join("pkg/bin/server");
    script(&program, &format!("#!/bin/sh\ncat '{}'\n", secret.display()));
    fs::create_dir(scratch.join("pkg/home")).unwrap();
    symlink(&secret, scratch.join("pkg/home/python3")).unwrap();
    let home = scratch.join("pkg/home");
    fs::write(scratch.join("pkg/pyvenv.cfg"), format!("home = {}\n", home.display())).unwrap();
    secret_stays_closed(&program, Run::new());
}

/// A script of the user's is a program like any other, but none that the package may show.
#[test]
fn virtual_environment_that_leads_to_a_script() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.join("keys/deploy");
    script(&secret, &format!("#!/bin/sh\n# {SECRET}\n"));
    let program = scratch.join("pkg/bin/server");
    script(&program, &format!("#!/bin/sh\ncat '{}'\n", secret.display()));
    fs::create_dir(scratch.join("pkg/home")).unwrap();
    symlink(&secret, scratch.join("pkg/home/python3")).unwrap();
    let home = scratch.join("pkg/home");
    fs::write(scratch.join("pkg/pyvenv.cfg"), format!("home = {}\n", home.display())).unwrap();
    secret_stays_closed(&program, Run::new());
}

#[test]
fn stand_in_that_leads_to_a_secret() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.file("keys/id_rsa", SECRET);
    let project = scratch.dir("project");
    let stand_in = project.join(".pyenv/shims/id_rsa");
    script(&stand_in, &format!("#!/bin/sh\ncat '{}'\n", secret.display()));
    fs::create_dir_all(project.join(".pyenv/versions/1.0")).unwrap();
    symlink(scratch.join("keys"), project.join(".pyenv/versions/1.0/bin")).unwrap();
    let program = project.join("tool");
    script(&program, &format!("#!{}\n", stand_in.display()));
    secret_stays_closed(&program, Run::new().read(&project));
    secret_stays_closed(&stand_in, Run::new().read(&project));
}

#[test]
fn option_of_env_that_takes_a_secret_for_its_own() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.join("keys/run.sh");
    script(&secret, &format!("# {SECRET}\n"));
    let program = scratch.join("pkg/tool");
    let text = format!("#!/usr/bin/env -S -u {0} sh\ncat '{0}'\n", secret.display());
    script(&program, &text);
    secret_stays_closed(&program, Run::new());
}

#[test]
fn pipes_in_the_way_do_not_hold_up_the_start() {
    require!("userns");
    let scratch = Scratch::new();
    let pipe = scratch.join("pipe");
    fifo(&pipe);
    fs::set_permissions(&pipe, fs::Permissions::from_mode(0o755)).unwrap();
    let program = scratch.join("script");
    script(&program, &format!("#!{}\n", pipe.display()));
    Run::new().command(&[&program]).run().code_is(126);
    let program = scratch.join("pkg/bin/server");
    script(&program, "#!/bin/sh\nexit 4\n");
    fifo(&scratch.join("pkg/pyvenv.cfg"));
    Run::new().command(&[&program]).run().code_is(4);
}

#[test]
fn virtual_environments_that_name_each_other() {
    require!("userns");
    let scratch = Scratch::new();
    for (own, other) in [("a", "b"), ("b", "a")] {
        script(&scratch.join(own).join("bin/python3"), &format!("#!/bin/sh\n# {own}\nexit 4\n"));
        let home = scratch.join(other).join("bin");
        let config = format!("home = {}\n", home.display());
        fs::write(scratch.join(own).join("pyvenv.cfg"), config).unwrap();
    }
    Run::new().command(&[scratch.join("a/bin/python3")]).run().code_is(4);
}
