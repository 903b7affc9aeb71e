use proptest::prelude::*;

use super::*;

fn found(mountinfo: &str, membership: &str) -> Option<(String, String)> {
    let shown = |path: PathBuf| path.to_string_lossy().replace('\\', "/");
    standing(mountinfo.as_bytes(), membership.as_bytes())
        .map(|standing| (shown(standing.mount), shown(standing.own)))
}

fn at(mount: &str, own: &str) -> Option<(String, String)> {
    Some((mount.to_owned(), own.to_owned()))
}

const UNIFIED: &str =
    "36 31 0:31 / /sys/fs/cgroup rw,nosuid shared:5 - cgroup2 cgroup2 rw,nsdelegate\n";

#[test]
fn a_unified_host() {
    let own = "0::/user.slice/user-1000.slice/session-2.scope\n";
    let place = "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope";
    assert_eq!(found(UNIFIED, own), at("/sys/fs/cgroup", place));
    assert_eq!(found(UNIFIED, "0::/\n"), at("/sys/fs/cgroup", "/sys/fs/cgroup"));
}

#[test]
fn a_hybrid_host_has_version_1_beside_it() {
    let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                  40 31 0:37 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                  41 31 0:38 / /sys/fs/cgroup/unified rw shared:10 master:2 - cgroup2 cgroup2 rw\n";
    let own = "12:memory:/docker/x\n1:name=systemd:/init.scope\n0::/init.scope\n";
    let place = "/sys/fs/cgroup/unified/init.scope";
    assert_eq!(found(mounts, own), at("/sys/fs/cgroup/unified", place));
}

#[test]
fn version_1_alone_is_nothing() {
    let mounts = "40 31 0:37 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    assert_eq!(found(mounts, "12:memory:/x\n0::/\n"), None);
    assert_eq!(found(UNIFIED, "12:memory:/x\n"), None);
    assert_eq!(found("", ""), None);
}

#[test]
fn what_version_1_has_is_told_from_our_own_membership() {
    let hybrid =
        b"5:blkio:/\n4:memory:/x\n2:cpu,cpuacct:/\n1:name=systemd:/memory,pids\n0::/pids\n";
    let all = ["memory", "pids", "cpu", "io"];
    assert_eq!(held_by_version_1(hybrid, &all), ["memory", "cpu", "io"]);
    assert_eq!(held_by_version_1(b"0::/memory\n", &all), [""; 0]);
    assert_eq!(held_by_version_1(b"", &all), [""; 0]);
}

#[test]
fn a_part_of_the_tree_is_mounted() {
    let mounts = "36 31 0:31 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    let place = "/sys/fs/cgroup/run";
    assert_eq!(found(mounts, "0::/docker/abc/run\n"), at("/sys/fs/cgroup", place));
    assert_eq!(found(mounts, "0::/docker/abcd\n"), None);
    assert_eq!(found(mounts, "0::/\n"), None);
}

#[test]
fn a_cgroup_namespace_has_a_root_of_its_own() {
    assert_eq!(found(UNIFIED, "0::/leaf\n"), at("/sys/fs/cgroup", "/sys/fs/cgroup/leaf"));
    // Moved out of the namespace: nothing here shows it.
    assert_eq!(found(UNIFIED, "0::/../other\n"), None);
    // The mount of the namespace outside, seen from within.
    let outer = "36 31 0:31 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    assert_eq!(found(outer, "0::/\n"), None);
    let place = "/sys/fs/cgroup/other";
    assert_eq!(found(outer, "0::/../../other\n"), at("/sys/fs/cgroup", place));
}

#[test]
fn of_several_mounts_the_one_that_shows_us_counts() {
    let other = "50 31 0:31 /machine /srv/c rw - cgroup2 cgroup2 rw\n";
    let own = "0::/user/x\n";
    assert_eq!(
        found(&format!("{UNIFIED}{other}"), own),
        at("/sys/fs/cgroup", "/sys/fs/cgroup/user/x")
    );
    let hidden = format!("{UNIFIED}60 31 0:40 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n");
    assert_eq!(found(&hidden, own), None);
    let above = format!("{UNIFIED}60 31 0:40 / /sys rw - sysfs sysfs rw\n");
    assert_eq!(found(&above, own), None);
    let back = format!("{hidden}61 60 0:31 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n");
    assert_eq!(found(&back, own), at("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/user/x"));
}

#[test]
fn names_may_hold_anything() {
    let mounts = "36 31 0:31 / /mnt/a\\040b\\134c\\012d rw - cgroup2 cgroup2 rw\n";
    let (mount, own) = found(mounts, "0::/x y\n").unwrap();
    // The comparison shows a backslash as a slash, for the sake of Windows.
    assert_eq!(mount, "/mnt/a b/c\nd");
    assert_eq!(own, format!("{mount}/x y"));
    // What looks like an escape and is none stays as it is.
    assert_eq!(unescaped(b"\\9\\04\\777\\"), b"\\9\\04\\777\\");
    assert_eq!(unescaped(b"\\040\\134040"), b" \\040");
}

#[test]
fn a_removed_cgroup_is_still_ours() {
    let place = "/sys/fs/cgroup/gone";
    assert_eq!(found(UNIFIED, "0::/gone (deleted)\n"), at("/sys/fs/cgroup", place));
}

proptest! {
    #[test]
    fn no_text_panics(mounts in ".*", own in ".*") {
        found(&mounts, &own);
        found(&format!("1 2 0:1 {mounts} / rw - cgroup2 {own}"), &format!("0::/{own}"));
    }
}
