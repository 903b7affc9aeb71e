//! The filter for hosts that refuse namespaces.

use super::*;

/// As [`decides`], for a filter on its own.
#[track_caller]
fn plainly(sockets: Sockets, landlock: u32, name: &str, arguments: &[u64], action: Action) {
    let tables =
        plain::tables(sockets, Ground::Plain { landlock, syscall_proxy: SyscallProxy::Asked });
    let row = tables.iter().copied().flatten().find(|refusal| refusal.call.name == name);
    let number = row.map_or_else(|| number(name), |refusal| refusal.call);
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let Some(number) = number.on(arch) else { continue };
        let filter = with(arch, NewProcesses::Allowed, Connects::Free, &tables);
        let program = compile(&filter);
        for high in HIGH {
            let mut registers = [high; 6];
            for (register, argument) in registers.iter_mut().zip(arguments) {
                *register = high | argument;
            }
            let call = Call { number, arch: arch.audit(), arguments: registers };
            assert_eq!(run(&program, &call).0, encode(action), "{name} {registers:x?}");
        }
    }
}

#[test]
fn without_a_network_namespace_no_socket_is_made() {
    let refused = Action::Errno(EACCES);
    for arguments in [[1, 1, 0], [2, 1, 6], [10, 2, 17], [16, 3, 0], [1, 0x80802, 0]] {
        plainly(Sockets::None, 7, "socket", &arguments, refused);
    }
    for (kind, action) in [
        (1, Action::Allow),
        (0x80801, Action::Allow),
        (5, Action::Allow),
        (2, refused),
        (3, refused),
    ] {
        plainly(Sockets::None, 7, "socketpair", &[1, kind, 0], action);
        plainly(Sockets::Internet, 7, "socketpair", &[1, kind, 0], action);
    }
    for name in ["connect", "bind", "listen"] {
        plainly(Sockets::None, 7, name, &[3, 0, 0], refused);
    }
    plainly(Sockets::Internet, 7, "socket", &[1, 1, 0], refused);
    plainly(Sockets::Internet, 7, "socket", &[2, 1, 6], Action::Allow);
    plainly(Sockets::All, 9, "socket", &[1, 1, 0], Action::Allow);
}

#[test]
fn with_a_proxy_only_tcp_sockets_are_made_and_the_launcher_connects_them() {
    let refused = Action::Errno(EACCES);
    let socket = |arguments: [u64; 3], action| {
        plainly(Sockets::Proxied, 7, "socket", &arguments, action);
    };
    for arguments in [[2, 1, 0], [10, 1, 6], [2, 0x80801, 6]] {
        socket(arguments, Action::Allow);
    }
    for arguments in [[1, 1, 0], [2, 2, 0], [10, 2, 17], [2, 3, 1], [16, 3, 0], [2, 1, 17]] {
        socket(arguments, refused);
    }
    // MPTCP, SCTP.
    for protocol in [262, 132] {
        socket([2, 1, protocol], Action::Errno(EPROTONOSUPPORT));
    }
    plainly(Sockets::Proxied, 7, "socketpair", &[1, 2, 0], refused);
    plainly(Sockets::Proxied, 7, "connect", &[3, 0, 0], Action::Notify);
    for name in ["bind", "listen"] {
        plainly(Sockets::Proxied, 7, name, &[3, 0, 0], refused);
    }
}

#[test]
fn without_namespaces_the_launcher_is_asked_about_files() {
    for name in [
        "chmod",
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "chown",
        "lchown",
        "fchown",
        "fchownat",
        "utime",
        "utimes",
        "futimesat",
        "utimensat",
        "setxattr",
        "lsetxattr",
        "fsetxattr",
        "removexattr",
        "lremovexattr",
        "fremovexattr",
    ] {
        plainly(Sockets::None, 7, name, &[0, 0, 0, 0], Action::Notify);
    }
    // A set-id mode is nobody's to give.
    plainly(Sockets::None, 7, "fchmod", &[3, 0o4755], PERM);
    plainly(Sockets::None, 7, "prlimit64", &[0, 7], Action::Allow);
    plainly(Sockets::None, 7, "prlimit64", &[4711, 7], PERM);
    plainly(Sockets::None, 7, "setpriority", &[0, 0, 10], Action::Allow);
    plainly(Sockets::None, 7, "setpriority", &[2, 0, 10], PERM);
    plainly(Sockets::None, 7, "setpriority", &[0, 4711, 10], PERM);
}

