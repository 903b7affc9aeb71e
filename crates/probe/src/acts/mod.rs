//! The table of acts. Each file beside this one holds the acts on one kind of thing; those below
//! `linux/` exist on Linux only and answer `ENOSYS` elsewhere; those that matter on a Mac are in
//! `macos` once more.

mod environment;
mod files;
mod lifetime;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod network;
mod proxied;
mod resources;
mod talk;
#[cfg(windows)]
mod windows;

use crate::spec::{Args, Said, Spec};

/// Names an act that needs Linux; elsewhere the path is never looked at.
macro_rules! linux {
    ($($perform:tt)*) => {{
        #[cfg(target_os = "linux")]
        {
            linux::$($perform)*
        }
        #[cfg(not(target_os = "linux"))]
        {
            not_here
        }
    }};
}

/// Names an act that Linux and macOS have, each in its own way.
macro_rules! both {
    ($linux:ident::$perform:ident) => {{
        #[cfg(target_os = "linux")]
        {
            linux::$linux::$perform
        }
        #[cfg(target_os = "macos")]
        {
            macos::$perform
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        {
            not_here
        }
    }};
}

/// Names an act that all three have, each in its own way.
macro_rules! every {
    ($linux:ident::$perform:ident) => {{
        #[cfg(not(windows))]
        {
            both!($linux::$perform)
        }
        #[cfg(windows)]
        {
            windows::$perform
        }
    }};
}

/// Names an act that needs Windows.
macro_rules! windows {
    ($perform:ident) => {{
        #[cfg(windows)]
        {
            windows::$perform
        }
        #[cfg(not(windows))]
        {
            not_here
        }
    }};
}

fn not_here(_: Args<'_>) -> Said {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
}

const fn act(
    name: &'static str,
    usage: &'static str,
    perform: for<'a> fn(Args<'a>) -> Said,
) -> Spec {
    Spec { name, usage, perform }
}

