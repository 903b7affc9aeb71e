//! Plans as they usually are, in full.

use super::*;
use crate::core::host::Rootless;
use crate::core::request::{Place, PlaceKind};
use crate::linux::facts::{CgroupMeans, HeldCgroup};
use crate::linux::plan::sample;
use crate::linux::step::{Access, Owner};

fn names(plan: &LinuxPlan) -> Vec<String> {
    plan.steps().iter().map(|listed| listed.step.to_string()).collect()
}

#[test]
fn the_plan_of_an_ordinary_run() {
    let mut request = sample::request();
    request.write = vec![Place { path: "/srv/data".into(), kind: PlaceKind::Directory }];
    let plan = plan(&request, &sample::facts(1000));
    assert_eq!(
        names(&plan),
        [
            "create namespaces user mount pid net ipc uts cgroup",
            "watch memory of the whole tree, limit 512 MiB",
            "map user and group ids uid 1000 = 1000 outside, gid 1000 = 1000 outside",
            "tie the sandbox to the launcher",
            "hide the init process",
            "start a session",
            "join a new keyring",
            "forbid user namespaces inside",
            "set the host name mcp",
            "bring up the loopback interface",
            "make every address local for tcp, where all is refused",
            "open sockets for the launcher udp 127.18.0.53:53, refused Tcp4, refused Tcp6",
            "mount a new root with 256 MiB of temporary space",
            "show read-only /usr",
            "make link /bin -> usr/bin",
            "write /etc/passwd",
            "write /etc/group",
            "write /etc/hosts",
            "write /etc/protocols",
            "write /etc/services",
            "write /etc/nsswitch.conf",
            "write /etc/resolv.conf",
            "make /dev",
            "make temporary /tmp /dev/shm /home/mcp",
            "make directory /run",
            "make link /var/tmp -> /tmp",
            "show writable /srv/data",
            "mount /proc read-only, without kcore keys key-users",
            "enter the new root",
            "drop privileges all capabilities, no_new_privs",
            "restrict file access by Landlock version 4: read /, devices /dev, write /tmp, \
             write /dev/shm, write /home/mcp, write /srv/data",
            "set limit RLIMIT_DATA 536870912",
            "set limit RLIMIT_NPROC 129",
            "set limit RLIMIT_NOFILE 1024",
            "set limit RLIMIT_CORE 0",
            "close file descriptors but 0-2 (as they are, as they are, as they are)",
            "filter system calls",
            "execute /usr/bin/true in /home/mcp",
        ]
    );
    let gaps: Vec<Control> = plan.controls.gaps().map(|(control, _)| control).collect();
    assert_eq!(gaps, [Control::Memory]);
    assert_eq!(plan.controls.boundary_gaps().count(), 0);
}

#[test]
fn a_cgroup_holds_the_limits_where_there_is_one() {
    let mut request = sample::request();
    request.policy.limits.cpu.value = Some(mcp_policy::Cores::from_millicores(100));
    let mut facts = sample::facts(1000);
    facts.cgroup.held = Some(HeldCgroup {
        at: "/sys/fs/cgroup/mcp-01234567".into(),
        means: CgroupMeans::Beside,
        controllers: ["memory", "pids", "cpu"].map(str::to_owned).to_vec(),
    });
    let whole = plan(&request, &facts);
    assert_eq!(
        names(&whole)[..8],
        [
            "set memory.swap.max 0",
            "set memory.max 536870912",
            "set memory.oom.group 1",
            "set pids.max 129",
            "set cpu.max 10000 100000",
            "set cpu.weight 10",
            "start in cgroup /sys/fs/cgroup/mcp-01234567 (beside our own cgroup)",
            "create namespaces user mount pid net ipc uts cgroup",
        ]
    );
    assert_eq!(names(&whole)[8], "make its cgroup the root");
    assert_eq!(whole.controls.gaps().count(), 0);
    let has = |plan: &LinuxPlan, text: &str| names(plan).iter().any(|name| name.contains(text));
    assert!(!has(&whole, "watch memory") && !has(&whole, "RLIMIT_DATA"));
    assert!(has(&whole, "RLIMIT_NPROC 129"));

    // Before 5.14 it counts the user's other processes, and only gets in the way.
    facts.kernel = "5.10.0".to_owned();
    assert!(!has(&plan(&request, &facts), "RLIMIT_NPROC"));

    facts.cgroup.held.as_mut().unwrap().controllers = vec!["memory".to_owned()];
    let some = plan(&request, &facts);
    assert!(has(&some, "memory.max") && has(&some, "RLIMIT_NPROC") && !has(&some, "cpu.max"));
    let why = Intent::unavailable(
        "a share of the processor needs cgroup v2: the cpu controller is not delegated to us",
        "bound the total with --max-cpu-time; `mcp doctor` says how to get cgroups",
    );
    assert_eq!(some.controls[&Control::Cpu], why);
}

