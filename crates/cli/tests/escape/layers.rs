//! Walls that stand behind other walls. An attack on one of these is stopped by another one first,
//! so each is looked at by itself: by what the kernel tells of it.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::require;
use crate::support::{
    ABSENT, Preparation, Pty, Run, Scratch, allowed, blocked, is_rootless, mcp_path,
};

/// Where each mount inside is, and its flags.
fn mounts(run: Run) -> Vec<(String, Vec<String>)> {
    let finished = run.command(&["cat", "/proc/self/mountinfo"]).run();
    let parse = |line: &str| {
        let mut words = line.split(' ').skip(4).map(str::to_owned);
        let (at, flags) = (words.next()?, words.next()?);
        Some((at, flags.split(',').map(str::to_owned).collect()))
    };
    let text = finished.text();
    let mounts: Vec<_> = text.lines().filter_map(parse).collect();
    assert!(mounts.len() > 10, "{finished}");
    mounts
}

#[test]
fn every_mount_has_its_flags() {
    require!("userns");
    let scratch = Scratch::new();
    scratch.file("read/denied", "");
    scratch.file("write/denied", "");
    let (read, write) = (scratch.join("read"), scratch.join("write"));
    let write_at = write.to_str().unwrap().to_owned();
    let writable = ["/tmp", "/dev/shm", "/home/mcp", "/dev/pts", &write_at];
    let nodes = ["null", "zero", "full", "random", "urandom", "tty"].map(|n| format!("/dev/{n}"));
    let mut seen = Vec::new();
    for (at, flags) in mounts(Run::new().read(&read).write(&write).deny("**/denied")) {
        let has = |flag: &str| flags.iter().any(|it| it == flag);
        assert!(has("nosuid"), "{at} {flags:?}");
        // Parts of /proc are closed by an empty device.
        let is_device = nodes.contains(&at) || at == "/dev/pts" || at.starts_with("/proc/");
        assert!(is_device || has("nodev"), "{at} {flags:?}");
        let is_writable = writable.contains(&at.as_str());
        assert_eq!(has("rw"), is_writable, "{at} {flags:?}");
        seen.push(at);
    }
    for at in ["/", "/usr", "/proc", "/dev/null", read.to_str().unwrap()].iter().chain(&writable) {
        assert!(seen.iter().any(|it| it == at), "{at}: {seen:?}");
    }
    for denied in [read.join("denied"), write.join("denied")] {
        assert!(seen.iter().any(|at| Path::new(at) == denied), "{denied:?}: {seen:?}");
    }
}

/// Above the root there is the root again, and not what it was put in front of. Landlock closes
/// the files there, but lets everybody ask for their names.
#[test]
fn old_root_is_gone() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let above = format!("/..{}", secret.display());
    allowed(Run::bare().probe(&["stat", &above]));
    allowed(Run::new().read(&secret).probe(&["stat", &above]));
    blocked(Run::new().probe(&["stat", &above]), ABSENT);
}

/// The kernel gives what it tells of a process that cannot be dumped to the host's root.
#[test]
fn init_cannot_be_dumped() {
    require!("userns");
    if is_rootless() {
        // That root is the caller itself: what it would own is not shown.
        allowed(Run::new().probe(&["stat", "/proc/self/environ"]));
        blocked(Run::new().probe(&["stat", "/proc/1/environ"]), ABSENT);
        return;
    }
    let finished =
        Run::new().command(&["stat", "-c", "%u", "/proc/self/environ", "/proc/1/environ"]).run();
    let text = finished.text();
    let owners: Vec<_> = text.lines().collect();
    let own = allowed(Run::new().probe(&["uid"])).detail;
    assert_eq!(owners.len(), 2, "{finished}");
    assert!(own.starts_with(owners[0]), "{own}: {finished}");
    assert_ne!(owners[0], owners[1], "{finished}");
}

#[test]
fn init_shows_nothing_of_how_it_was_started() {
    require!("userns");
    let run = |pid: &str| Run::new().flag("--env").arg("NAME=canary-7b1").probe(&["cmdline", pid]);
    assert!(allowed(run("self")).detail.contains("cmdline"));
    if is_rootless() {
        blocked(run("1"), ABSENT);
        return;
    }
    let init = allowed(run("1")).detail;
    assert_eq!(init.trim_matches('\0').trim(), "mcp-init");
}