/// Neither by its number nor by a group or a user that it belongs to.
#[test]
fn init_is_left_alone() {
    for (name, init, another) in [
        ("prlimit64", &[1, 7, 4096][..], &[4711, 7, 4096][..]),
        ("sched_setparam", &[1, 4096], &[4711, 4096]),
        ("sched_setscheduler", &[1, 0, 4096], &[0, 0, 4096]),
        ("sched_setattr", &[1, 4096], &[0, 4096]),
        ("sched_setaffinity", &[1, 8, 4096], &[4711, 8, 4096]),
        ("setpriority", &[0, 1, 19], &[0, 4711, 19]),
        ("setpriority", &[1, 0, 19], &[0, 0, 19]),
        ("setpriority", &[2, 0, 19], &[0, 0, 19]),
        ("ioprio_set", &[1, 1, 4], &[1, 4711, 4]),
        ("ioprio_set", &[2, 0, 4], &[1, 0, 4]),
        ("ioprio_set", &[3, 0, 4], &[1, 0, 4]),
    ] {
        decides(NewProcesses::Allowed, name, init, PERM);
        decides(NewProcesses::Allowed, name, another, Action::Allow);
    }
}

#[test]
fn without_namespaces_attributes_are_read_by_the_syscall_proxy_or_by_nobody() {
    for name in ["getxattr", "lgetxattr", "listxattr", "llistxattr"] {
        plainly(Sockets::None, 7, name, &[0, 0, 0, 0], Action::Notify);
        let ground = Ground::Plain { landlock: 7, syscall_proxy: SyscallProxy::None };
        let tables = plain::tables(Sockets::None, ground);
        let row = tables.iter().copied().flatten().find(|refusal| refusal.call.name == name);
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let number = row.and_then(|refusal| refusal.call.on(arch)).unwrap();
            let filter = with(arch, NewProcesses::Allowed, Connects::Free, &tables);
            let call = Call { number, arch: arch.audit(), arguments: [0; 6] };
            let answer = filter.without_asking().decide(&call);
            assert_eq!(answer, Action::Errno(EOPNOTSUPP), "{name}");
        }
    }
    for name in ["getxattrat", "listxattrat", "setxattrat", "removexattrat"] {
        plainly(Sockets::None, 7, name, &[0, 0, 0, 0], Action::Errno(ENOSYS));
    }
    for name in ["file_getattr", "file_setattr"] {
        plainly(Sockets::None, 7, name, &[0, 0, 0, 0], Action::Errno(ENOSYS));
    }
    // fgetxattr and flistxattr: what was opened was granted.
    for numbers in [(193, 10), (196, 13)] {
        plainly_by_number(7, numbers, &[0, 0], Action::Allow);
    }
}

/// The kernel reads 32 bits of the command, whatever stands above.
#[test]
fn without_namespaces_only_listed_ioctls_pass() {
    assert!(ioctls::ALLOWED.is_sorted_by(|a, b| a < b));
    for command in ioctls::ALLOWED {
        plainly(Sockets::None, 7, "ioctl", &[0, *command], Action::Allow);
    }
    for command in [
        0x4008_6602, // FS_IOC_SETFLAGS, and for 32 bits
        0x4004_6602,
        0x4008_7602, // FS_IOC_SETVERSION, and for 32 bits
        0x4004_7602,
        0x401c_5820, // FS_IOC_FSSETXATTR
        0x400c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
        0xc018_5879, // FITRIM
        0xc004_5877, // FIFREEZE
        0x4080_6685, // FS_IOC_ENABLE_VERITY
        0x4181_9432, // FS_IOC_SETFSLABEL
        0xc018_9436, // FIDEDUPERANGE
        0x5000_9401, // BTRFS_IOC_SNAP_CREATE
        0x4008_941a, // BTRFS_IOC_SUBVOL_SETFLAGS
        0x4008_6604, // EXT4_IOC_SETVERSION
        0xc028_660f, // EXT4_IOC_MOVE_EXT
        0x0000_6609, // EXT4_IOC_MIGRATE
        0x0000_8901, // FIOSETOWN
        0x0000_8902, // SIOCSPGRP
        0x0000_b703, // NS_GET_NSTYPE
        0,
        u64::from(u32::MAX),
    ] {
        plainly(Sockets::None, 7, "ioctl", &[0, command], Action::Errno(ENOTTY));
    }
    // TIOCSTI, as everywhere.
    plainly(Sockets::None, 7, "ioctl", &[0, 0x5412], PERM);
}

