//! System calls that the filter refuses, in every spelling, and what must work all the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::require;
use crate::support::{Run, Scratch, allowed, blocked, has_program, refused};

/// A call by number, with these arguments.
fn call(number: i64, arguments: &[&str]) -> Vec<String> {
    let words = ["syscall".to_owned(), number.to_string()];
    words.into_iter().chain(arguments.iter().map(|word| (*word).to_owned())).collect()
}

/// Asserts that the filter answers an act with `errno`, and that the kernel itself does not.
#[track_caller]
fn filtered<S: AsRef<std::ffi::OsStr>>(words: &[S], errno: &str) {
    let control = Run::bare().probe(words);
    let shown = control.to_string();
    let finished = control.run();
    let bare = finished.last(&shown);
    if !bare.ok && bare.errno() == errno {
        println!("SKIP: control: {shown} is {errno} outside too");
    }
    blocked(Run::new().probe(words), &[errno]);
}

#[test]
fn parts_of_the_kernel_are_out_of_reach() {
    require!("userns");
    for act in ["io-uring", "bpf", "perf", "userfaultfd"] {
        filtered(&[act], "EPERM");
    }
    filtered(&["add-key", "mcp-test", "value", "process"], "EPERM");
    const INVALID: &str = "-1";
    for (number, arguments) in [
        (libc::SYS_io_uring_enter, &[INVALID][..]),
        (libc::SYS_io_uring_register, &[INVALID]),
        (libc::SYS_request_key, &[]),
        (libc::SYS_keyctl, &["0", "-3", "0"]),
        (libc::SYS_ptrace, &["0"]),
        (libc::SYS_process_vm_readv, &["1", "0", "0", "0", "0", "7"]),
        (libc::SYS_process_vm_writev, &["1", "0", "0", "0", "0", "7"]),
        (libc::SYS_pidfd_getfd, &[INVALID]),
        (libc::SYS_process_mrelease, &[INVALID]),
        (libc::SYS_kcmp, &["0x7fffffff", "0x7fffffff"]),
        (libc::SYS_migrate_pages, &["0x7fffffff", "1"]),
        (libc::SYS_setns, &[INVALID]),
        (libc::SYS_open_by_handle_at, &[INVALID]),
        (libc::SYS_open_tree, &[INVALID]),
        (libc::SYS_fsconfig, &[INVALID, "99"]),
        (libc::SYS_fsmount, &[INVALID, "0xffff"]),
        (libc::SYS_clock_settime, &["0", "1"]),
        (libc::SYS_adjtimex, &["1"]),
        (libc::SYS_clock_adjtime, &["0", "1"]),
        (libc::SYS_syslog, &["10"]),
        (libc::SYS_lookup_dcookie, &[]),
        (libc::SYS_nfsservctl, &[]),
    ] {
        filtered(&call(number, arguments), "EPERM");
    }
    #[cfg(target_arch = "x86_64")]
    for (number, arguments) in [
        (libc::SYS_modify_ldt, &[][..]),
        (libc::SYS_ioperm, &["0", "1", "0"]),
        (libc::SYS_uselib, &[]),
    ] {
        filtered(&call(number, arguments), "EPERM");
    }
}

/// A filter cannot look behind their pointers; C libraries and runtimes know older calls.
#[test]
fn calls_with_hidden_flags_are_unknown() {
    require!("userns");
    filtered(&call(libc::SYS_clone3, &["0", "64"]), "ENOSYS");
    filtered(&call(libc::SYS_openat2, &["-100", "1", "1", "24"]), "ENOSYS");
    filtered(&["clone3-user"], "ENOSYS");
}

#[test]
fn namespaces_are_refused_with_any_high_bits() {
    require!("userns");
    filtered(&["unshare", "user"], "EPERM");
    filtered(&["clone-user"], "EPERM");
    for high in ["0x100000000", "0xffffffff00000000"] {
        filtered(&["clone-user", high], "EPERM");
    }
}

