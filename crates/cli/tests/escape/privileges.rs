//! No capability, no way to get one, and nothing of what capabilities are for.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::require;
use crate::support::{
    FORBIDDEN, Preparation, Run, Scratch, allowed, blocked, euid, is_root, is_rootless, probe_path,
    refused,
};

#[test]
fn every_capability_set_is_empty() {
    require!("userns");
    let control = allowed(Run::bare().probe(&["enter", "user"]).probe(&["caps"]));
    assert_ne!(control.field("CapEff"), ["0000000000000000"]);
    let inside = allowed(Run::new().probe(&["caps"]));
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(inside.field(set), ["0000000000000000"], "{set}");
    }
}

#[test]
fn new_privileges_are_off() {
    require!("userns");
    assert_eq!(allowed(Run::new().probe(&["nnp"])).detail, "1");
    assert_eq!(allowed(Run::new().probe(&["status-field", "NoNewPrivs"])).detail, "1");
}

#[test]
fn user_is_the_caller_and_never_root() {
    require!("userns");
    let ids = allowed(Run::new().probe(&["uid"])).detail;
    let ids: Vec<u32> = ids.split(' ').map(|id| id.parse().unwrap()).collect();
    assert!(ids.iter().all(|id| *id != 0 && *id == ids[0]), "{ids:?}");
    let groups = allowed(Run::new().probe(&["gids"])).detail;
    if is_root() {
        assert!(groups.split(' ').all(|group| group != "0"), "groups {groups}");
    } else if !is_rootless() {
        assert_eq!(ids[0], euid());
    }
}

#[test]
fn user_namespaces_cannot_be_made_inside() {
    require!("userns");
    for act in [&["unshare", "user"][..], &["clone-user"], &["clone3-user"]] {
        refused(Run::new().probe(act), Run::bare().probe(act), &["EPERM", "ENOSYS"]);
    }
    // What stands behind the filter.
    let most = allowed(Run::new().probe(&["read", "/proc/sys/user/max_user_namespaces"]));
    assert_eq!(most.detail.trim(), "0");
}

#[test]
fn mounts_cannot_be_changed() {
    require!("userns");
    let scratch = Scratch::new();
    let dir = scratch.path().to_str().unwrap();
    let own = || Run::bare().probe(&["enter", "user,mnt,uts"]);
    refused(Run::new().probe(&["mount", "/tmp"]), own().probe(&["mount", dir]), FORBIDDEN);
    let mounted = || own().probe(&["mount", dir]);
    refused(Run::new().probe(&["umount", "/proc"]), mounted().probe(&["umount", dir]), FORBIDDEN);
    allowed(mounted().probe(&["remount-ro", dir]).probe(&["remount-rw", dir]));
    for path in ["/", "/usr", "/etc", "/proc/sys"] {
        blocked(Run::new().probe(&["remount-rw", path]), FORBIDDEN);
        blocked(Run::new().probe(&["umount", path]), FORBIDDEN);
    }
    refused(Run::new().probe(&["pivot", "/tmp"]), own().probe(&["pivot", dir]), FORBIDDEN);
    refused(Run::new().probe(&["chroot", "/tmp"]), own().probe(&["chroot", dir]), FORBIDDEN);
}

#[test]
fn host_name_cannot_be_changed() {
    require!("userns");
    let act = |run: Run| run.probe(&["sethostname", "escaped"]);
    let own = Run::bare().probe(&["enter", "user,uts"]);
    refused(act(Run::new()), act(own), FORBIDDEN);
}

#[test]
fn devices_cannot_be_made() {
    require!("userns");
    allowed(Run::new().probe(&["mknod", "/tmp/pipe", "p"]));
    for (major, minor) in [("1", "1"), ("1", "3"), ("8", "0")] {
        let kind = if major == "8" { "b" } else { "c" };
        blocked(Run::new().probe(&["mknod", "/tmp/node", kind, major, minor]), FORBIDDEN);
    }
}

#[test]
fn raw_sockets_cannot_be_made() {
    require!("userns");
    let own = || Run::bare().probe(&["enter", "user,net"]);
    for words in [["socket", "17", "3", "0"], ["socket", "2", "3", "1"]] {
        refused(
            Run::new().probe(&words),
            own().probe(&words),
            &[FORBIDDEN, &["EAFNOSUPPORT"]].concat(),
        );
    }
}

#[test]
fn files_cannot_be_opened_by_handle() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("file", "content");
    let words = ["open-by-handle".as_ref(), file.as_os_str()];
    if !is_root() {
        println!("SKIP: control: an ordinary user may not do it anyway");
    } else {
        allowed(Run::bare().probe(&words));
    }
    blocked(Run::new().read(&file).probe(&words), &[FORBIDDEN, &["ESTALE"]].concat());
}

#[test]
fn set_uid_program_gives_nothing() {
    require!("userns", "root");
    const NOBODY: u32 = 65534;
    let scratch = Scratch::new();
    let program = scratch.join("set-uid-probe");
    fs::copy(probe_path(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let control = Run::bare().command(&[program.as_os_str(), "uid".as_ref()]);
    let control = allowed(control.prepare(Preparation::Uid(NOBODY))).detail;
    if control != "65534 0 0" {
        println!(
            "SKIP: set-uid programs have no effect in {}: {control}",
            scratch.path().display()
        );
        return;
    }
    let inside = Run::new().read(scratch.path()).command(&[program.as_os_str(), "uid".as_ref()]);
    let inside = allowed(inside).detail;
    let ids: Vec<_> = inside.split(' ').collect();
    assert!(ids[0] != "0" && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}
