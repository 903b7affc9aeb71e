//! What is refused besides where fewer walls stand around the command: no network namespace, or
//! no namespaces at all.
//!
//! Landlock keeps files from being opened, made, moved and removed. It has nothing to say about
//! their modes, owners, times and extended attributes, about other ways to shared memory, and,
//! before its sixth version, about signals. What a filter can tell from numbers is refused here; what
//! depends on which file or process is meant, the launcher is asked (see `linux/syscall_proxy.rs`).

use crate::filter::{EACCES, ENOSYS, ENOTTY, EOPNOTSUPP, EPERM, Test};
use crate::ioctls;
use crate::rules::{
    AF_INET, AF_INET6, AF_UNIX, NO_OTHER_LISTENER, Refusal, SOCKET, Sense, always, any_bit, asked,
    both, int, none_of, one_of, same, when, x86,
};
use crate::{Ground, Sockets, SyscallProxy};

/// Calls that are decided by file or process, by number: the launcher carries them out itself.
#[allow(missing_docs, reason = "each constant is the system call of its name")]
pub mod call {
    use super::{both, same, x86};
    use crate::rules::Number;

    pub const CHMOD: Number = x86("chmod", 90);
    pub const FCHMOD: Number = both("fchmod", 91, 52);
    pub const FCHMODAT: Number = both("fchmodat", 268, 53);
    pub const FCHMODAT2: Number = same("fchmodat2", 452);
    pub const CHOWN: Number = x86("chown", 92);
    pub const FCHOWN: Number = both("fchown", 93, 55);
    pub const LCHOWN: Number = x86("lchown", 94);
    pub const FCHOWNAT: Number = both("fchownat", 260, 54);
    pub const UTIME: Number = x86("utime", 132);
    pub const UTIMES: Number = x86("utimes", 235);
    pub const FUTIMESAT: Number = x86("futimesat", 261);
    pub const UTIMENSAT: Number = both("utimensat", 280, 88);
    pub const SETXATTR: Number = both("setxattr", 188, 5);
    pub const LSETXATTR: Number = both("lsetxattr", 189, 6);
    pub const FSETXATTR: Number = both("fsetxattr", 190, 7);
    pub const REMOVEXATTR: Number = both("removexattr", 197, 14);
    pub const LREMOVEXATTR: Number = both("lremovexattr", 198, 15);
    pub const FREMOVEXATTR: Number = both("fremovexattr", 199, 16);
    pub const GETXATTR: Number = both("getxattr", 191, 8);
    pub const LGETXATTR: Number = both("lgetxattr", 192, 9);
    pub const LISTXATTR: Number = both("listxattr", 194, 11);
    pub const LLISTXATTR: Number = both("llistxattr", 195, 12);
    pub const TRUNCATE: Number = both("truncate", 76, 45);
    pub const KILL: Number = both("kill", 62, 129);
    pub const TKILL: Number = both("tkill", 200, 130);
    pub const TGKILL: Number = both("tgkill", 234, 131);
    pub const RT_SIGQUEUEINFO: Number = both("rt_sigqueueinfo", 129, 138);
    pub const RT_TGSIGQUEUEINFO: Number = both("rt_tgsigqueueinfo", 297, 240);
    pub const PIDFD_SEND_SIGNAL: Number = same("pidfd_send_signal", 424);
}

const O_TRUNC: u64 = 0o1000;
/// How a file is opened: for reading 0, writing 1, both 2; 3 means neither and yet truncates.
const ACCESS_MODE: u64 = 3;
const F_SETOWN: u64 = 8;
const F_SETOWN_EX: u64 = 15;
const STREAM: u64 = 1;
const SEQPACKET: u64 = 5;
const SOCKET_TYPE: u64 = 0xf;
const TCP: u64 = 6;

const ATTRIBUTES: &str = "changes a file that was not granted for writing";
const READS: &str = "reads of a file that was not granted";
const OTHERS: &str = "acts on other processes of the user";
const SHARED: &str = "is shared with the host's programs";
const REACHES: &str = "no socket is there to be used";

const NO_DATAGRAM_PAIRS: Refusal = when(
    both("socketpair", 53, 199),
    &[
        int(1, Test::Masked { mask: SOCKET_TYPE, value: STREAM }, Sense::Not),
        int(1, Test::Masked { mask: SOCKET_TYPE, value: SEQPACKET }, Sense::Not),
    ],
    "type is neither STREAM nor SEQPACKET",
    EACCES,
    "half of a datagram pair sends to any address",
);

/// Without an own network namespace, where no network is asked for.
pub const NO_SOCKETS: &[Refusal] = &[
    always(SOCKET, EACCES, "the network, and unix sockets of the host"),
    NO_DATAGRAM_PAIRS,
    always(both("connect", 42, 203), EACCES, REACHES),
    always(both("bind", 49, 200), EACCES, REACHES),
    always(both("listen", 50, 201), EACCES, REACHES),
];