#[test]
fn nobody_types_on_a_terminal() {
    require!("userns");
    const TIOCSTI: u64 = 0x5412;
    const TIOCLINUX: u64 = 0x541c;
    const TIOCSETD: u64 = 0x5423;
    for command in [TIOCSTI, TIOCLINUX, TIOCSETD] {
        for high in [0, 1 << 32, 0xffff_ffff << 32] {
            filtered(&["ioctl", "0", &format!("{:#x}", command | high)], "EPERM");
        }
    }
    // Other commands reach /dev/null, which is no terminal.
    for command in ["0x5401", "0x100005401"] {
        blocked(Run::new().probe(&["ioctl", "0", command]), &["ENOTTY"]);
    }
}

#[test]
fn odd_sockets_are_refused_with_any_high_bits() {
    require!("userns");
    // ALG, VSOCK, PACKET, BLUETOOTH, and the last two in disguise.
    for words in [
        ["38", "5", "0"],
        ["0x100000026", "5", "0"],
        ["40", "1", "0"],
        ["0xffffffff00000028", "1", "0"],
        ["17", "3", "0"],
        ["31", "3", "1"],
        ["2", "10", "768"],
        ["2", "0x10000000a", "768"],
    ] {
        let words = [&["socket"], &words[..]].concat();
        filtered(&words, "EAFNOSUPPORT");
    }
    // Netlink to anything but routes, SCTP, multipath TCP.
    for words in
        [["16", "3", "15"], ["16", "3", "0x10000000f"], ["2", "1", "132"], ["2", "1", "262"]]
    {
        let words = [&["socket"], &words[..]].concat();
        filtered(&words, "EPROTONOSUPPORT");
    }
    for words in [
        ["1", "1", "0"],
        ["2", "1", "0"],
        ["0x100000002", "1", "6"],
        ["10", "2", "17"],
        ["16", "3", "0"],
        ["16", "3", "0x100000000"],
    ] {
        let words = [&["socket"], &words[..]].concat();
        allowed(Run::bare().probe(&words));
        allowed(Run::new().probe(&words));
    }
}

#[test]
fn fast_open_is_refused_with_any_high_bits() {
    require!("userns");
    filtered(&["fastopen", "127.0.0.1:9"], "EPERM");
    for (number, index) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)]
    {
        let words = |flags: &str| {
            let mut arguments = ["-1", "0", "0", "0"];
            arguments[index] = flags;
            call(number, &arguments)
        };
        filtered(&words("0x20000000"), "EPERM");
        filtered(&words("0x120000000"), "EPERM");
        blocked(Run::new().probe(&words("0x40")), &["EBADF", "EFAULT"]);
    }
}

#[test]
fn personality_stays() {
    require!("userns");
    for odd in ["0x40000", "0x100040000", "0x400000", "8"] {
        filtered(&["personality", odd], "EPERM");
    }
    for harmless in ["0xffffffff", "0"] {
        allowed(Run::new().probe(&["personality", harmless]));
    }
}

#[test]
fn thirty_two_bit_calls_are_unknown() {
    require!("userns");
    let getpid = ["int80", "20"];
    let bare = Run::bare().probe(&getpid).run();
    if bare.outcomes.is_empty() || !bare.outcomes[0].ok {
        println!("SKIP: control: this machine has no 32-bit calls");
    }
    blocked(Run::new().probe(&getpid), &["ENOSYS"]);
    // fork, execve, unshare, keyctl in the 32-bit table.
    for number in ["2", "11", "310", "288"] {
        blocked(Run::new().probe(&["int80", number]), &["ENOSYS"]);
    }
    blocked(Run::new().probe(&["syscall", "0x40000027"]), &["ENOSYS"]);
}

