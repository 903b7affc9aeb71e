//! Reads and writes outside the grants. Grants themselves are in `grants.rs`.

use std::fs;
use std::path::Path;

use crate::shared::filesystem::{read, read_bare};
use crate::support::{
    ABSENT, READ_ONLY, Run, Scratch, allowed, blocked, is_rootless, probe_path, refused,
};
use crate::{require, shared_attacks};

shared_attacks! { "userns", filesystem:
    file_outside_every_grant_is_not_there;
    keys_in_the_users_home_are_not_there;
    symlink_in_a_grant_does_not_lead_out;
    symlink_made_inside_does_not_lead_out;
    dot_dot_does_not_lead_out;
    hard_link_does_not_bring_a_file_in;
    read_grant_keeps_its_modes_and_names;
}

#[test]
fn root_of_another_process_does_not_lead_out() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let through = |pid: &str| format!("/proc/{pid}/root{}", secret.display());
    allowed(read(Path::new(&through("self"))).read(&secret));
    for pid in ["1", "self", &std::process::id().to_string()] {
        blocked(read(Path::new(&through(pid))), ABSENT);
    }
}

#[test]
fn root_of_the_launcher_does_not_lead_out() {
    require!("userns");
    let scratch = Scratch::new();
    let secret = scratch.file("secret", "canary");
    let script = r#"read pid; exec "$0" read "/proc/$pid/root$1""#;
    let words = |run: Run| {
        run.command(&["sh", "-c", script]).command(&[probe_path(), secret.clone()]).open_input()
    };
    let attempt = |run: Run, own: bool| {
        use std::io::Write;
        let mut live = words(run).spawn();
        let pid = if own { "self".to_owned() } else { live.pid().to_string() };
        writeln!(live.stdin(), "{pid}").unwrap();
        live.wait()
    };
    let control = attempt(Run::new().read(probe_path()).read(&secret), true);
    assert!(control.last("own root").ok, "{control}");
    let attack = attempt(Run::new().read(probe_path()), false);
    assert!(!attack.last("root of the launcher").ok, "{attack}");
}

#[test]
fn read_grant_cannot_be_written() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("grant/file", "original");
    let grant = file.parent().unwrap();
    let act = |name: &str, target: &Path| {
        let words = [name.to_owned(), target.to_str().unwrap().to_owned()];
        move |run: Run| run.probe(&words)
    };
    for act in [
        act("write", &file),
        act("create", &grant.join("new")),
        act("mkdir", &grant.join("dir")),
        act("unlink", &file),
    ] {
        blocked(act(Run::new().read(grant)), READ_ONLY);
        allowed(act(Run::new().write(grant)));
    }
    assert_eq!(fs::read_dir(grant).unwrap().count(), 2);
}

#[test]
fn system_is_read_only() {
    require!("userns");
    allowed(Run::new().probe(&["create", "/tmp/mcp-escape-test"]));
    for dir in
        ["/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/bin", "/dev", "/proc", "/var", "/home"]
    {
        let path = format!("{}/mcp-escape-test", dir.trim_end_matches('/'));
        blocked(Run::new().probe(&["create", &path]), &["EROFS", "EACCES", "EPERM", "ENOENT"]);
        assert!(!Path::new(&path).exists(), "{path} was made on the host");
    }
    allowed(Run::new().probe(&["write", "/dev/null"]));
    for path in ["/etc/passwd", "/etc/hosts", "/usr/bin/env", "/proc/sys/kernel/core_pattern"] {
        blocked(Run::new().probe(&["write", path, ""]), &["EROFS", "EACCES", "EPERM", "ENOENT"]);
    }
}

#[test]
fn system_is_there_and_secrets_of_it_are_not() {
    require!("userns");
    for dir in ["/usr/bin", "/bin", "/etc", "/dev"] {
        assert!(!allowed(Run::new().probe(&["list", dir])).detail.is_empty(), "{dir}");
    }
    for path in [
        "/etc/shadow",
        "/etc/sudoers",
        "/root",
        "/var/log",
        "/var/lib",
        "/boot",
        "/dev/mem",
        "/dev/kmsg",
        "/run/dbus/system_bus_socket",
        "/var/run/docker.sock",
        "/sys/kernel/security",
    ] {
        if fs::metadata(path).is_ok() {
            refused(Run::new().probe(&["stat", path]), Run::bare().probe(&["stat", path]), ABSENT);
        }
    }
}

#[test]
fn tmp_is_private() {
    require!("userns");
    let scratch = Scratch::new();
    let host = scratch.file("host", "canary");
    refused(read(&host), read_bare(&host), ABSENT);
    let name = format!("/tmp/mcp-escape-inside-{}", std::process::id());
    allowed(Run::new().probe(&["create", &name]));
    assert!(!Path::new(&name).exists(), "{name} is on the host");
    blocked(Run::new().probe(&["read", &name]), ABSENT);
}

#[test]
fn home_is_ephemeral_unless_named() {
    require!("userns");
    let home = Scratch::new();
    let run = || Run::new().env("HOME", home.path()).env("XDG_DATA_HOME", home.join("data"));
    assert_eq!(allowed(run().probe(&["getenv", "HOME"])).detail, "/home/mcp");
    allowed(run().probe(&["create", "/home/mcp/note"]));
    blocked(run().probe(&["read", "/home/mcp/note"]), ABSENT);
    let named = || run().flag("--home").arg("server-a");
    allowed(named().probe(&["create", "/home/mcp/note"]));
    allowed(named().probe(&["read", "/home/mcp/note"]));
    blocked(run().flag("--home").arg("server-b").probe(&["read", "/home/mcp/note"]), ABSENT);
}

#[test]
fn proc_is_read_only_and_tells_nothing_of_root() {
    require!("userns");
    allowed(Run::new().probe(&["read", "/proc/meminfo"]));
    for path in ["/proc/sys/kernel/hostname", "/proc/self/comm", "/proc/sysrq-trigger"] {
        blocked(Run::new().probe(&["write", path, "x"]), &["EROFS", "EACCES", "ENOENT"]);
    }
    for path in ["/proc/kmsg", "/proc/timer_list", "/proc/vmallocinfo"] {
        if is_rootless() {
            // To the machine's root in a user namespace they would be open: they are empty.
            let finished = Run::new().probe(&["read", path]).run();
            let outcome = finished.last("read");
            assert!(!outcome.ok || outcome.detail.is_empty(), "{finished}");
            continue;
        }
        blocked(Run::new().probe(&["read", path]), &["EACCES", "EPERM", "ENOENT", "EIO"]);
    }
    // Not every kernel has each of these; where it is there, it is empty.
    for path in ["/proc/keys", "/proc/key-users", "/proc/kcore"] {
        let finished = Run::new().probe(&["read", path]).run();
        let outcome = finished.last("read");
        assert!(outcome.detail.is_empty() || outcome.errno() == "ENOENT", "{finished}");
    }
}
