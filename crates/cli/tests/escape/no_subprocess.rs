//! `--no-subprocess`: no process and no program after the first, in any spelling; threads work.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::require;
use crate::support::{Finished, Run, Scratch, allowed, blocked, has_program, probe_path, refused};

const BLOCKED: &str = "mcp: blocked a new process (subprocess is off)";

fn alone() -> Run {
    Run::new().flag("--no-subprocess")
}

fn probe() -> String {
    probe_path().to_str().unwrap().to_owned()
}

fn script(dir: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn threads_work() {
    require!("userns");
    allowed(alone().probe(&["threads", "16"]));
}

#[test]
fn processes_cannot_be_made() {
    require!("userns");
    refused(alone().probe(&["fork", "1"]), Run::new().probe(&["fork", "1"]), &["EPERM"]);
    // SIGCHLD alone, what posix_spawn passes, and bits that the kernel ignores. A raw clone or
    // vfork that works returns twice into one program: no control but fork's.
    for flags in ["0x11", "0x4111", "0x100000011", "0xffffffff00000011"] {
        let words = ["syscall", &libc::SYS_clone.to_string(), flags];
        blocked(alone().probe(&words), &["EPERM"]);
    }
    blocked(alone().probe(&["syscall", &libc::SYS_clone3.to_string(), "0", "64"]), &["ENOSYS"]);
    #[cfg(target_arch = "x86_64")]
    for number in [libc::SYS_fork, libc::SYS_vfork] {
        blocked(alone().probe(&["syscall", &number.to_string()]), &["EPERM"]);
    }
}

#[test]
fn programs_cannot_be_executed() {
    require!("userns");
    let probe = probe();
    let exec = ["exec", &probe, "cwd"];
    refused(alone().probe(&exec), Run::new().probe(&exec), &["EPERM"]);
    let memfd = ["memfd-exec", &probe, "cwd"];
    refused(alone().probe(&memfd), Run::new().probe(&memfd), &["EPERM"]);
    for loader in ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"] {
        if Path::new(loader).exists() {
            let words = ["exec", loader, "/bin/true"];
            blocked(alone().probe(&words), &["EPERM"]);
            Run::new().probe(&words).run().code_is(0);
        }
    }
}

#[test]
fn the_launching_exec_cannot_be_repeated() {
    require!("userns");
    let probe = probe();
    // The same program, again and again, also after other calls were refused.
    let again = || alone().probe(&["syscall", &libc::SYS_execve.to_string(), "0", "0", "0"]);
    blocked(again(), &["EPERM"]);
    blocked(again().probe(&["fork", "1"]).probe(&["exec", &probe, "cwd"]), &["EPERM"]);
    // Nor can anybody else listen: neither at once nor when the launcher is asked.
    let listen = ["syscall", &libc::SYS_seccomp.to_string(), "1", "8", "0"];
    blocked(Run::bare().probe(&listen), &["EFAULT"]);
    blocked(alone().probe(&listen), &["EPERM"]);
    let high = ["syscall", &libc::SYS_seccomp.to_string(), "1", "0x100000008", "0"];
    blocked(alone().probe(&high), &["EPERM"]);
}