#[test]
fn what_an_older_landlock_does_not_know_is_asked_or_refused() {
    for (landlock, action) in [(1, Action::Notify), (2, Action::Notify), (3, Action::Allow)] {
        plainly_by_number(landlock, (76, 45), &[0, 0], action);
    }
    let refused = Action::Errno(EACCES);
    // O_RDONLY | O_TRUNC, the mode that is neither, and what Landlock does see.
    for (flags, action) in
        [(0o1000, refused), (0o1003, refused), (0o1001, Action::Allow), (0o1002, Action::Allow)]
    {
        plainly(Sockets::None, 2, "openat", &[0, 0, flags], action);
        plainly(Sockets::None, 2, "open", &[0, flags], action);
        plainly(Sockets::None, 3, "openat", &[0, 0, flags], Action::Allow);
    }
    for (landlock, action) in [(1, Action::Notify), (5, Action::Notify), (6, Action::Allow)] {
        for numbers in [(62, 129), (200, 130), (234, 131), (129, 138), (297, 240), (424, 424)] {
            plainly_by_number(landlock, numbers, &[0, 0], action);
        }
    }
    for command in [8, 15] {
        plainly(Sockets::None, 5, "fcntl", &[1, command], PERM);
    }
    plainly(Sockets::None, 5, "fcntl", &[1, 2], Action::Allow);
}

/// A call that may have no row at all.
#[track_caller]
fn plainly_by_number(landlock: u32, numbers: (u32, u32), arguments: &[u64], action: Action) {
    for (arch, number) in [(Arch::X86_64, numbers.0), (Arch::Aarch64, numbers.1)] {
        let tables = plain::tables(
            Sockets::None,
            Ground::Plain { landlock, syscall_proxy: SyscallProxy::Asked },
        );
        let program = compile(&with(arch, NewProcesses::Allowed, Connects::Free, &tables));
        let mut registers = [0; 6];
        registers[..arguments.len()].copy_from_slice(arguments);
        let call = Call { number, arch: arch.audit(), arguments: registers };
        assert_eq!(run(&program, &call).0, encode(action), "{number} version {landlock}");
    }
}

/// The numbers of the rows for fewer walls are the kernel's.
#[cfg(target_os = "linux")]
#[test]
fn numbers_of_the_plain_rows_are_those_of_the_c_library() {
    macro_rules! same {
        ($($name:ident $number:ident)*) => {$({
            let all = [plain::NO_SOCKETS, plain::PLAIN, plain::BEFORE_TRUNCATE, plain::BEFORE_SCOPES];
            let row = all.into_iter().flatten().find(|row| row.call.name == stringify!($name));
            let call = row.unwrap_or_else(|| panic!(stringify!($name))).call;
            let here = if cfg!(target_arch = "x86_64") { call.x86_64 } else { call.aarch64 };
            assert_eq!(here.map(i64::from), Some(i64::from(libc::$number)), stringify!($name));
        })*};
    }
    same! {
        socket SYS_socket socketpair SYS_socketpair connect SYS_connect bind SYS_bind
        listen SYS_listen fchmod SYS_fchmod fchmodat SYS_fchmodat fchown SYS_fchown
        fchownat SYS_fchownat utimensat SYS_utimensat setxattr SYS_setxattr
        lsetxattr SYS_lsetxattr fsetxattr SYS_fsetxattr removexattr SYS_removexattr
        lremovexattr SYS_lremovexattr fremovexattr SYS_fremovexattr ioctl SYS_ioctl
        getxattr SYS_getxattr lgetxattr SYS_lgetxattr listxattr SYS_listxattr
        llistxattr SYS_llistxattr
        fanotify_init SYS_fanotify_init inotify_add_watch SYS_inotify_add_watch shmget SYS_shmget
        shmat SYS_shmat shmctl SYS_shmctl semget SYS_semget semop SYS_semop
        semtimedop SYS_semtimedop semctl SYS_semctl msgget SYS_msgget msgsnd SYS_msgsnd
        msgrcv SYS_msgrcv msgctl SYS_msgctl mq_open SYS_mq_open mq_unlink SYS_mq_unlink
        prlimit64 SYS_prlimit64 setpriority SYS_setpriority sched_setparam SYS_sched_setparam
        sched_setscheduler SYS_sched_setscheduler sched_setattr SYS_sched_setattr
        sched_setaffinity SYS_sched_setaffinity ioprio_set SYS_ioprio_set
        move_pages SYS_move_pages seccomp SYS_seccomp truncate SYS_truncate
        openat SYS_openat kill SYS_kill tkill SYS_tkill tgkill SYS_tgkill
        rt_sigqueueinfo SYS_rt_sigqueueinfo rt_tgsigqueueinfo SYS_rt_tgsigqueueinfo
        pidfd_send_signal SYS_pidfd_send_signal fcntl SYS_fcntl
    }
    #[cfg(target_arch = "x86_64")]
    same! {
        chmod SYS_chmod chown SYS_chown lchown SYS_lchown utime SYS_utime utimes SYS_utimes
        futimesat SYS_futimesat fchmodat2 SYS_fchmodat2 open SYS_open
    }
}
