//! What our rules say about calls that matter, with high bits set where the kernel ignores them.

use crate::compile::{compile, encode};
use crate::decide::Call;
use crate::filter::{
    Action, Arch, EACCES, EAFNOSUPPORT, ENOSYS, ENOTTY, EOPNOTSUPP, EPERM, EPROTONOSUPPORT,
};
use crate::interpret::run;
use crate::ioctls;
use crate::plain;
use crate::rules::{ALWAYS, ANNOUNCED, NO_NEW_PROCESSES, Number, filter, with};
use crate::{Connects, Ground, NewProcesses, Sockets, SyscallProxy};

const HIGH: [u64; 3] = [0, 1 << 32, 0xffff_ffff << 32];
const PERM: Action = Action::Errno(EPERM);

fn number(name: &str) -> Number {
    let rows = ALWAYS.iter().chain(NO_NEW_PROCESSES).chain(ANNOUNCED);
    let found = rows.map(|refusal| refusal.call).find(|call| call.name == name);
    found.unwrap_or_else(|| panic!("{name}"))
}

/// Decides by the compiled program, on every architecture that has the call, with each argument's
/// high half set in turn.
#[track_caller]
fn decides(processes: NewProcesses, name: &str, arguments: &[u64], action: Action) {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let Some(number) = number(name).on(arch) else { continue };
        let filter = filter(arch, processes, Connects::Free);
        let program = compile(&filter);
        for high in HIGH {
            let mut registers = [high; 6];
            for (register, argument) in registers.iter_mut().zip(arguments) {
                *register = high | argument;
            }
            let call = Call { number, arch: arch.audit(), arguments: registers };
            assert_eq!(filter.decide(&call), action, "{name} {registers:x?}");
            assert_eq!(run(&program, &call).0, encode(action), "{name} {registers:x?}");
        }
    }
}

#[track_caller]
fn usually(name: &str, arguments: &[u64], action: Action) {
    for processes in [NewProcesses::Allowed, NewProcesses::Refused] {
        decides(processes, name, arguments, action);
    }
}

#[test]
fn terminal_commands() {
    for command in [0x5412, 0x541c, 0x5423] {
        usually("ioctl", &[0, command], PERM);
    }
    // TCGETS, TIOCGWINSZ, FIONREAD, and TIOCSTI in the wrong place.
    for command in [0x5401, 0x5413, 0x541b] {
        usually("ioctl", &[0x5412, command, 0x5412], Action::Allow);
    }
}

#[test]
fn socket_families_types_and_protocols() {
    let (family, protocol) = (Action::Errno(EAFNOSUPPORT), Action::Errno(EPROTONOSUPPORT));
    for (arguments, action) in [
        ([1, 1, 0], Action::Allow),
        ([1, 0x80801, 0], Action::Allow),
        ([2, 1, 6], Action::Allow),
        ([10, 2, 17], Action::Allow),
        ([2, 2, 1], Action::Allow),
        ([16, 3, 0], Action::Allow),
        ([16, 3, 15], protocol),
        ([16, 0x80002, 9], protocol),
        ([2, 1, 132], protocol),
        ([2, 1, 262], protocol),
        ([2, 10, 0], family),
        ([2, 0x8000a, 768], family),
        ([0, 1, 0], family),
        ([17, 3, 0], family),
        ([38, 5, 0], family),
        ([40, 1, 0], family),
        ([31, 3, 1], family),
        ([0xffff_ffff, 1, 0], family),
    ] {
        usually("socket", &arguments, action);
    }
    usually("socketpair", &[1, 2, 0], Action::Allow);
    usually("socketpair", &[2, 1, 0], family);
    usually("socketpair", &[30, 1, 0], family);
}

#[test]
fn namespaces() {
    // clone's flags are an unsigned long of which the kernel reads 32 bits.
    for flag in
        [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]
    {
        usually("clone", &[flag | 17], PERM);
        usually("clone", &[flag | 0x1_0000], PERM);
        usually("unshare", &[flag], PERM);
    }
    usually("unshare", &[0x80], PERM);
    // CLONE_FILES, CLONE_FS.
    usually("unshare", &[0x600], Action::Allow);
    usually("clone3", &[], Action::Errno(ENOSYS));
    usually("setns", &[], PERM);
}

#[test]
fn personalities() {
    for allowed in [0, 0xffff_ffff] {
        usually("personality", &[allowed], Action::Allow);
    }
    for changed in [8, 0x4_0000, 0x40_0000, 0x2_0000] {
        usually("personality", &[changed], PERM);
    }
}

