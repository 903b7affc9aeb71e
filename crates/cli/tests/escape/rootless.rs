//! Root of a user namespace that has few ids, as in a rootless container or below `unshare -r`: an ordinary user
//! in disguise, and treated as one.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::Value;

use crate::require;
use crate::support::{
    ABSENT, FORBIDDEN, Ground, PLAIN, Run, Scratch, allowed, blocked, euid, eventually,
    has_program, patience,
};

/// The same run below `unshare -r`, where there is one id, called 0.
fn as_root_of_one_id(run: &Run) -> Run {
    Run::bare().command(&["unshare", "-r"]).command(&run.words())
}

fn is_missing() -> bool {
    let is_missing = !has_program("unshare");
    if is_missing {
        println!("SKIP: unshare is not there");
    }
    is_missing
}

fn report(run: Run) -> Value {
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    let run = run.flag("--report").arg(&file).probe(&["cwd"]);
    as_root_of_one_id(&run).run().code_is(0);
    serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap()
}

#[test]
fn the_walls_are_whole() {
    require!("userns");
    if is_missing() {
        return;
    }
    let report = report(Run::new());
    for control in [
        "filesystem",
        "network",
        "process_isolation",
        "privileges",
        "environment",
        "descriptors",
        "tree_kill",
    ] {
        assert_eq!(report["controls"][control]["status"], "enforced", "{control}: {report:#}");
    }
    // The kernel does not bind the machine's own root.
    let settings = fs::metadata("/proc/sys/kernel/ostype").unwrap().uid();
    let processes = if euid() == 0 && settings == 0 { "partial" } else { "enforced" };
    assert_eq!(report["controls"]["processes"]["status"], processes, "{report:#}");
}

#[test]
fn the_command_is_an_ordinary_user() {
    require!("userns");
    if is_missing() {
        return;
    }
    for (run, ids) in [(Run::bare(), "0 0 0"), (Run::new(), "1000 1000 1000")] {
        assert_eq!(allowed(as_root_of_one_id(&run.probe(&["uid"]))).detail, ids);
    }
    let caps = allowed(as_root_of_one_id(&Run::new().probe(&["caps"])));
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(caps.field(set), ["0000000000000000"], "{caps:?}");
    }
    for words in [&["unshare", "user"][..], &["mount", "/tmp"], &["chroot", "/usr"]] {
        blocked(as_root_of_one_id(&Run::new().probe(words)), FORBIDDEN);
    }
}

#[test]
fn what_was_not_granted_is_not_there_and_written_files_are_the_callers() {
    require!("userns");
    if is_missing() {
        return;
    }
    let scratch = Scratch::new();
    let (secret, grant) = (scratch.file("secret", "canary"), scratch.dir("grant"));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let read = |run: Run| as_root_of_one_id(&run.probe(&[Path::new("read"), &secret]));
    allowed(read(Run::new().read(&secret)));
    blocked(read(Run::new()), ABSENT);
    let new = grant.join("new");
    let write = Run::new().write(&grant).probe(&[Path::new("create"), &new]);
    allowed(as_root_of_one_id(&write));
    let (made, dir) = (fs::metadata(&new).unwrap(), fs::metadata(&grant).unwrap());
    assert_eq!((made.uid(), made.gid()), (dir.uid(), dir.gid()));
}

/// The kernel takes such a root for the owner of what cannot be dumped.
#[test]
fn init_cannot_be_looked_into() {
    require!("userns");
    if is_missing() {
        return;
    }
    for act in ["environ", "mem", "proc-fd", "proc-root", "proc-cwd"] {
        allowed(as_root_of_one_id(&Run::new().probe(&[act, "self"])));
        blocked(as_root_of_one_id(&Run::new().probe(&[act, "1"])), ABSENT);
    }
    let listed = allowed(as_root_of_one_id(&Run::new().probe(&["proc-list"])));
    assert!(!listed.lines().contains(&"1"), "{listed:?}");
}

