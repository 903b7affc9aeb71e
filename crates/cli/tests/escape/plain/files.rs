//! What can be read, listed, executed, made, moved and removed.

use std::os::unix::fs::PermissionsExt;

use super::{bare, plain};
use crate::require;
use crate::support::{ABSENT, Scratch, allowed, blocked, refused};

#[test]
fn the_kernel_refuses_user_namespaces_in_here() {
    require!("plain");
    blocked(bare().probe(&["unshare", "user"]), &["ENOSPC", "EPERM", "EACCES"]);
}

#[test]
fn what_was_not_granted_cannot_be_opened() {
    require!("plain");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "secret");
    let (secret, dir) = (secret.to_str().unwrap(), scratch.path().to_str().unwrap());
    for words in [
        &["read", secret][..],
        &["list", dir],
        &["write", secret, "x"],
        &["create", &format!("{dir}/new")],
        &["mkdir", &format!("{dir}/sub")],
        &["symlink", "/etc", &format!("{dir}/link")],
        &["truncate", secret],
        &["open-truncating", secret, "0"],
        &["open-truncating", secret, "3"],
        &["rename", secret, &format!("{dir}/moved")],
    ] {
        blocked(plain().probe(words), &[ABSENT, &["EXDEV"]].concat());
        assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret", "{words:?}");
    }
    for words in [&["read", secret][..], &["list", dir], &["truncate", secret]] {
        allowed(bare().probe(words));
    }
}

#[test]
fn the_host_s_own_secrets_stay_closed() {
    require!("plain");
    for path in ["/", "/etc", "/root", "/home", "/tmp", "/var", "/run", "/sys", "/dev", "/boot"] {
        blocked(plain().probe(&["list", path]), ABSENT);
    }
    for path in ["/etc/shadow", "/etc/hostname", "/proc/1/environ", "/dev/ptmx", "/dev/kmsg"] {
        blocked(plain().probe(&["read", path]), &[ABSENT, &["EIO"]].concat());
    }
    for path in ["/etc/passwd", "/proc/self/status", "/usr/bin/env", "/dev/urandom"] {
        if path != "/dev/urandom" {
            allowed(plain().probe(&["read", path]));
        }
    }
}

#[test]
fn a_read_grant_is_read_and_not_written() {
    require!("plain");
    let scratch = Scratch::new();
    let file = scratch.file("data/file", "text");
    let (file, dir) = (file.to_str().unwrap(), scratch.join("data"));
    assert_eq!(allowed(plain().read(&dir).probe(&["read", file])).detail, "text");
    for words in [
        &["write", file, "x"][..],
        &["truncate", file],
        &["open-truncating", file, "0"],
        &["unlink", file],
        &["create", &format!("{}/new", dir.display())],
        &["chmod", file, "777"],
        &["fchmod", file, "777"],
    ] {
        blocked(plain().read(&dir).probe(words), &["EACCES", "EPERM"]);
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "text");
}

#[test]
fn a_write_grant_works() {
    require!("plain", "ordinary-user");
    let scratch = Scratch::new();
    let dir = scratch.dir("data");
    let script = "set -e; mkdir a b; echo one > a/f; mv a/f b/g; ln b/g b/h; ln -s b/g l; cat l; \
                  chmod 640 b/g; touch -d @7 b/g; rm b/h; cp -a b c; rm -r c; stat -c %a:%Y b/g";
    let finished = plain().write(&dir).cwd(&dir).shell(script).run();
    finished.code_is(0);
    assert_eq!(finished.text(), "one\n640:7\n");
}

#[test]
fn home_and_tmp_are_private_and_go_with_the_run() {
    require!("plain");
    let finished = plain()
        .shell("set -e; cd; echo x > file; mktemp >/dev/null; stat -c %a . $TMPDIR; echo $HOME")
        .run();
    finished.code_is(0);
    let text = finished.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["700", "700"], "{finished}");
    let home = std::path::Path::new(lines[2]);
    assert!(home.ends_with("home") && !home.exists(), "{finished}");
    assert!(!home.parent().unwrap().exists());
}

#[test]
fn private_directories_go_whatever_is_done_to_them() {
    require!("plain");
    let finished = plain()
        .shell("mkdir -p $HOME/a/b; chmod 0 $HOME/a/b $HOME/a; echo $HOME; kill -9 $$")
        .run();
    finished.code_is(137);
    assert!(!std::path::Path::new(finished.text().trim()).exists());
}

#[test]
fn links_and_proc_do_not_lead_out() {
    require!("plain");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "secret");
    let secret = secret.to_str().unwrap();
    let through = format!("/proc/self/root{secret}");
    refused(plain().probe(&["read", &through]), bare().probe(&["read", &through]), ABSENT);
    let finished = plain().shell(&format!("ln -s {secret} $HOME/l; cat $HOME/l")).run();
    assert_ne!(finished.code, 0, "{finished}");
    assert!(!finished.text().contains("secret"));
    let finished = plain().shell(&format!("ln {secret} $HOME/l && cat $HOME/l")).run();
    assert!(!finished.text().contains("secret"), "{finished}");
}

#[test]
fn a_program_that_was_not_shown_cannot_be_executed() {
    require!("plain");
    let scratch = Scratch::new();
    let script = scratch.script("program", "#!/bin/sh\necho ran\n");
    let words = ["exec", script.to_str().unwrap()];
    blocked(plain().probe(&words), ABSENT);
    assert_eq!(bare().probe(&words).run().text(), "ran\n");
    assert_eq!(plain().read(&script).probe(&words).run().text(), "ran\n");
}

#[test]
fn standard_files_are_opened_again_only_as_they_were_given() {
    require!("plain");
    let scratch = Scratch::new();
    let input = scratch.file("input", "text");
    let open = || std::fs::File::open(&input).unwrap();
    assert_eq!(allowed(plain().stdin(open()).probe(&["stdin-read"])).detail, "4");
    blocked(plain().stdin(open()).probe(&["reopen", "0", "w"]), &["EACCES", "EPERM"]);
    blocked(plain().stdin(open()).probe(&["reopen", "0", "rw"]), &["EACCES", "EPERM"]);
    allowed(bare().stdin(open()).probe(&["reopen", "0", "w"]));
}

/// Before Landlock 3 the syscall_proxy does it, and must not wait for the other end.
#[test]
fn truncating_a_fifo_waits_for_nobody() {
    require!("plain");
    let scratch = Scratch::new();
    let dir = scratch.dir("data");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (fifo, file) = (dir.join("fifo"), dir.join("file"));
    let run = || plain().write(&dir).flag("--timeout").arg("20s");
    let (fifo, file) = (fifo.to_str().unwrap(), file.to_str().unwrap());
    blocked(run().probe(&["mknod", fifo, "p"]).probe(&["truncate", fifo]), &["EINVAL"]);
    allowed(run().probe(&["create", file, "text"]).probe(&["truncate", file]));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "");
}