#[test]
fn fast_open() {
    for (name, index) in [("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)] {
        for (flags, action) in
            [(0x2000_0000, PERM), (0x2000_4000, PERM), (0x4000, Action::Allow), (0, Action::Allow)]
        {
            let mut arguments = [0; 4];
            arguments[index] = flags;
            usually(name, &arguments, action);
        }
    }
}

#[test]
fn set_id_modes() {
    const FIFO: u64 = 0o010_000;
    for (name, index) in [
        ("chmod", 1),
        ("fchmod", 1),
        ("fchmodat", 2),
        ("fchmodat2", 2),
        ("mkdir", 1),
        ("mkdirat", 2),
        ("mknod", 1),
        ("mknodat", 2),
        ("creat", 1),
    ] {
        for (mode, action) in [
            (0o4755, PERM),
            (0o2755, PERM),
            (0o6000, PERM),
            (FIFO | 0o4600, PERM),
            (0o1777, Action::Allow),
            (0o644, Action::Allow),
            (FIFO | 0o600, Action::Allow),
        ] {
            let mut arguments = [0; 4];
            arguments[index] = mode;
            usually(name, &arguments, action);
        }
    }
}

#[test]
fn set_id_modes_of_new_files() {
    const CREATE: u64 = 0o100;
    const TEMPORARY: u64 = 0o20_200_000;
    for (name, index) in [("open", 1), ("openat", 2)] {
        for (flags, mode, action) in [
            (CREATE | 1, 0o4755, PERM),
            (CREATE | 0o200, 0o2755, PERM),
            (TEMPORARY | 2, 0o4700, PERM),
            (CREATE | 1, 0o644, Action::Allow),
            // Without O_CREAT the mode is whatever was in the register.
            (0, 0o4755, Action::Allow),
            (0o200_000, 0o6755, Action::Allow),
        ] {
            let mut arguments = [0; 4];
            arguments[index] = flags;
            arguments[index + 1] = mode;
            usually(name, &arguments, action);
        }
    }
    usually("openat2", &[], Action::Errno(ENOSYS));
}

#[test]
fn processes_are_refused_only_when_asked_for() {
    use NewProcesses::{Allowed, Refused};
    // What pthread_create passes, and what fork and posix_spawn pass.
    const THREAD: u64 = 0x3d_0f00;
    const FORK: u64 = 0x0120_0011;
    const SPAWN: u64 = 0x4111;
    for name in ["fork", "vfork", "execve", "execveat"] {
        decides(Allowed, name, &[], Action::Allow);
        decides(Refused, name, &[], Action::Notify);
    }
    for flags in [FORK, SPAWN, 17] {
        decides(Allowed, "clone", &[flags], Action::Allow);
        decides(Refused, "clone", &[flags], Action::Notify);
    }
    for processes in [Allowed, Refused] {
        decides(processes, "clone", &[THREAD], Action::Allow);
    }
    decides(Allowed, "seccomp", &[1, 8], Action::Allow);
    decides(Refused, "seccomp", &[1, 8], PERM);
    decides(Refused, "seccomp", &[1, 0], Action::Allow);
}

#[test]
fn foreign_calls() {
    const I386: u32 = 0x4000_0003;
    let refused = Action::Errno(ENOSYS);
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let filter = filter(arch, NewProcesses::Allowed, Connects::Free);
        let program = compile(&filter);
        let decide = |number, arch| {
            let call = Call { number, arch, arguments: [0; 6] };
            let action = filter.decide(&call);
            assert_eq!(run(&program, &call).0, encode(action), "{number:#x}");
            action
        };
        for number in [0, 20, 39, 0x4000_0027] {
            assert_eq!(decide(number, I386), refused);
            assert_eq!(decide(number, 0), refused);
        }
        let getpid = match arch {
            Arch::X86_64 => 39,
            Arch::Aarch64 => 172,
        };
        assert_eq!(decide(getpid, arch.audit()), Action::Allow);
    }
    let filter = filter(Arch::X86_64, NewProcesses::Allowed, Connects::Free);
    for number in [0x4000_0000, 0x4000_0027, 0x4000_0209, u32::MAX] {
        let call = Call { number, arch: Arch::X86_64.audit(), arguments: [0; 6] };
        assert_eq!(filter.decide(&call), refused, "{number:#x}");
        assert_eq!(run(&compile(&filter), &call).0, encode(refused), "{number:#x}");
    }
}

/// Most calls are answered without a look at their arguments, so the kernel remembers them.
#[test]
fn most_calls_are_allowed_outright() {
    let filter = filter(Arch::X86_64, NewProcesses::Allowed, Connects::Free);
    assert!(filter.rules.len() < 100, "{}", filter.rules.len());
    // read, write, close, stat, fstat, lseek, mmap, futex, getpid, epoll_wait, clock_gettime.
    for number in [0, 1, 3, 4, 5, 8, 9, 202, 39, 232, 228] {
        assert!(!filter.rules.contains_key(&number), "{number}");
    }
}

#[test]
fn every_refusal_has_a_reason_and_words_for_its_conditions() {
    for refusal in ALWAYS.iter().chain(NO_NEW_PROCESSES) {
        assert!(!refusal.reason.is_empty(), "{refusal:?}");
        assert_eq!(refusal.when.is_empty(), refusal.conditions.is_empty(), "{refusal:?}");
    }
}

