//! The refused system calls, one reason per line. docs/security/syscalls.md shows this table (see `docs.rs`).
//!
//! Refusals are errors, not signals, so that programs go on without: EPERM; ENOSYS where C
//! libraries and runtimes then try an older call; for sockets what a kernel without the
//! protocol says. Everything that is not here is allowed, and most of it never reaches the filter.

use std::collections::BTreeMap;

use crate::filter::{
    Action, Arch, EAFNOSUPPORT, ENOSYS, EPERM, EPROTONOSUPPORT, Filter, Rule, Test, Width,
};
use crate::{Connects, NewProcesses};

/// A system call and its number on each architecture that has it.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    /// The name in the kernel's table.
    pub name: &'static str,
    /// The number on x86-64, if the call exists there.
    pub x86_64: Option<u32>,
    /// The number on 64-bit ARM, if the call exists there.
    pub aarch64: Option<u32>,
}

impl Number {
    /// The number on one architecture.
    #[must_use]
    pub fn on(self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }
}

/// A condition on one argument; with [`Sense::Not`] on its failing.
#[derive(Debug, Clone)]
pub struct Condition {
    argument: u8,
    width: Width,
    test: Test,
    sense: Sense,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    Is,
    Not,
}

/// A call that is refused when every condition holds.
#[derive(Debug)]
pub struct Refusal {
    pub call: Number,
    pub conditions: &'static [Condition],
    /// The conditions in words; empty when there are none.
    pub when: &'static str,
    pub action: Action,
    pub reason: &'static str,
}

pub(super) const fn both(name: &'static str, x86_64: u32, aarch64: u32) -> Number {
    Number { name, x86_64: Some(x86_64), aarch64: Some(aarch64) }
}

/// Calls since Linux 5.1 have one number everywhere.
pub(super) const fn same(name: &'static str, number: u32) -> Number {
    both(name, number, number)
}

pub(super) const fn x86(name: &'static str, number: u32) -> Number {
    Number { name, x86_64: Some(number), aarch64: None }
}

pub(super) const fn always(call: Number, errno: u16, reason: &'static str) -> Refusal {
    Refusal { call, conditions: &[], when: "", action: Action::Errno(errno), reason }
}

pub(super) const fn when(
    call: Number,
    conditions: &'static [Condition],
    when: &'static str,
    errno: u16,
    reason: &'static str,
) -> Refusal {
    Refusal { call, conditions, when, action: Action::Errno(errno), reason }
}

pub(super) const fn asked(
    call: Number,
    conditions: &'static [Condition],
    when: &'static str,
    reason: &'static str,
) -> Refusal {
    Refusal { call, conditions, when, action: Action::Notify, reason }
}

pub(super) const fn int(argument: u8, test: Test, sense: Sense) -> Condition {
    Condition { argument, width: Width::Low32, test, sense }
}

pub(super) const fn one_of(argument: u8, set: &'static [u64]) -> Condition {
    int(argument, Test::OneOf(set), Sense::Is)
}

pub(super) const fn none_of(argument: u8, set: &'static [u64]) -> Condition {
    int(argument, Test::OneOf(set), Sense::Not)
}

pub(super) const fn any_bit(argument: u8, mask: u64) -> Condition {
    int(argument, Test::AnyBit(mask), Sense::Is)
}

const CLONE_NEWTIME: u64 = 0x80;
const CLONE_THREAD: u64 = 0x1_0000;
/// Mount, cgroup, uts, ipc, user, pid and network namespaces.
const CLONE_NEW: u64 = 0x7e02_0000;
const SET_ID: u64 = 0o6000;
/// O_CREAT and O_TMPFILE's own bit: without them the mode is not looked at, and may be anything.
const CREATES: u64 = 0o20_000_100;
const MSG_FASTOPEN: u64 = 0x2000_0000;
pub(super) const AF_UNIX: u64 = 1;
pub(super) const AF_INET: u64 = 2;
pub(super) const AF_INET6: u64 = 10;
pub(super) const AF_NETLINK: u64 = 16;
const NETLINK_ROUTE: u64 = 0;
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
const TIOCSETD: u64 = 0x5423;
const NEW_LISTENER: u64 = 8;

pub(super) const SOCKET: Number = both("socket", 41, 198);
const IOCTL: Number = both("ioctl", 16, 29);
const CLONE: Number = both("clone", 56, 220);