#[test]
fn set_id_modes_cannot_be_made() {
    require!("userns");
    let scratch = Scratch::new();
    let dir = scratch.dir("grant");
    let file = dir.join("file");
    fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap();
    let inside = || Run::new().write(&dir);
    // The last with bits that the kernel ignores.
    for mode in ["4755", "2755", "6755", "40000004755"] {
        let act = ["chmod", path, mode];
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        blocked(inside().probe(&act), &["EPERM"]);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600, "{mode}");
        allowed(Run::bare().probe(&act));
    }
    allowed(inside().probe(&["chmod", path, "1755"]));
    for (number, mode) in ["4755", "2711", "40000004755"].into_iter().enumerate() {
        let new = dir.join(format!("new-{number}"));
        let act = ["open-mode", new.to_str().unwrap(), mode];
        blocked(inside().probe(&act), &["EPERM"]);
        assert!(!new.exists(), "{mode}");
        allowed(Run::bare().probe(&act));
    }
    allowed(inside().probe(&["open-mode", dir.join("plain").to_str().unwrap(), "755"]));
}

#[test]
fn set_id_modes_cannot_be_made_by_programs() {
    require!("userns");
    let scratch = Scratch::new();
    let dir = scratch.dir("grant");
    let script = "cp /bin/sh a; chmod u+s a; mkdir -m 2755 b; install -m 4755 /bin/sh c; mknod d p; \
                  mkdir e; echo done";
    let finished = Run::new().write(&dir).cwd(&dir).shell(script).run();
    finished.code_is(0);
    assert_eq!(finished.text(), "done\n", "{finished}");
    for entry in fs::read_dir(&dir).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o6000, 0, "{:?} has {mode:o}", entry.path());
    }
    assert!(dir.join("d").exists() && dir.join("e").is_dir(), "{finished}");
}

/// Runtimes that try refused calls and must do without.
#[test]
fn everyday_programs_run() {
    require!("userns");
    let scratch = Scratch::new();
    for (program, arguments, said) in [
        ("bash", &["-c", "echo $(echo well)"][..], "well"),
        ("git", &["--version"], "git version"),
        ("git", &["init", "repository"], "Git repository"),
        ("perl", &["-e", "print `echo well`"], "well"),
        (
            "python3",
            &[
                "-c",
                "import subprocess, threading, socket, tempfile, os, shutil\n\
                 t = threading.Thread(target=lambda: None); t.start(); t.join()\n\
                 socket.socketpair(); socket.socket()\n\
                 d = tempfile.mkdtemp(); os.chmod(d, 0o1777); shutil.rmtree(d)\n\
                 print(subprocess.check_output(['echo', 'well']).decode())",
            ],
            "well",
        ),
        (
            "node",
            &[
                "-e",
                "const fs = require('fs');\n\
                 const { Worker } = require('worker_threads');\n\
                 new Worker('fs = 1', { eval: true }).on('exit', () => {\n\
                   fs.writeFileSync('/tmp/x', 'y'); fs.chmodSync('/tmp/x', 0o700);\n\
                   require('net').createServer().listen(0, function () { this.close();\n\
                     console.log(require('child_process').execSync('echo well').toString());\n\
                   });\n\
                 });",
            ],
            "well",
        ),
        ("java", &["-version"], ""),
    ] {
        if !has_program(program) {
            continue;
        }
        let run = Run::new().flag("--max-memory").arg("4GiB").write(scratch.path());
        let run = run.cwd(scratch.path()).command(&[&[program], arguments].concat());
        let finished = run.run();
        finished.code_is(0);
        assert!(finished.text().contains(said), "{program}: {finished}");
    }
}

#[test]
fn the_filter_is_in_the_report() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    Run::new().flag("--report").arg(&file).probe(&["cwd"]).run().code_is(0);
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let seen = report["controls"]["privileges"]["seen"].to_string();
    assert!(seen.contains("seccomp mode 2"), "{report:#}");
    refused(
        Run::new().probe(&call(libc::SYS_ptrace, &["0"])),
        Run::bare().probe(&call(libc::SYS_ptrace, &["0"])),
        &["EPERM"],
    );
    assert_eq!(allowed(Run::new().probe(&["status-field", "Seccomp"])).detail, "2");
}