/// Our numbers against the C library's, on the machine that runs the tests.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn numbers_are_the_c_librarys() {
    let arch = Arch::named(std::env::consts::ARCH).unwrap();
    macro_rules! same {
        ($($name:ident $constant:ident)*) => { $(
            assert_eq!(
                number(stringify!($name)).on(arch).map(i64::from),
                Some(libc::$constant),
                stringify!($name)
            );
        )* };
    }
    same! {
        io_uring_setup SYS_io_uring_setup io_uring_enter SYS_io_uring_enter
        io_uring_register SYS_io_uring_register bpf SYS_bpf perf_event_open SYS_perf_event_open
        userfaultfd SYS_userfaultfd add_key SYS_add_key request_key SYS_request_key
        keyctl SYS_keyctl mount SYS_mount umount2 SYS_umount2 pivot_root SYS_pivot_root
        chroot SYS_chroot move_mount SYS_move_mount open_tree SYS_open_tree fsopen SYS_fsopen
        fsconfig SYS_fsconfig fsmount SYS_fsmount fspick SYS_fspick
        mount_setattr SYS_mount_setattr setns SYS_setns unshare SYS_unshare clone SYS_clone
        clone3 SYS_clone3 ptrace SYS_ptrace process_vm_readv SYS_process_vm_readv
        process_vm_writev SYS_process_vm_writev pidfd_getfd SYS_pidfd_getfd
        process_mrelease SYS_process_mrelease migrate_pages SYS_migrate_pages kcmp SYS_kcmp
        open_by_handle_at SYS_open_by_handle_at ioctl SYS_ioctl socket SYS_socket
        socketpair SYS_socketpair sendto SYS_sendto sendmsg SYS_sendmsg sendmmsg SYS_sendmmsg
        personality SYS_personality fchmod SYS_fchmod fchmodat SYS_fchmodat
        mkdirat SYS_mkdirat mknodat SYS_mknodat openat SYS_openat openat2 SYS_openat2
        kexec_load SYS_kexec_load kexec_file_load SYS_kexec_file_load
        init_module SYS_init_module finit_module SYS_finit_module
        delete_module SYS_delete_module reboot SYS_reboot swapon SYS_swapon swapoff SYS_swapoff
        acct SYS_acct quotactl SYS_quotactl quotactl_fd SYS_quotactl_fd
        sethostname SYS_sethostname setdomainname SYS_setdomainname
        settimeofday SYS_settimeofday clock_settime SYS_clock_settime adjtimex SYS_adjtimex
        clock_adjtime SYS_clock_adjtime syslog SYS_syslog vhangup SYS_vhangup
        lookup_dcookie SYS_lookup_dcookie nfsservctl SYS_nfsservctl execve SYS_execve
        execveat SYS_execveat seccomp SYS_seccomp
    }
    #[cfg(target_arch = "x86_64")]
    same! {
        chmod SYS_chmod fchmodat2 SYS_fchmodat2 mkdir SYS_mkdir mknod SYS_mknod creat SYS_creat
        open SYS_open uselib SYS_uselib iopl SYS_iopl ioperm SYS_ioperm
        modify_ldt SYS_modify_ldt fork SYS_fork vfork SYS_vfork
    }
}

/// The kernel takes no longer program.
const LONGEST_PROGRAM: usize = 4096;

#[test]
fn every_program_is_one_that_the_kernel_takes() {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        for processes in [NewProcesses::Allowed, NewProcesses::Refused] {
            for connects in [Connects::Free, Connects::Announced] {
                for sockets in [Sockets::All, Sockets::Internet, Sockets::Proxied, Sockets::None] {
                    for ground in [
                        Ground::Namespaces,
                        Ground::Plain { landlock: 0, syscall_proxy: SyscallProxy::Asked },
                    ] {
                        let program = super::program(arch, processes, connects, sockets, ground);
                        let length = program.len();
                        let fits = (1..=LONGEST_PROGRAM).contains(&length);
                        assert!(fits, "{arch:?} {processes:?} {sockets:?} {ground:?}: {length}");
                    }
                }
            }
        }
    }
}

#[test]
fn connections_are_announced_where_asked_for_and_then_only() {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        for (connects, action) in
            [(Connects::Free, Action::Allow), (Connects::Announced, Action::Notify)]
        {
            for processes in [NewProcesses::Allowed, NewProcesses::Refused] {
                let filter = filter(arch, processes, connects);
                let number = number("connect").on(arch).unwrap();
                let call = Call { number, arch: arch.audit(), arguments: [7; 6] };
                assert_eq!(filter.decide(&call), action);
                assert_eq!(run(&compile(&filter), &call).0, encode(action));
            }
        }
    }
}

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