/// Keys that the system keeps for its root are files of the caller's own here.
#[test]
fn keys_of_the_system_stay_closed() {
    require!("userns", "plain");
    if is_missing() || !Path::new("/etc/ssl").is_dir() {
        return;
    }
    let scratch = Scratch::new();
    let etc = scratch.dir("ssl");
    let (public, key) = (scratch.file("ssl/public.pem", "public"), scratch.dir("ssl/private"));
    fs::write(key.join("key"), "canary").unwrap();
    for (path, mode) in [(&etc, 0o755), (&public, 0o644), (&key.join("key"), 0o640), (&key, 0o710)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let below = |run: Run| {
        let script = "mount --bind \"$0\" /etc/ssl && exec \"$@\"";
        let outer = Run::bare().command(&["unshare", "-rm", "sh", "-c", script]);
        outer.command(&[etc.as_os_str()]).command(&run.words())
    };
    let (public, key) = (["read", "/etc/ssl/public.pem"], ["read", "/etc/ssl/private/key"]);
    assert_eq!(allowed(below(Run::bare().probe(&key))).detail, "canary");
    for ground in [Ground::AsItIs, PLAIN] {
        let run = || Run::new().on(ground);
        assert_eq!(allowed(below(run().probe(&public))).detail, "public");
        blocked(below(run().probe(&key)), &[ABSENT, FORBIDDEN].concat());
    }
}

/// In a container /proc/sys is read-only, and what is set there stands behind the filter.
#[test]
fn a_read_only_proc_sys_is_no_obstacle() {
    require!("userns", "landlock");
    if is_missing() {
        return;
    }
    let below = |run: Run| {
        let script = "mount --rbind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$@\"";
        Run::bare().command(&["unshare", "-rm", "sh", "-c", script, "sh"]).command(&run.words())
    };
    let limit = ["write", "/proc/sys/user/max_user_namespaces", "0"];
    blocked(below(Run::bare().probe(&limit)), &["EROFS"]);
    let finished = below(Run::new().probe(&["uid"])).run();
    finished.code_is(0);
    assert_eq!(finished.last("uid").detail, "1000 1000 1000", "{finished}");
    for act in [&["unshare", "user"][..], &["clone-user"], &["clone3-user"]] {
        allowed(below(Run::bare().probe(act)));
        blocked(below(Run::new().probe(act)), &["EPERM", "ENOSYS"]);
    }
}

/// Without namespaces the launcher answers for files; it has the command's rights then, and no more.
#[test]
fn without_namespaces_the_launcher_has_no_capabilities() {
    require!("plain");
    if is_missing() {
        return;
    }
    let capabilities = |run: Run| {
        let live = as_root_of_one_id(&run.shell("echo ready; exec sleep 60")).spawn();
        live.await_output("ready");
        let status = fs::read_to_string(format!("/proc/{}/status", live.pid())).unwrap();
        let field = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        field.unwrap().trim().to_owned()
    };
    assert_ne!(capabilities(Run::bare()), "0000000000000000");
    assert_eq!(capabilities(Run::new().on(PLAIN)), "0000000000000000");
    let run = Run::new().on(PLAIN).probe(&["caps"]);
    let caps = allowed(as_root_of_one_id(&run));
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(caps.field(set), ["0000000000000000"], "{caps:?}");
    }
}

/// It is told to end as anybody's.
#[test]
fn it_ends_with_a_signal() {
    require!("userns");
    if is_missing() {
        return;
    }
    let scratch = Scratch::new();
    let beat = scratch.dir("grant").join("beat");
    let run = Run::new().write(scratch.join("grant"));
    let live =
        as_root_of_one_id(&run.probe(&["loop-heartbeat", beat.to_str().unwrap(), "20"])).spawn();
    assert!(eventually(patience(), || beat.exists()), "never lived");
    live.signal(libc::SIGTERM);
    live.wait().code_is(128 + libc::SIGTERM);
}

/// As in `podman unshare`: 0 is the caller, and there are 65,536 more. What belongs to none of these has the number of
/// one of them.
#[test]
fn root_of_many_ids_has_its_own_home() {
    require!("userns");
    let many = ["unshare", "--map-auto", "--map-root-user"];
    let tried = std::process::Command::new(many[0]).args(&many[1..]).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        println!("SKIP: there are no subordinate ids");
        return;
    }
    let scratch = Scratch::new();
    let home = scratch.join("home");
    fs::create_dir(&home).unwrap();
    let run = Run::new().probe(&["cwd"]);
    let run = Run::bare().command(&many).command(&run.words());
    run.env("HOME", &home).without_env("XDG_STATE_HOME").run().code_is(0);
    assert!(home.join(".local/state/mcp/log.jsonl").exists());
}