/// Any, TCP, UDP, UDP-Lite, and ICMP for unprivileged ping.
const INTERNET_PROTOCOLS: &[u64] = &[0, 1, 6, 17, 58, 136];
/// PER_LINUX, and the question which one it is.
const PERSONALITIES: &[u64] = &[0, 0xffff_ffff];
const SET_ID_REASON: &str = "would leave a set-uid or set-gid file of the caller on the host";
const SET_ID_WHEN: &str = "mode has set-uid or set-gid";
const CREATES_SET_ID_WHEN: &str = "creates, and mode has set-uid or set-gid";
/// The sandbox's init, and outside of a pid namespace the host's.
const INIT: &[u64] = &[1];
const INIT_WHEN: &str = "of process 1";
const INIT_REASON: &str = "slows the sandbox's init, or has it fail";
const GROUP_WHEN: &str = "of a group or a user";
/// A process can join the group that init is in.
const GROUP_REASON: &str = "init may be one of them";
const FAST_OPEN_REASON: &str = "connects without connect, past rules on it";

pub const ALWAYS: &[Refusal] = &[
    always(same("io_uring_setup", 425), EPERM, "does what other calls do, unseen by this filter"),
    always(same("io_uring_enter", 426), EPERM, "as io_uring_setup"),
    always(same("io_uring_register", 427), EPERM, "as io_uring_setup"),
    always(both("bpf", 321, 280), EPERM, "loads programs into the kernel"),
    always(both("perf_event_open", 298, 241), EPERM, "watches the machine; many holes"),
    always(both("userfaultfd", 323, 282), EPERM, "stops the kernel in mid-copy; used by exploits"),
    always(both("add_key", 248, 217), EPERM, "keyrings know nothing of namespaces"),
    always(both("request_key", 249, 218), EPERM, "as add_key; starts a program on the host"),
    always(both("keyctl", 250, 219), EPERM, "as add_key"),
    always(both("mount", 165, 40), EPERM, "changes what paths mean"),
    always(both("umount2", 166, 39), EPERM, "uncovers what a mount hides"),
    always(both("pivot_root", 155, 41), EPERM, "changes what paths mean"),
    always(both("chroot", 161, 51), EPERM, "changes what paths mean"),
    always(same("move_mount", 429), EPERM, "as mount"),
    always(same("open_tree", 428), EPERM, "as mount"),
    always(same("open_tree_attr", 467), EPERM, "as mount"),
    always(same("fsopen", 430), EPERM, "as mount; file system parsers"),
    always(same("fsconfig", 431), EPERM, "as fsopen"),
    always(same("fsmount", 432), EPERM, "as fsopen"),
    always(same("fspick", 433), EPERM, "as fsopen"),
    always(same("mount_setattr", 442), EPERM, "as mount"),
    always(both("setns", 308, 268), EPERM, "enters other namespaces"),
    when(
        both("unshare", 272, 97),
        &[Condition {
            argument: 0,
            width: Width::Full64,
            test: Test::AnyBit(CLONE_NEW | CLONE_NEWTIME),
            sense: Sense::Is,
        }],
        "flags ask for a namespace",
        EPERM,
        "capabilities over the kernel's widest side",
    ),
    when(
        CLONE,
        &[any_bit(0, CLONE_NEW)],
        "flags ask for a namespace",
        EPERM,
        "as unshare; the kernel reads 32 bits",
    ),
    always(same("clone3", 435), ENOSYS, "flags are behind a pointer; libraries fall back to clone"),
    always(both("ptrace", 101, 117), EPERM, "takes over other processes"),
    always(both("process_vm_readv", 310, 270), EPERM, "reads other processes"),
    always(both("process_vm_writev", 311, 271), EPERM, "writes other processes"),
    always(same("pidfd_getfd", 438), EPERM, "takes descriptors of other processes"),
    always(same("process_mrelease", 448), EPERM, "acts on the memory of other processes"),
    always(both("migrate_pages", 256, 238), EPERM, "acts on the memory of other processes"),
    always(both("kcmp", 312, 272), EPERM, "compares kernel pointers of other processes"),
    when(both("prlimit64", 302, 261), &[one_of(0, INIT)], INIT_WHEN, EPERM, INIT_REASON),
    when(both("setpriority", 141, 140), &[one_of(1, INIT)], INIT_WHEN, EPERM, INIT_REASON),
    when(both("setpriority", 141, 140), &[none_of(0, &[0])], GROUP_WHEN, EPERM, GROUP_REASON),
    when(both("sched_setparam", 142, 118), &[one_of(0, INIT)], INIT_WHEN, EPERM, INIT_REASON),
    when(both("sched_setscheduler", 144, 119), &[one_of(0, INIT)], INIT_WHEN, EPERM, INIT_REASON),
    when(both("sched_setattr", 314, 274), &[one_of(0, INIT)], INIT_WHEN, EPERM, INIT_REASON),
    when(both("sched_setaffinity", 203, 122), &[one_of(0, INIT)], INIT_WHEN, EPERM, INIT_REASON),
    when(both("ioprio_set", 251, 30), &[one_of(1, INIT)], INIT_WHEN, EPERM, INIT_REASON),
    when(both("ioprio_set", 251, 30), &[none_of(0, &[1])], GROUP_WHEN, EPERM, GROUP_REASON),
    always(both("open_by_handle_at", 304, 265), EPERM, "opens by inode, past every mount"),
    when(
        IOCTL,
        &[one_of(1, &[TIOCSTI, TIOCLINUX])],
        "TIOCSTI, TIOCLINUX",
        EPERM,
        "types on a terminal",
    ),
    when(IOCTL, &[one_of(1, &[TIOCSETD])], "TIOCSETD", EPERM, "loads line disciplines; many holes"),
    when(
        SOCKET,
        &[none_of(0, &[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK])],
        "family is none of UNIX, INET, INET6, NETLINK",
        EAFNOSUPPORT,
        "VSOCK, PACKET, ALG, BLUETOOTH …: ways past a network namespace; many holes",
    ),
    when(
        SOCKET,
        &[one_of(0, &[AF_NETLINK]), none_of(2, &[NETLINK_ROUTE])],
        "NETLINK but not ROUTE",
        EPROTONOSUPPORT,
        "netfilter, audit, crypto …; only interfaces are asked for by C libraries",
    ),
    when(
        SOCKET,
        &[
            one_of(0, &[AF_INET, AF_INET6]),
            int(1, Test::Masked { mask: 0xf, value: 10 }, Sense::Is),
        ],
        "type PACKET",
        EAFNOSUPPORT,
        "is the family PACKET in disguise",
    ),
    when(
        SOCKET,
        &[one_of(0, &[AF_INET, AF_INET6]), none_of(2, INTERNET_PROTOCOLS)],
        "INET but not TCP, UDP or ICMP",
        EPROTONOSUPPORT,
        "SCTP, DCCP, L2TP: many holes; MPTCP: past rules on TCP",
    ),
    when(
        both("socketpair", 53, 199),
        &[none_of(0, &[AF_UNIX])],
        "family is not UNIX",
        EAFNOSUPPORT,
        "nothing else has pairs but old holes",
    ),
    when(
        both("sendto", 44, 206),
        &[any_bit(3, MSG_FASTOPEN)],
        "MSG_FASTOPEN",
        EPERM,
        FAST_OPEN_REASON,
    ),
    when(
        both("sendmsg", 46, 211),
        &[any_bit(2, MSG_FASTOPEN)],
        "MSG_FASTOPEN",
        EPERM,
        FAST_OPEN_REASON,
    ),
    when(
        both("sendmmsg", 307, 269),
        &[any_bit(3, MSG_FASTOPEN)],
        "MSG_FASTOPEN",
        EPERM,
        FAST_OPEN_REASON,
    ),
    when(
        both("personality", 135, 92),
        &[none_of(0, PERSONALITIES)],
        "changes it",
        EPERM,
        "switches off address randomisation and no-execute",
    ),
    when(x86("chmod", 90), &[any_bit(1, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(both("fchmod", 91, 52), &[any_bit(1, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(both("fchmodat", 268, 53), &[any_bit(2, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(same("fchmodat2", 452), &[any_bit(2, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(x86("mkdir", 83), &[any_bit(1, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(both("mkdirat", 258, 34), &[any_bit(2, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(x86("mknod", 133), &[any_bit(1, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(both("mknodat", 259, 33), &[any_bit(2, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(x86("creat", 85), &[any_bit(1, SET_ID)], SET_ID_WHEN, EPERM, SET_ID_REASON),
    when(
        x86("open", 2),
        &[any_bit(1, CREATES), any_bit(2, SET_ID)],
        CREATES_SET_ID_WHEN,
        EPERM,
        SET_ID_REASON,
    ),
    when(
        both("openat", 257, 56),
        &[any_bit(2, CREATES), any_bit(3, SET_ID)],
        CREATES_SET_ID_WHEN,
        EPERM,
        SET_ID_REASON,
    ),
    always(
        same("openat2", 437),
        ENOSYS,
        "its mode is behind a pointer; programs fall back to openat",
    ),
    always(both("kexec_load", 246, 104), EPERM, "replaces the kernel"),
    always(both("kexec_file_load", 320, 294), EPERM, "replaces the kernel"),
    always(both("init_module", 175, 105), EPERM, "loads code into the kernel"),
    always(both("finit_module", 313, 273), EPERM, "loads code into the kernel"),
    always(both("delete_module", 176, 106), EPERM, "removes code from the kernel"),
    always(both("reboot", 169, 142), EPERM, "stops the machine"),
    always(both("swapon", 167, 224), EPERM, "belongs to the machine's administrator"),
    always(both("swapoff", 168, 225), EPERM, "belongs to the machine's administrator"),
    always(both("acct", 163, 89), EPERM, "belongs to the machine's administrator"),
    always(both("quotactl", 179, 60), EPERM, "belongs to the machine's administrator"),
    always(same("quotactl_fd", 443), EPERM, "belongs to the machine's administrator"),
    always(both("sethostname", 170, 161), EPERM, "belongs to the machine's administrator"),
    always(both("setdomainname", 171, 162), EPERM, "belongs to the machine's administrator"),
    always(both("settimeofday", 164, 170), EPERM, "the clock is everybody's"),
    always(both("clock_settime", 227, 112), EPERM, "the clock is everybody's"),
    always(both("adjtimex", 159, 171), EPERM, "the clock is everybody's"),
    always(both("clock_adjtime", 305, 266), EPERM, "the clock is everybody's"),
    always(both("syslog", 103, 116), EPERM, "the kernel's messages tell its addresses"),
    always(both("vhangup", 153, 58), EPERM, "ends other sessions"),
    always(both("lookup_dcookie", 212, 18), EPERM, "tells host paths"),
    always(both("nfsservctl", 180, 42), EPERM, "long gone; should it be back"),
    always(x86("uselib", 134), EPERM, "an exec of its own kind; old holes"),
    always(x86("iopl", 172), EPERM, "talks to devices"),
    always(x86("ioperm", 173), EPERM, "talks to devices"),
    always(x86("modify_ldt", 154), EPERM, "16-bit segments; many holes"),
];

/// Also refused with `--no-subprocess`, by the launcher: the first execve is the command's own start.
pub const NO_NEW_PROCESSES: &[Refusal] = &[
    asked(x86("fork", 57), &[], "", "a new process"),
    asked(x86("vfork", 58), &[], "", "a new process"),
    asked(
        CLONE,
        &[int(0, Test::AnyBit(CLONE_THREAD), Sense::Not)],
        "makes no thread",
        "a new process",
    ),
    asked(both("execve", 59, 221), &[], "", "another program, after the launching call"),
    asked(both("execveat", 322, 281), &[], "", "another program"),
    NO_OTHER_LISTENER,
];

/// With rules for networks or for every port of a host: the launcher hears of each connection
/// and always lets it go on, since what is not allowed has no listener.
pub const ANNOUNCED: &[Refusal] = &[
    asked(both("connect", 42, 203), &[], "", "a listener may have to be made"),
    NO_OTHER_LISTENER,
];

pub(super) const NO_OTHER_LISTENER: Refusal = when(
    both("seccomp", 317, 277),
    &[any_bit(1, NEW_LISTENER)],
    "asks for a listener",
    EPERM,
    "would answer in the launcher's place",
);

#[cfg(test)]
pub fn filter(arch: Arch, processes: NewProcesses, connects: Connects) -> Filter {
    with(arch, processes, connects, &[])
}

/// The refusals of every sandbox, and `more` of one that has fewer walls.
pub fn with(
    arch: Arch,
    processes: NewProcesses,
    connects: Connects,
    more: &[&'static [Refusal]],
) -> Filter {
    let refused = match processes {
        NewProcesses::Allowed => &[][..],
        NewProcesses::Refused => NO_NEW_PROCESSES,
    };
    let announced = match connects {
        Connects::Free => &[][..],
        Connects::Announced => ANNOUNCED,
    };
    let more = more.iter().copied().flatten();
    let all: Vec<&Refusal> = ALWAYS.iter().chain(refused).chain(announced).chain(more).collect();
    let mut rules = BTreeMap::new();
    // From the last to the first, so that of two refusals of one call the first is asked first.
    for refusal in all.into_iter().rev() {
        if let Some(number) = refusal.call.on(arch) {
            let rest = rules.remove(&number).unwrap_or(Rule::Do(Action::Allow));
            rules.insert(number, refusal.rule(rest));
        }
    }
    Filter { arch, rules }
}

impl Refusal {
    /// This refusal where its conditions hold, and `rest` everywhere else.
    pub(crate) fn rule(&self, rest: Rule) -> Rule {
        let mut rule = Rule::Do(self.action);
        for Condition { argument, width, test, sense } in self.conditions.iter().rev() {
            let (then, otherwise) = match sense {
                Sense::Is => (rule, rest.clone()),
                Sense::Not => (rest.clone(), rule),
            };
            rule = Rule::If {
                argument: *argument,
                width: *width,
                test: test.clone(),
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            };
        }
        rule
    }
}
