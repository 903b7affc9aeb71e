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
use crate::{Connects, Ground, NewProcesses, Sockets, SyscallProxy, Watching};

mod without_namespaces;

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
                        // The longest: nothing is taken away to announce paths.
                        let program = super::program(
                            arch,
                            processes,
                            connects,
                            sockets,
                            ground,
                            Watching::Paths,
                        );
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