#[test]
fn a_refusal_is_said_once() {
    require!("userns");
    let finished = alone().shell("echo before; ls").run();
    assert_ne!(finished.code, 0, "{finished}");
    assert_eq!(finished.text(), "before\n");
    assert_eq!(finished.stderr.matches(BLOCKED).count(), 1, "{finished}");
    let two = alone().probe(&["fork", "1"]).probe(&["fork", "1"]).run();
    assert_eq!(two.stderr.matches(BLOCKED).count(), 1, "{two}");
    let none = alone().shell("echo alone").run();
    none.code_is(0);
    assert_eq!(none.stderr, "");
    let quiet = alone().flag("--quiet").probe(&["fork", "1"]).run();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn the_report_says_so() {
    require!("userns");
    let scratch = Scratch::new();
    let report = |run: Run, name: &str| -> serde_json::Value {
        let file = scratch.join(name);
        run.flag("--report").arg(&file).probe(&["fork", "1"]).run();
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap()
    };
    let off = report(alone(), "off");
    assert_eq!(off["controls"]["subprocess"]["status"], "enforced", "{off:#}");
    assert_eq!(off["blocked_processes"], 1, "{off:#}");
    let on = report(Run::new(), "on");
    assert_eq!(on["controls"]["subprocess"]["status"], "not_requested", "{on:#}");
    assert!(on["blocked_processes"].is_null(), "{on:#}");
}

#[test]
fn node_runs_with_its_threads() {
    require!("userns");
    if !has_program("node") {
        return;
    }
    let program = "const { Worker } = require('worker_threads');\n\
         new Worker('1', { eval: true }).on('exit', () => {\n\
           const { error } = require('child_process').spawnSync('true');\n\
           console.log(error.code);\n\
         });";
    let finished = alone().command(&["node", "-e", program]).run();
    finished.code_is(0);
    assert_eq!(finished.text(), "EPERM\n", "{finished}");
}

#[test]
fn python_runs_with_its_threads() {
    require!("userns");
    if !has_program("python3") {
        return;
    }
    let program = "import os, threading, subprocess\n\
         t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n\
         def tried(act):\n  \
           try: act()\n  \
           except PermissionError: print('refused')\n\
         tried(os.fork)\n\
         tried(lambda: os.execv('/bin/true', ['true']))\n\
         tried(lambda: os.posix_spawn('/bin/true', ['true'], {}))\n\
         tried(lambda: subprocess.run(['true']))\n";
    let finished = alone().command(&["python3", "-c", program]).run();
    finished.code_is(0);
    assert_eq!(finished.text(), "thread\nrefused\nrefused\nrefused\nrefused\n", "{finished}");
}

#[test]
fn scripts_start_with_one_exec() {
    require!("userns");
    let scratch = Scratch::new();
    let dir = scratch.dir("scripts");
    let run = |path: &Path| -> Finished {
        alone().read(&dir).command(&[path.as_os_str(), "word".as_ref()]).run()
    };
    let shell = run(&script(&dir, "shell", "#!/bin/sh\necho $1\n"));
    assert_eq!(shell.text(), "word\n", "{shell}");
    let env = run(&script(&dir, "env", "#!/usr/bin/env sh\necho $1\n"));
    assert_eq!(env.text(), "word\n", "{env}");
    let split = run(&script(&dir, "split", "#!/usr/bin/env -S sh -eu\necho $1 $-\n"));
    assert!(split.text().starts_with("word "), "{split}");
    assert!(split.text().contains('e') && split.text().contains('u'), "{split}");
    // What env would have to do itself is said, not tried.
    let more = run(&script(&dir, "more", "#!/usr/bin/env -S -i sh\necho $1\n"));
    more.code_is(126);
    assert!(more.stderr.contains("second exec"), "{more}");
    if has_program("node") {
        let node = "#!/usr/bin/env node\nconsole.log(process.argv[2])\n";
        let node = run(&script(&dir, "node", node));
        assert_eq!(node.text(), "word\n", "{node}");
    }
}

/// The launcher answers every call that is refused; that must not keep it from anything else.
#[test]
fn refusals_without_end_do_not_stop_the_clock() {
    require!("userns");
    if !has_program("perl") {
        return;
    }
    let run = alone().flag("--timeout").arg("1s").flag("--grace").arg("200ms");
    let finished = run.command(&["perl", "-e", "while (1) { fork }"]).run();
    finished.code_is(124);
}

#[test]
fn what_cannot_start_is_an_error() {
    require!("userns");
    let scratch = Scratch::new();
    let dir = scratch.dir("scripts");
    let broken = script(&dir, "broken", "#!/no/such/interpreter\n");
    let finished = alone().read(&dir).command(&[broken]).run();
    finished.has_no_panic();
    assert_eq!(finished.code, 126, "{finished}");
}