/// Landlock closes it for writing; what has no right of its own is closed by the mount.
#[test]
fn read_only_file_on_stdin_keeps_its_mode() {
    require!("userns");
    let scratch = Scratch::new();
    let path = scratch.file("input", "original");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let act = |run: Run| {
        run.stdin(File::open(&path).unwrap()).probe(&["chmod", "/proc/self/fd/0", "755"])
    };
    let inside = act(Run::new()).run();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{inside}");
    allowed(act(Run::bare()));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o755);
    // Where it is a pipe, that has a mode of its own.
    require!("mount-attributes");
    assert_eq!(inside.act("chmod").errno(), "EROFS", "{inside}");
}

#[test]
fn file_without_a_name_is_copied() {
    require!("userns");
    let scratch = Scratch::new();
    let kind = |run: Run| {
        let path = scratch.file("here", "document");
        let file = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        allowed(run.stdin(file).probe(&["fds"])).field("0")[0].to_owned()
    };
    assert_eq!(kind(Run::bare()), "file");
    assert_eq!(kind(Run::new()), "pipe");
}

#[test]
fn terminal_for_errors_stays_outside() {
    require!("userns");
    let kind = |run: Run| {
        let pty = Pty::new();
        let finished = run.input("").stderr(pty.end()).probe(&["fds"]).run();
        finished.act("fds").field("2")[0].to_owned()
    };
    assert_eq!(kind(Run::bare()), "terminal");
    assert_eq!(kind(Run::new()), "pipe");
}

/// Outside, what root starts has an id that no user has, and none of root's groups.
#[test]
fn stand_in_of_root_is_nobody() {
    require!("userns", "root");
    let map = allowed(Run::new().probe(&["read", "/proc/self/uid_map"])).detail;
    let outside: u32 = map.split_whitespace().nth(1).unwrap().parse().unwrap();
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let ids: Vec<u32> =
        accounts.lines().filter_map(|line| line.split(':').nth(2)?.parse().ok()).collect();
    assert!(ids.contains(&0) && !ids.contains(&outside), "{outside}");
    let own = allowed(Run::new().probe(&["uid"])).detail;
    let own = own.split(' ').next().unwrap();
    let groups =
        |run: Run| allowed(run.prepare(Preparation::Groups(&[0, 6, 42])).probe(&["gids"])).detail;
    assert_eq!(groups(Run::bare()), "0 0 6 42");
    assert_eq!(groups(Run::new()), own);
}

