//! Files that a hostile package plants beside its program: they must not choose what of the host
//! is shown, and must not hold up the start.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::require;
use crate::support::{Run, Scratch};

const SECRET: &str = "a secret that was not granted";

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

/// A project that a command may write, with a secret beside it that it may not read.
struct Project {
    scratch: Scratch,
    root: PathBuf,
    secret: PathBuf,
}

impl Project {
    fn new() -> Project {
        let scratch = Scratch::new();
        let secret = scratch.join("keys/deploy");
        script(&secret, &format!("#!/bin/sh\n# {SECRET}\n"));
        let root = scratch.open_dir("project");
        Project { root, secret, scratch }
    }

    fn reads(&self) -> String {
        format!("cat '{}' 2>&1; true", self.secret.display())
    }

    /// The secret stays closed, a line says what was not shown, and the same is shown where it is granted.
    #[track_caller]
    fn stays_closed(&self, run: impl Fn() -> Run) {
        let inside = run().run();
        assert!(!inside.text().contains(SECRET), "{inside}");
        assert!(inside.stderr.contains("which the command may write: not shown"), "{inside}");
        inside.code_is(0);
        let granted = run().read(self.scratch.join("keys")).run();
        assert!(granted.text().contains(SECRET), "no control: {granted}");
        assert!(!granted.stderr.contains("not shown"), "{granted}");
    }

    /// With a directory of the project's in front on PATH.
    fn exec(&self, command: &str) -> Run {
        let path = format!("{}:/usr/bin:/bin", self.root.join(".venv/bin").display());
        Run::exec(&self.root).env("PATH", path).command(&[command])
    }
}

/// In a PATH directory inside the project: the name in the text had any executable file shown.
#[test]
fn a_link_in_a_path_directory_of_the_project() {
    require!("userns");
    let project = Project::new();
    fs::create_dir_all(project.root.join(".venv/bin")).unwrap();
    symlink(&project.secret, project.root.join(".venv/bin/zz")).unwrap();
    let command = format!("{} # zz", project.reads());
    project.stays_closed(|| project.exec(&command));
    // A name of the system is found further down PATH, by the launcher and by the shell.
    symlink(&project.secret, project.root.join(".venv/bin/head")).unwrap();
    project.exec("head -c 3 /usr/bin/head | wc -c").run().code_is(0);
}

#[test]
fn links_and_relative_entries_of_path() {
    require!("userns");
    let project = Project::new();
    symlink(&project.secret, project.root.join("zz")).unwrap();
    symlink(project.secret.parent().unwrap(), project.root.join("bin")).unwrap();
    for (path, name) in
        [(".:/usr/bin:/bin", "zz"), (":/usr/bin:/bin", "zz"), ("bin:/usr/bin:/bin", "deploy")]
    {
        let command = format!("{} # {name}", project.reads());
        project.stays_closed(|| Run::exec(&project.root).env("PATH", path).command(&[&command]));
    }
}

#[test]
fn certificates_that_were_replaced_by_a_link() {
    require!("userns");
    let project = Project::new();
    let bundle = project.root.join("ca.pem");
    symlink(&project.secret, &bundle).unwrap();
    for name in [
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ] {
        let run = || Run::new().write(&project.root).env(name, &bundle).shell(&project.reads());
        project.stays_closed(run);
        let exec = || Run::exec(&project.root).env(name, &bundle).command(&[project.reads()]);
        project.stays_closed(exec);
    }
    // Positive control: a variable that names a file by a way of its own shows it.
    let run = Run::new().write(&project.root).env("SSL_CERT_FILE", &project.secret);
    let shown = run.shell(&project.reads()).run();
    assert!(shown.text().contains(SECRET), "{shown}");
}

#[test]
fn interpreters_that_a_writable_file_names() {
    require!("userns");
    let project = Project::new();
    // It looks like an installation, and would be shown with all that is in it.
    let prefix = project.scratch.dir("keys");
    fs::create_dir_all(prefix.join("lib/python3.12")).unwrap();
    let python = prefix.join("bin/python3");
    fs::create_dir_all(prefix.join("bin")).unwrap();
    fs::copy("/bin/true", &python).unwrap();
    let venv = project.root.join(".venv");
    fs::create_dir_all(venv.join("bin")).unwrap();
    let home = format!("home = {}\n", prefix.join("bin").display());
    let command = format!("{} # zz", project.reads());

    script(&venv.join("bin/zz"), &format!("#!{}\n", python.display()));
    project.stays_closed(|| project.exec(&command));
    script(&venv.join("bin/zz"), "#!/bin/sh\n");
    fs::write(venv.join("pyvenv.cfg"), &home).unwrap();
    project.stays_closed(|| project.exec(&command));
    fs::remove_file(venv.join("bin/zz")).unwrap();
    fs::remove_file(venv.join("pyvenv.cfg")).unwrap();
    symlink(&python, venv.join("bin/zz")).unwrap();
    project.stays_closed(|| project.exec(&command));
}

#[test]
fn the_program_itself_does_not_lead_out() {
    require!("userns");
    let project = Project::new();
    let tool = project.root.join("tool");
    symlink(&project.secret, &tool).unwrap();
    let run = || Run::new().write(&project.root);
    let refused = run().command(&[&tool]).run();
    refused.code_is(126);
    assert!(refused.stderr.contains("which the command may write"), "{refused}");
    run().read(&project.secret).command(&[&tool]).run().code_is(0);
    Run::new().command(&[&tool]).run().code_is(0);
}

#[test]
fn grants_secrets_and_variables_do_not_lead_out() {
    require!("userns");
    let project = Project::new();
    let link = project.root.join("link");
    symlink(&project.secret, &link).unwrap();
    let run = || Run::new().write(&project.root);
    let refused = |run: Run| {
        let refused = run.shell("env; id").run();
        refused.is_clear_error();
        assert!(
            refused.stderr.contains("which the command may write")
                || refused.stderr.contains("that the command may write"),
            "{refused}"
        );
        assert!(!refused.text().contains(SECRET), "{refused}");
    };
    refused(run().read(&link));
    refused(run().write(&link));
    let secret = |path: &Path| format!("S=file:{}", path.display());
    refused(run().flag("--secret").arg(secret(&link)));
    run().flag("--secret").arg(secret(&project.secret)).shell("true").run().code_is(0);
    // An environment file: a link to another one, or one that names a file to be shown.
    let settings = project.scratch.file("keys/env", "A=canary\n");
    let env = project.root.join("env");
    symlink(&settings, &env).unwrap();
    refused(run().flag("--env-file").arg(&env));
    let given = run().flag("--env-file").arg(&settings).shell("echo $A").run();
    assert_eq!(given.text(), "canary\n");
    fs::remove_file(&env).unwrap();
    fs::write(&env, format!("SSL_CERT_FILE={}\n", project.secret.display())).unwrap();
    refused(run().flag("--env-file").arg(&env));
    fs::write(&env, "A=canary\n").unwrap();
    assert_eq!(run().flag("--env-file").arg(&env).shell("echo $A").run().text(), "canary\n");
    // A socket of the host's.
    let socket = project.scratch.join("keys/socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let link = project.root.join("socket");
    symlink(&socket, &link).unwrap();
    refused(run().flag("--allow-unix").arg(&link));
    run().flag("--allow-unix").arg(&socket).shell("true").run().code_is(0);
}