/// Without an own network namespace, where something is allowed: the launcher makes each connection
/// and puts it in the place of the command's own socket. What else a socket can do is refused.
pub const PROXIED: &[Refusal] = &[
    when(
        SOCKET,
        &[none_of(0, &[AF_INET, AF_INET6])],
        "family is neither INET nor INET6",
        EACCES,
        "unix sockets of the host",
    ),
    when(
        SOCKET,
        &[int(1, Test::Masked { mask: SOCKET_TYPE, value: STREAM }, Sense::Not)],
        "type is not STREAM",
        EACCES,
        "UDP and ICMP send without connecting",
    ),
    when(SOCKET, &[none_of(2, &[0, TCP])], "protocol is not TCP", EACCES, "only TCP is proxied"),
    NO_DATAGRAM_PAIRS,
    asked(both("connect", 42, 203), &[], "", "leads to the launcher's proxy, and nowhere else"),
    always(both("bind", 49, 200), EACCES, "would be reached from the host's network"),
    always(both("listen", 50, 201), EACCES, "would be reached from the host's network"),
    NO_OTHER_LISTENER,
];

/// With the host's network and without a root of its own.
pub const NO_UNIX_SOCKETS: &[Refusal] = &[
    when(
        SOCKET,
        &[one_of(0, &[AF_UNIX])],
        "UNIX",
        EACCES,
        "D-Bus, docker.sock …: programs of the host that do what they are told",
    ),
    NO_DATAGRAM_PAIRS,
];

/// Without namespaces.
pub const PLAIN: &[Refusal] = &[
    asked(call::CHMOD, &[], "", ATTRIBUTES),
    asked(call::FCHMOD, &[], "", ATTRIBUTES),
    asked(call::FCHMODAT, &[], "", ATTRIBUTES),
    asked(call::FCHMODAT2, &[], "", ATTRIBUTES),
    asked(call::CHOWN, &[], "", ATTRIBUTES),
    asked(call::FCHOWN, &[], "", ATTRIBUTES),
    asked(call::LCHOWN, &[], "", ATTRIBUTES),
    asked(call::FCHOWNAT, &[], "", ATTRIBUTES),
    asked(call::UTIME, &[], "", ATTRIBUTES),
    asked(call::UTIMES, &[], "", ATTRIBUTES),
    asked(call::FUTIMESAT, &[], "", ATTRIBUTES),
    asked(call::UTIMENSAT, &[], "", ATTRIBUTES),
    asked(call::SETXATTR, &[], "", ATTRIBUTES),
    asked(call::LSETXATTR, &[], "", ATTRIBUTES),
    asked(call::FSETXATTR, &[], "", ATTRIBUTES),
    asked(call::REMOVEXATTR, &[], "", ATTRIBUTES),
    asked(call::LREMOVEXATTR, &[], "", ATTRIBUTES),
    asked(call::FREMOVEXATTR, &[], "", ATTRIBUTES),
    asked(call::GETXATTR, &[], "", READS),
    asked(call::LGETXATTR, &[], "", READS),
    asked(call::LISTXATTR, &[], "", READS),
    asked(call::LLISTXATTR, &[], "", READS),
    // Through a descriptor they are free: one that was opened is of a file that was granted.
    always(same("getxattrat", 464), ENOSYS, "as getxattr; programs fall back to it"),
    always(same("listxattrat", 465), ENOSYS, "as listxattr"),
    always(same("file_getattr", 468), ENOSYS, READS),
    always(same("setxattrat", 463), ENOSYS, "as setxattr; programs fall back to it"),
    always(same("removexattrat", 466), ENOSYS, "as removexattr"),
    always(same("file_setattr", 469), ENOSYS, ATTRIBUTES),
    when(
        both("ioctl", 16, 29),
        &[none_of(1, ioctls::ALLOWED)],
        ioctls::WORDS,
        ENOTTY,
        "many change a file that was opened for reading",
    ),
    always(both("fanotify_init", 300, 262), EPERM, "tells what is done with files of the host"),
    always(both("inotify_add_watch", 254, 27), EACCES, "tells what is done with files of the host"),
    always(both("shmget", 29, 194), ENOSYS, SHARED),
    always(both("shmat", 30, 196), ENOSYS, SHARED),
    always(both("shmctl", 31, 195), ENOSYS, SHARED),
    always(both("semget", 64, 190), ENOSYS, SHARED),
    always(both("semop", 65, 193), ENOSYS, SHARED),
    always(both("semtimedop", 220, 192), ENOSYS, SHARED),
    always(both("semctl", 66, 191), ENOSYS, SHARED),
    always(both("msgget", 68, 186), ENOSYS, SHARED),
    always(both("msgsnd", 69, 189), ENOSYS, SHARED),
    always(both("msgrcv", 70, 188), ENOSYS, SHARED),
    always(both("msgctl", 71, 187), ENOSYS, SHARED),
    always(both("mq_open", 240, 180), ENOSYS, SHARED),
    always(both("mq_unlink", 241, 181), ENOSYS, SHARED),
    when(both("prlimit64", 302, 261), &[none_of(0, &[0])], "of another", EPERM, OTHERS),
    when(both("setpriority", 141, 140), &[none_of(1, &[0])], "of another", EPERM, OTHERS),
    when(both("sched_setparam", 142, 118), &[none_of(0, &[0])], "of another", EPERM, OTHERS),
    when(both("sched_setscheduler", 144, 119), &[none_of(0, &[0])], "of another", EPERM, OTHERS),
    when(both("sched_setattr", 314, 274), &[none_of(0, &[0])], "of another", EPERM, OTHERS),
    when(both("sched_setaffinity", 203, 122), &[none_of(0, &[0])], "of another", EPERM, OTHERS),
    when(both("ioprio_set", 251, 30), &[none_of(1, &[0])], "of another", EPERM, OTHERS),
    when(both("move_pages", 279, 239), &[none_of(0, &[0])], "of another", EPERM, OTHERS),
    // No process but the launcher answers in here.
    when(
        both("seccomp", 317, 277),
        &[any_bit(1, 8)],
        "asks for a listener",
        EPERM,
        "would answer in the launcher's place",
    ),
];