#[test]
fn root_becomes_somebody_else_and_owns_what_is_granted() {
    let mut request = sample::request();
    request.read = vec![Place { path: "/root/data".into(), kind: PlaceKind::Directory }];
    let plan = plan(&request, &sample::facts(0));
    assert_eq!(
        plan.ids().map(|ids| ids.step),
        Some(MapIds {
            uid: 1000,
            gid: 1000,
            outside_uid: 0x7000_6d63,
            outside_gid: 0x7000_6d63,
            invoker: None,
        })
    );
    let mut placed = plan.placed().iter().map(|placed| &placed.step);
    assert_eq!(
        placed.find(|placed| matches!(placed, Placed::Bind { .. })),
        Some(&Placed::Bind {
            from: "/root/data".into(),
            at: "/root/data".into(),
            kind: PlaceKind::Directory,
            access: Access::ReadOnly,
            owner: Owner::CallerMapped,
        })
    );
}

/// It has no id to give away, and needs none: it owns what is granted itself.
#[test]
fn root_of_a_rootless_container_stays_itself_outside() {
    let mut request = sample::request();
    request.read = vec![Place { path: "/root/data".into(), kind: PlaceKind::Directory }];
    let mut facts = sample::facts(0);
    facts.caller.rootless = Some(Rootless::OrdinaryUser);
    let plan = plan(&request, &facts);
    let ids = MapIds { uid: 1000, gid: 1000, outside_uid: 0, outside_gid: 0, invoker: None };
    assert_eq!(plan.ids().map(|ids| ids.step), Some(ids));
    let has = |wanted: fn(&Placed) -> bool| plan.placed().iter().any(|placed| wanted(&placed.step));
    assert!(!has(|placed| matches!(placed, Placed::Bind { owner: Owner::CallerMapped, .. })));
    assert!(has(|placed| matches!(placed, Placed::Proc { view: ProcView::OwnTraceable, .. })));
}

#[test]
fn kernels_by_their_release() {
    for (release, counts_inside) in [
        ("5.14", true),
        ("5.14.0-70.el9.x86_64", true),
        ("6.1.0", true),
        ("10.0", true),
        ("5.13.19", false),
        ("5.9", false),
        ("4.18.0-553", false),
        ("5", false),
        ("", false),
        ("unknown", false),
    ] {
        assert_eq!(kernel_at_least(release, 5, 14), counts_inside, "{release}");
    }
}

#[test]
fn part_of_a_second_of_cpu_time_is_a_whole_one() {
    for (millis, seconds) in [(1, 1), (999, 1), (1000, 1), (1001, 2), (60_000, 60)] {
        assert_eq!(limits::whole_seconds(mcp_policy::Duration::from_millis(millis)), seconds);
    }
}