pub(crate) const ACTS: &[Spec] = &[
    act("read", "PATH", files::read),
    act("write", "PATH [TEXT]", files::write),
    act("create", "PATH [TEXT]", files::create),
    act("list", "DIR", files::list),
    act("stat", "PATH", files::stat),
    act("unlink", "PATH", files::unlink),
    act("mkdir", "PATH", files::mkdir),
    act("rmdir", "PATH", files::rmdir),
    act("rename", "FROM TO", files::rename),
    act("symlink", "TARGET LINK", files::symlink),
    act("hardlink", "FILE LINK", files::hardlink),
    act("write-big", "PATH BYTES", files::write_big),
    act("tmp-fill", "DIR BYTES", files::fill),
    act("chmod", "PATH MODE(octal)", both!(inodes::chmod)),
    act("fchmod", "PATH MODE(octal)", linux!(attributes::fchmod)),
    act("chown", "PATH UID GID", linux!(attributes::chown)),
    act("fchown", "PATH UID GID", linux!(attributes::fchown)),
    act("utime", "PATH SECONDS", linux!(attributes::utime)),
    act("futime", "PATH SECONDS", linux!(attributes::futime)),
    act("getxattr", "PATH NAME", linux!(attributes::get_attribute)),
    act("lgetxattr", "PATH NAME", linux!(attributes::lget_attribute)),
    act("fgetxattr", "PATH NAME", linux!(attributes::fget_attribute)),
    act("listxattr", "PATH", linux!(attributes::list_attributes)),
    act("llistxattr", "PATH", linux!(attributes::llist_attributes)),
    act("set-capability", "PATH", linux!(attributes::set_capability)),
    act("file-ioctl", "PATH COMMAND(hex)", linux!(attributes::file_ioctl)),
    act("setxattr", "PATH NAME", linux!(attributes::set_attribute)),
    act("fsetxattr", "PATH NAME", linux!(attributes::fset_attribute)),
    act("removexattr", "PATH NAME", linux!(attributes::remove_attribute)),
    act("truncate", "PATH", linux!(attributes::truncate)),
    act("open-truncating", "PATH ACCESS-MODE", linux!(attributes::open_truncating)),
    act("watch", "PATH", linux!(attributes::watch)),
    act("shared-memory", "KEY", linux!(attributes::shared_memory)),
    act("message-queue", "NAME", linux!(attributes::message_queue)),
    act("signal-by-owner", "PID SIGNAL", linux!(attributes::signal_by_owner)),
    act("slow-down", "PID", linux!(attributes::slow_down)),
    act("pin", "PID", linux!(attributes::pin)),
    act("socketpair", "TYPE", linux!(attributes::pair)),
    act("mknod", "PATH [c|b|p] [MAJOR] [MINOR]", linux!(inodes::mknod)),
    act("open-mode", "PATH MODE(octal)", linux!(inodes::open_mode)),
    act("open-by-handle", "PATH", linux!(inodes::open_by_handle)),
    act("connect", "HOST:PORT", network::connect),
    act("connect6", "[ADDR]:PORT", network::connect6),
    act("udp-send", "ADDR:PORT [TEXT]", network::udp_send),
    act("listen", "PORT", network::listen),
    act("offer", "PORT", network::offer),
    act("serve", "PORT [CALLERS]", network::serve),
    act("resolve", "NAME", network::resolve),
    act("talk", "HOST:PORT [TEXT]", talk::talk),
    act("talk-hex", "HOST:PORT HEX", talk::talk_hex),
    act("listen-to", "HOST:PORT", talk::listen_to),
    act("echo", "HOST:PORT BYTES", talk::echo),
    act("talk-tls", "HOST:PORT NAME|- [PIECE]", talk::talk_tls),
    act("tunnel-tls", "HOST:PORT HOST:PORT NAME", talk::tunnel_tls),
    act("udp-talk", "HOST:PORT [TEXT]", talk::udp_talk),
    act("talk-proxied", "HOST:PORT [TEXT]", proxied::talk),
    act("echo-proxied", "HOST:PORT BYTES", proxied::echo),
    act("tell-proxied", "HOST:PORT BYTES", proxied::tell),
    act("kill-proxy", "HOST:PORT", windows!(kill_proxy)),
    act("talk-at-once", "HOST:PORT N", talk::talk_at_once),
    act("resolve-many", "N SUFFIX", talk::resolve_many),
    act("world", "LOG SPEC COMMAND ARGS…", linux!(test_network::world)),
    act("fastopen", "ADDR:PORT", linux!(sockets::fastopen)),
    act("connect-racing", "ADDR:PORT ADDR:PORT COUNT", linux!(connects::racing)),
    act("second-use", "ADDR:PORT ADDR:PORT HOW", linux!(connects::second_use)),
    act("unix-connect", "PATH", both!(sockets::unix_connect)),
    act("unix-abstract", "NAME", linux!(sockets::unix_abstract)),
    act("abstract-dgram-send", "NAME", linux!(sockets::abstract_dgram_send)),
    act("socket", "FAMILY TYPE PROTOCOL", linux!(sockets::socket)),
    act("net-ifaces", "", linux!(sockets::interfaces)),
    act("kill", "PID SIGNAL", every!(processes::kill)),
    act("ptrace", "PID", linux!(processes::ptrace)),
    act("vm-read", "PID", linux!(processes::vm_read)),
    act("pidfd-getfd", "PID FD", linux!(processes::pidfd_getfd)),
    act("prlimit", "PID", linux!(processes::prlimit)),
    act("limit-files", "PID N", linux!(processes::limit_files)),
    act("environ", "PID", linux!(processes::environ)),
    act("cmdline", "PID", linux!(processes::cmdline)),
    act("mem", "PID", linux!(processes::mem)),
    act("proc-fd", "PID", linux!(processes::fd)),
    act("proc-root", "PID", linux!(processes::root)),
    act("proc-cwd", "PID", linux!(processes::cwd)),
    act("proc-list", "", linux!(processes::list)),
    act("await-processes", "AT-MOST", linux!(processes::await_processes)),
    act("caps", "", linux!(identity::caps)),
    act("nnp", "", linux!(identity::no_new_privileges)),
    act("status-field", "NAME", linux!(identity::status_field)),
    act("uid", "", linux!(identity::uid)),
    act("gids", "", linux!(identity::gids)),
    act("session", "", linux!(identity::session)),
    act("hostname", "", linux!(identity::hostname)),
    act("sethostname", "[NAME]", linux!(identity::set_hostname)),
    act("fds", "", linux!(descriptors::list)),
    act("reopen", "FD r|w|rw", linux!(descriptors::reopen)),
    act("reopen-write", "FD [TEXT]", linux!(descriptors::reopen_write)),
    act("openat", "DIRFD PATH", linux!(descriptors::openat)),
    act("tty", "", linux!(descriptors::tty)),
    act("isatty", "FD", linux!(descriptors::isatty)),
    act("winsize", "FD", linux!(descriptors::window_size)),
    act("tiocsti", "FD CHAR", linux!(descriptors::tiocsti)),
    act("ioctl", "FD COMMAND(hex)", linux!(descriptors::ioctl)),
    act("rlimits", "", both!(limits::list)),
    act("memfd", "BYTES [HOLD-MS]", linux!(limits::memfd)),
    act("alloc", "BYTES [HOLD-MS]", resources::alloc),
    act("alloc-shared", "BYTES [HOLD-MS]", every!(limits::alloc_shared)),
    act("page-tables", "BYTES [HOLD-MS]", linux!(limits::page_tables)),
    act("fork-alloc", "N BYTES [HOLD-MS]", both!(limits::fork_alloc)),
    act("fork-share", "N BYTES [HOLD-MS]", linux!(limits::fork_share)),
    act("fork", "N [HOLD-MS]", every!(limits::fork)),
    act("threads", "N [HOLD-MS]", resources::threads),
    act("open-files", "N", resources::open_files),
    act("spin", "CPU-SECONDS", resources::spin),
    act("sleep", "SECONDS", lifetime::sleep),
    act("await-file", "FILE", lifetime::await_file),
    act("loop-heartbeat", "FILE MS", lifetime::heartbeat),
    act("exit", "N", lifetime::exit),
    act("exec", "PATH ARGS…", lifetime::exec),
    act("daemonize", "SECONDS [HEARTBEAT]", every!(jobs::daemonize)),
    act("ignore-term", "SECONDS [HEARTBEAT]", every!(jobs::ignore_term)),
    act("stop-self", "", both!(jobs::stop_self)),
    act("signal-self", "SIGNAL", both!(jobs::signal_self)),
    act("job", "EVENTS COMMAND ARGS…", linux!(jobs::job)),
    act("memfd-exec", "PATH ARGS…", linux!(jobs::memfd_exec)),
    act("break-away", "", windows!(break_away)),
    act("in-job", "", windows!(in_job)),
    act("nested-job", "", windows!(nested_job)),
    act("console", "", windows!(console)),
    act("pipe-serve", "NAME SECONDS", windows!(pipe_serve)),
    act("pipe-open", "NAME", windows!(pipe_open)),
    act("in-container", "", windows!(in_container)),
    act("read-handle", "NUMBER", windows!(read_handle)),
    act("mount", "DIR [SIZE]", linux!(namespaces::mount)),
    act("umount", "PATH", linux!(namespaces::umount)),
    act("remount-rw", "PATH", linux!(namespaces::remount_rw)),
    act("remount-ro", "PATH", linux!(namespaces::remount_ro)),
    act("pivot", "[DIR]", linux!(namespaces::pivot)),
    act("chroot", "DIR", linux!(namespaces::chroot)),
    act("unshare", "FLAGS(user,mnt,…)", linux!(namespaces::unshare)),
    act("enter", "FLAGS(user,mnt,…)", linux!(namespaces::enter)),
    act("clone-user", "[HIGH-BITS]", linux!(namespaces::clone_user)),
    act("clone3-user", "", linux!(namespaces::clone3_user)),
    act("setns", "PATH", linux!(namespaces::setns)),
    act(
        "without",
        "WHAT(user,net,pid,proc,…|clone3|namespaces) PATH ARGS…",
        linux!(degraded_host::without),
    ),
    act("io-uring", "", linux!(kernel::io_uring)),
    act("add-key", "NAME VALUE [session|user|process]", linux!(keys::add)),
    act("join-session", "", linux!(keys::join_session)),
    act("keyctl-read", "[NAME]", linux!(keys::read)),
    act("bpf", "", linux!(kernel::bpf)),
    act("perf", "", linux!(kernel::perf)),
    act("userfaultfd", "", linux!(kernel::userfaultfd)),
    act("personality", "N", linux!(kernel::personality)),
    act("syscall", "NR [A0] [A1] [A2] [A3] [A4] [A5]", linux!(kernel::syscall)),
    act("int80", "NR", linux!(kernel::int80)),
    act("env", "", environment::names),
    act("getenv", "NAME", environment::value),
    act("cwd", "", environment::cwd),
    act("stdin-read", "", environment::stdin_read),
    act("write-stdout", "TEXT", environment::write_stdout),
    act("write-stderr", "TEXT", environment::write_stderr),
    act("time", "", environment::time),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of two acts with one name would be tried, whatever a test means.
    #[test]
    fn every_act_has_a_name_of_its_own() {
        let mut names: Vec<_> = ACTS.iter().map(|act| act.name).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