#[test]
fn kept_home_is_private() {
    require!("userns");
    let home = Scratch::new();
    let run = Run::new().env("HOME", home.path()).env("XDG_DATA_HOME", home.join("data"));
    allowed(run.flag("--home").arg("kept").probe(&["cwd"]));
    let kept = home.tree().into_iter().find(|path| path.ends_with("kept")).unwrap();
    assert_eq!(fs::metadata(kept).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn what_is_shown_to_nobody_cannot_be_granted() {
    require!("userns");
    for flag in ["--read", "--write"] {
        for path in ["/", "/proc", "/proc/self/root", "/proc/1", "/dev", "/dev/null", "/home"] {
            let finished = Run::new().flag(flag).arg(path).probe(&["cwd"]).run();
            finished.is_clear_error();
            assert!(finished.outcomes.is_empty(), "{flag} {path} ran: {finished}");
        }
    }
    allowed(Run::new().read("/usr/share").probe(&["cwd"]));
}

/// A mount that the host makes below a grant while the command runs. The host is one of the
/// test's own, so that nothing is mounted on the real one.
#[test]
fn later_mounts_of_the_host_do_not_come_inside() {
    require!("userns", "root");
    let scratch = Scratch::new();
    let below = scratch.dir("grant/below");
    let script = "set -e; mkfifo \"$1/go\"; \
                  (read -r word < \"$1/go\"; echo \"$word\") | \"$2\" run --quiet --read \"$1/grant\" -- \
                      sh -c 'echo up; read -r word; echo inside: $(ls \"$0\")' \"$1/grant/below\" > \"$1/said\" & \
                  until [ -s \"$1/said\" ]; do sleep 0.02; done; mount -t tmpfs later \"$1/grant/below\"; touch \"$1/grant/below/late\"; \
                  echo outside: $(ls \"$1/grant/below\"); echo word > \"$1/go\"; wait; cat \"$1/said\"";
    let words = ["unshare", "--mount", "--propagation", "shared", "sh", "-c", script, "sh"];
    let run = Run::bare().command(&words).command(&[scratch.path(), &mcp_path()]);
    let finished = run.run();
    assert_eq!(finished.text(), "outside: late\nup\ninside:\n", "{finished}");
    assert_eq!(fs::read_dir(below).unwrap().count(), 0);
}

/// Without CAP_SYS_ADMIN the kernel refuses these as well, but only once it has looked at the
/// arguments: the filter does not.
#[test]
fn filter_refuses_what_the_kernel_would_refuse_later() {
    require!("userns");
    const NOWHERE: &str = "1";
    let refused_first = |number: i64, arguments: &[&str], errno: &str, bare: &[&str]| {
        let number = number.to_string();
        let words = [&["syscall", number.as_str()], arguments].concat();
        let control = Run::bare().probe(&words).run();
        let said = control.last("bare").errno().to_owned();
        if said == errno {
            println!("SKIP: control: call {number} is {errno} outside too");
        } else {
            assert!(bare.contains(&said.as_str()), "{words:?}: {control}");
        }
        blocked(Run::new().probe(&words), &[errno]);
    };
    let bad = &["EFAULT", "EINVAL", "EBADF", "ENOENT", "ENOSYS", "E2BIG"];
    refused_first(libc::SYS_bpf, &["0", "0", "99999"], "EPERM", bad);
    refused_first(libc::SYS_mount, &[NOWHERE, NOWHERE, NOWHERE, "0", "0"], "EPERM", bad);
    refused_first(libc::SYS_umount2, &[NOWHERE, "0x40000000"], "EPERM", bad);
    refused_first(libc::SYS_chroot, &[NOWHERE], "EPERM", bad);
    refused_first(libc::SYS_mount_setattr, &["-1", NOWHERE, "0x40", "0", "0"], "EPERM", bad);
    refused_first(libc::SYS_settimeofday, &[NOWHERE, "0"], "EPERM", bad);
    refused_first(libc::SYS_quotactl_fd, &["-1", "0x80000700", "0", "0"], "EPERM", bad);
    refused_first(libc::SYS_socketpair, &["2", "1", "0", NOWHERE], "EAFNOSUPPORT", bad);
    blocked(
        Run::new().probe(&["syscall", &libc::SYS_socketpair.to_string(), "1", "1", "0", NOWHERE]),
        &["EFAULT"],
    );
    #[cfg(target_arch = "x86_64")]
    refused_first(libc::SYS_iopl, &["9"], "EPERM", bad);
}

/// Modes with set-uid or set-gid, by every call that takes one, with a path that is not there.
#[test]
fn set_id_modes_are_refused_in_every_call() {
    require!("userns");
    const NOWHERE: &str = "1";
    const HERE: &str = "-100";
    const CREATE: &str = "0x40";
    const NAMELESS: &str = "0x410001";
    let mut calls: Vec<(i64, Vec<&str>)> = vec![
        (libc::SYS_fchmod, vec!["-1", "MODE"]),
        (libc::SYS_fchmodat, vec![HERE, NOWHERE, "MODE"]),
        (libc::SYS_fchmodat2, vec![HERE, NOWHERE, "MODE", "0"]),
        (libc::SYS_mkdirat, vec![HERE, NOWHERE, "MODE"]),
        (libc::SYS_mknodat, vec![HERE, NOWHERE, "MODE", "0"]),
        (libc::SYS_openat, vec![HERE, NOWHERE, CREATE, "MODE"]),
        (libc::SYS_openat, vec![HERE, NOWHERE, NAMELESS, "MODE"]),
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        (libc::SYS_chmod, vec![NOWHERE, "MODE"]),
        (libc::SYS_mkdir, vec![NOWHERE, "MODE"]),
        (libc::SYS_mknod, vec![NOWHERE, "MODE", "0"]),
        (libc::SYS_creat, vec![NOWHERE, "MODE"]),
        (libc::SYS_open, vec![NOWHERE, CREATE, "MODE"]),
    ]);
    for (number, arguments) in calls {
        let number = number.to_string();
        let words = |mode: &str| -> Vec<String> {
            let arguments = arguments.iter().map(|word| word.replace("MODE", mode));
            ["syscall".to_owned(), number.clone()].into_iter().chain(arguments).collect()
        };
        // 0755: the kernel looks for the path.
        blocked(Run::new().probe(&words("0x1ed")), &["EFAULT", "EBADF", "ENOSYS"]);
        for mode in ["0x9ed", "0x5ed", "0x1000009ed"] {
            blocked(Run::new().probe(&words(mode)), &["EPERM"]);
        }
    }
}
