//! A FIFO, a device or an endless file where a file is expected: said, and not waited for.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::index::Index;
use crate::support::{eventually, soon};
use crate::user::{Said, User, text};

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Ends by itself, with a refusal that says what is in the file's place.
#[track_caller]
fn ends(mut command: Command) -> Said {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let has_ended = eventually(soon(), || child.try_wait().unwrap().is_some());
    if !has_ended {
        child.kill().unwrap();
    }
    let said: Said = child.wait_with_output().unwrap().into();
    assert!(has_ended, "it waits: {}", said.err);
    said
}

#[track_caller]
fn says_a_pipe(command: Command, code: i32) {
    ends(command).fails(code, "is a pipe, not a regular file");
}

#[test]
fn a_pipe_for_a_file_that_people_name_is_refused() {
    let user = User::new();
    let pipe = user.path("pipe");
    fifo(&pipe);
    let secret = format!("K=file:{}", text(&pipe));
    let file = user.scratch.file("good", "");
    let good_secret = format!("K=file:{}", text(&user.scratch.file("secret", "x")));
    for (flag, value, good) in [
        ("--policy", text(&pipe), text(&file)),
        ("--env-file", text(&pipe), text(&file)),
        ("--secret", secret.as_str(), good_secret.as_str()),
    ] {
        let run = |value: &str| user.command(&["run", flag, value, "--explain", "--", "true"]);
        if flag == "--secret" {
            // Not fetched to be explained.
            says_a_pipe(user.command(&["run", flag, value, "--", "true"]), 125);
        } else {
            says_a_pipe(run(value), 2);
        }
        // The control.
        ends(run(good)).ok();
    }
    says_a_pipe(user.command(&["pull", text(&pipe)]), 125);
    ends(user.command(&["run", text(&pipe)])).fails(126, "is not a regular file");
    says_a_pipe(user.command(&["check", "--rules", text(&pipe), "--", "true"]), 2);
    // Endless, and empty as people mean it.
    let zero = user.command(&["run", "--policy", "/dev/zero", "--explain", "--", "true"]);
    ends(zero).fails(2, "is a device, not a regular file");
    ends(user.command(&["run", "--policy", "/dev/null", "--explain", "--", "true"])).ok();
    fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    ends(user.command(&["run", "--policy", text(&file), "--explain", "--", "true"]))
        .fails(2, "more than 1 MiB, too much for a policy");
}

#[test]
fn a_pipe_for_the_users_config_is_refused() {
    let user = User::new();
    let config = user.path("config/mcp/config.toml");
    let run = || user.command(&["run", "--explain", "--", "true"]);
    ends(run()).ok();
    fifo(&config);
    says_a_pipe(run(), 2);
    says_a_pipe(user.command(&["exec", "--", "true"]), 2);
}

#[test]
fn a_pipe_in_a_package_is_refused() {
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    ends(user.command(&["run", text(&source), "--explain"])).ok();
    for name in ["mcp.toml", "manifest.json"] {
        fifo(&source.join(name));
        ends(user.command(&["run", text(&source)])).fails(125, "is not a file");
        ends(user.command(&["pack", text(&source)])).fails(125, "is not a file");
        fs::remove_file(source.join(name)).unwrap();
    }
    let source = user.package("source", "1.0.0", "");
    fifo(&source.join("bin/probe"));
    assert_ne!(ends(user.command(&["run", text(&source)])).code, 0);
    ends(user.command(&["pack", text(&source)])).fails(125, "is neither a file");
}

#[test]
fn a_pipe_in_the_configuration_of_other_programs_is_refused() {
    let user = User::new();
    let docker = user.path("docker/config.json");
    fifo(&docker);
    // A registry that wants a password, so that files with passwords are looked into.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        use std::io::{BufRead, Write};
        for mut stream in listener.incoming().flatten() {
            let reader = std::io::BufReader::new(stream.try_clone().unwrap());
            reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
            let _ = stream.write_all(
                b"HTTP/1.1 401 Who\r\nwww-authenticate: Basic realm=\"x\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    let mut pull = user.command(&["pull", &format!("oci://{host}/a/b:1")]);
    pull.env("DOCKER_CONFIG", docker.parent().unwrap());
    says_a_pipe(pull, 125);
    fifo(&user.path("home/.pip/pip.conf"));
    if Command::new("python3").arg("--version").output().is_ok() {
        says_a_pipe(user.command(&["pull", "pypi:x"]), 2);
    }
    let Some(index) = Index::new(&user) else { return };
    ends(index.command(&user, &["pull", "npm:quick"])).ok();
    fifo(&user.path("home/.npmrc"));
    says_a_pipe(index.command(&user, &["pull", "npm:quick"]), 2);
}

#[test]
fn a_pipe_that_an_installation_left_is_refused() {
    crate::require!("userns");
    let user = User::new();
    let Some(index) = Index::new(&user) else { return };
    ends(index.command(&user, &["pull", "npm:quick"])).ok();
    for name in ["npm:pipe", "npm:pipe-manifest"] {
        says_a_pipe(index.command(&user, &["pull", name]), 125);
    }
}

/// What is written to a pipe is in no log, so nothing starts; and nobody who reads the log waits for it.
#[test]
fn a_pipe_for_the_log_stops_the_run() {
    crate::require!("userns");
    let user = User::new();
    let made = user.scratch.dir("made");
    let file = made.join("x");
    let words = ["run", "--write", text(&made), "--", "touch", text(&file)];
    let log = user.path("state/mcp/log.jsonl");
    for make in [fifo, |path: &Path| std::os::unix::fs::symlink("/dev/null", path).unwrap()] {
        let _ = fs::remove_file(&log);
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        make(&log);
        ends(user.command(&words)).fails(125, "is not a regular file");
        assert!(!file.exists());
        ends(user.command(&["log"]));
    }
    fs::remove_file(&log).unwrap();
    ends(user.command(&words)).ok();
    assert!(file.exists() && fs::read_to_string(&log).unwrap().contains("touch"));
}
