//! The ioctls of a command without mounts of its own: those that programs need and that change nothing but a
//! descriptor, a terminal or what was opened for writing. All others are refused, whatever they are: many change a file
//! through a descriptor that was opened for reading (flags, versions, projects, encryption, snapshots), each
//! file system has its own, and new ones come with every kernel.
//!
//! Behind mounts the list is not needed: a read-only mount refuses all of these, and granted devices have their own.

/// In the order of their numbers; the same on both architectures. The kernel reads 32 bits.
pub const ALLOWED: &[u64] = &[
    0x0002,      // FIGETBSZ
    0x5401,      // TCGETS
    0x5402,      // TCSETS
    0x5403,      // TCSETSW
    0x5404,      // TCSETSF
    0x5405,      // TCGETA
    0x5406,      // TCSETA
    0x5407,      // TCSETAW
    0x5408,      // TCSETAF
    0x5409,      // TCSBRK
    0x540a,      // TCXONC
    0x540b,      // TCFLSH
    0x540e,      // TIOCSCTTY
    0x540f,      // TIOCGPGRP
    0x5410,      // TIOCSPGRP
    0x5411,      // TIOCOUTQ, SIOCOUTQ
    0x5413,      // TIOCGWINSZ
    0x5414,      // TIOCSWINSZ
    0x541b,      // FIONREAD, SIOCINQ
    0x5420,      // TIOCPKT
    0x5421,      // FIONBIO
    0x5422,      // TIOCNOTTY
    0x5424,      // TIOCGETD
    0x5425,      // TCSBRKP
    0x5429,      // TIOCGSID
    0x5441,      // TIOCGPTPEER
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
    0x5452,      // FIOASYNC
    0x5460,      // FIOQSIZE
    0x8903,      // FIOGETOWN
    0x8904,      // SIOCGPGRP
    0x8905,      // SIOCATMARK
    0x8910,      // SIOCGIFNAME
    0x8912,      // SIOCGIFCONF
    0x8913,      // SIOCGIFFLAGS
    0x8915,      // SIOCGIFADDR
    0x8917,      // SIOCGIFDSTADDR
    0x8919,      // SIOCGIFBRDADDR
    0x891b,      // SIOCGIFNETMASK
    0x891d,      // SIOCGIFMETRIC
    0x8921,      // SIOCGIFMTU
    0x8927,      // SIOCGIFHWADDR
    0x8933,      // SIOCGIFINDEX
    0x8942,      // SIOCGIFTXQLEN
    0x4004_5431, // TIOCSPTLCK
    0x4004_9409, // FICLONE, which writes to what was opened for it
    0x4020_940d, // FICLONERANGE
    0x402c_542b, // TCSETS2
    0x402c_542c, // TCSETSW2
    0x402c_542d, // TCSETSF2
    0x8004_5430, // TIOCGPTN
    0x8004_5432, // TIOCGDEV
    0x8004_5438, // TIOCGPKT
    0x8004_5439, // TIOCGPTLCK
    0x8004_5440, // TIOCGEXCL
    0x8008_6601, // FS_IOC_GETFLAGS
    0x8008_7601, // FS_IOC_GETVERSION
    0x801c_581f, // FS_IOC_FSGETXATTR
    0x802c_542a, // TCGETS2
    0xc020_660b, // FS_IOC_FIEMAP
];

/// For readers of docs/security/syscalls.md.
pub const WORDS: &str = "none of: FIONBIO, FIOCLEX, FIONCLEX, FIOASYNC, FIONREAD, FIOQSIZE, FIOGETOWN, FIGETBSZ; of \
    terminals: TCGETS, TCSETS and their kin, TCSBRK, TCXONC, TCFLSH, window size, process groups, sessions, packet mode, \
    pseudo-terminals; of sockets: SIOCGIF…, SIOCINQ, SIOCOUTQ, SIOCATMARK; of files: FS_IOC_GETFLAGS, FS_IOC_GETVERSION, \
    FS_IOC_FSGETXATTR, FS_IOC_FIEMAP, FICLONE, FICLONERANGE";

/// Our numbers against the C library's, where it has them.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_c_librarys() {
        macro_rules! listed {
            ($($name:ident)*) => { $(
                let number = u64::from(libc::$name as u32);
                assert!(ALLOWED.contains(&number), "{} {number:#x}", stringify!($name));
            )* };
        }
        listed! {
            FIONBIO FIOCLEX FIONCLEX FIOASYNC FIONREAD TCGETS TCSETS TCSETSW TCSETSF TCGETA TCSETA TCSETAW TCSETAF
            TCSBRK TCXONC TCFLSH TIOCSCTTY TIOCGPGRP TIOCSPGRP TIOCOUTQ TIOCGWINSZ TIOCSWINSZ TIOCNOTTY TIOCGSID
            TIOCGPTPEER TIOCSPTLCK TIOCGPTN TCGETS2 TCSETS2 TCSETSW2 TCSETSF2 SIOCGIFNAME SIOCGIFCONF SIOCGIFFLAGS
            SIOCGIFADDR SIOCGIFDSTADDR SIOCGIFBRDADDR SIOCGIFNETMASK SIOCGIFMETRIC SIOCGIFMTU SIOCGIFHWADDR SIOCGIFINDEX
            FS_IOC_GETFLAGS FS_IOC_GETVERSION FICLONE FICLONERANGE
        }
    }
}