#[cfg(unix)]
#[test]
fn a_plan_with_any_name_in_it_can_be_printed() {
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    use crate::core::request::{Home, Link};
    let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/srv/\xff\n".to_vec()));
    let mut request = sample::request();
    request.read = vec![Place { path: odd.clone(), kind: PlaceKind::Directory }];
    request.links = vec![Link { at: odd.join("x"), to: odd.clone() }];
    request.stdio[0] = Stdio::ReadOnlyFile(odd.clone());
    request.home = Home::Kept(odd.clone());
    request.program = odd.clone();
    request.cwd = odd;
    let json = serde_json::to_string(&plan(&request, &sample::facts(0)).outline()).unwrap();
    assert!(json.contains("/srv/\u{fffd}\\n"), "{json}");
}

// Elsewhere paths are joined otherwise.
#[cfg(unix)]
#[test]
fn the_plan_without_namespaces() {
    let mut request = sample::request();
    request.write = vec![Place { path: "/srv/data".into(), kind: PlaceKind::Directory }];
    let mut facts = sample::facts(1000);
    facts.namespaces = Fact::Fails { why: "No space left on device".to_owned() };
    let plan = plan(&request, &facts);
    assert_eq!(
        names(&plan),
        [
            "watch memory of the whole tree, limit 512 MiB",
            "start a syscall proxy as the caller",
            "collect the orphans of the tree",
            "make private directories HOME /tmp/mcp-run/home, TMPDIR /tmp/mcp-run/tmp",
            "hide the init process",
            "start a session",
            "join a new keyring",
            "drop privileges all capabilities, no_new_privs",
            "restrict file access by Landlock version 4: read /usr, read /etc/passwd, devices \
             /dev/null, devices /dev/zero, devices /dev/full, devices /dev/random, devices \
             /dev/urandom, read /proc, write /tmp/mcp-run/home, write /tmp/mcp-run/tmp, write \
             /srv/data, no ports",
            "set limit RLIMIT_DATA 536870912",
            "set limit RLIMIT_NPROC 128 more than the user has",
            "set limit RLIMIT_CORE 0",
            "close file descriptors but 0-2 (as they are, as they are, as they are)",
            "filter system calls and refuse sockets, what namespaces would keep apart",
            "set limit RLIMIT_NOFILE 1024",
            "execute /usr/bin/true in /tmp/mcp-run/home",
        ]
    );
    assert_eq!(plan.controls.boundary_gaps().count(), 0);
    let told: Vec<Control> = plan.controls.told_gaps().map(|(control, _)| control).collect();
    assert_eq!(told, [Control::Filesystem, Control::ProcessIsolation, Control::TreeKill]);
}

#[test]
fn what_is_missing_alone_is_made_up_for_alone() {
    let fails = || Fact::Fails { why: "no".to_owned() };
    let mut facts = sample::facts(1000);
    facts.network_namespace = fails();
    let without_network = plan(&sample::request(), &facts);
    let steps = names(&without_network);
    assert!(steps.contains(&"create namespaces user mount pid ipc uts cgroup".to_owned()));
    assert!(steps.contains(&"filter system calls and refuse sockets".to_owned()));
    assert_eq!(
        without_network.controls.gaps().map(|(control, _)| control).collect::<Vec<_>>(),
        [Control::Memory]
    );

    let mut facts = sample::facts(1000);
    facts.own_proc = fails();
    let host_proc = plan(&sample::request(), &facts);
    let shown = "mount /proc of the host, read-only, without kcore keys key-users";
    assert!(names(&host_proc).contains(&shown.to_owned()));
    assert!(host_proc.controls[&Control::ProcessIsolation].is_gap());
    assert_eq!(host_proc.controls.boundary_gaps().count(), 0);
    facts.landlock_abi = 0;
    let empty = plan(&sample::request(), &facts);
    assert!(names(&empty).contains(&"mount /proc empty".to_owned()));
    assert!(!empty.controls[&Control::ProcessIsolation].is_gap());
}