/// Without a syscall proxy: as on a file system that has no attributes, for programs that ask every file for them.
pub const NO_ATTRIBUTES: &[Refusal] = &[
    always(call::GETXATTR, EOPNOTSUPP, READS),
    always(call::LGETXATTR, EOPNOTSUPP, READS),
    always(call::LISTXATTR, EOPNOTSUPP, READS),
    always(call::LLISTXATTR, EOPNOTSUPP, READS),
];

/// Landlock before version 3 does not know truncation.
pub const BEFORE_TRUNCATE: &[Refusal] = &[
    asked(call::TRUNCATE, &[], "", ATTRIBUTES),
    when(
        x86("open", 2),
        &[
            any_bit(1, O_TRUNC),
            int(1, Test::Masked { mask: ACCESS_MODE, value: 1 }, Sense::Not),
            int(1, Test::Masked { mask: ACCESS_MODE, value: 2 }, Sense::Not),
        ],
        "truncates without writing",
        EACCES,
        ATTRIBUTES,
    ),
    when(
        both("openat", 257, 56),
        &[
            any_bit(2, O_TRUNC),
            int(2, Test::Masked { mask: ACCESS_MODE, value: 1 }, Sense::Not),
            int(2, Test::Masked { mask: ACCESS_MODE, value: 2 }, Sense::Not),
        ],
        "truncates without writing",
        EACCES,
        ATTRIBUTES,
    ),
];

/// Landlock before version 6 does not keep signals inside.
pub const BEFORE_SCOPES: &[Refusal] = &[
    asked(call::KILL, &[], "", OTHERS),
    asked(call::TKILL, &[], "", OTHERS),
    asked(call::TGKILL, &[], "", OTHERS),
    asked(call::RT_SIGQUEUEINFO, &[], "", OTHERS),
    asked(call::RT_TGSIGQUEUEINFO, &[], "", OTHERS),
    asked(call::PIDFD_SEND_SIGNAL, &[], "", OTHERS),
    when(
        both("fcntl", 72, 25),
        &[one_of(1, &[F_SETOWN, F_SETOWN_EX])],
        "F_SETOWN, F_SETOWN_EX",
        EPERM,
        "has the kernel send any signal to anybody",
    ),
];

/// The refusals that make up for what is not there.
#[must_use]
pub fn tables(sockets: Sockets, ground: Ground) -> Vec<&'static [Refusal]> {
    let mut tables = match sockets {
        Sockets::All => vec![],
        Sockets::Internet => vec![NO_UNIX_SOCKETS],
        Sockets::Proxied => vec![PROXIED],
        Sockets::None => vec![NO_SOCKETS],
    };
    if let Ground::Plain { landlock, syscall_proxy } = ground {
        // Of two answers to one call the first counts.
        if syscall_proxy == SyscallProxy::None {
            tables.push(NO_ATTRIBUTES);
        }
        tables.push(PLAIN);
        if landlock < 3 {
            tables.push(BEFORE_TRUNCATE);
        }
        // Refused altogether, a process could not even signal itself.
        if landlock < 6 && syscall_proxy == SyscallProxy::Asked {
            tables.push(BEFORE_SCOPES);
        }
    }
    tables
}
