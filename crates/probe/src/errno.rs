//! Symbolic names of system errors, so that a test reads `EACCES` and not 13.

use std::io;

/// The name of an error; what has no name here gives its number (`E95`) or kind.
pub(crate) fn name(error: &io::Error) -> String {
    if let Some(name) = error.raw_os_error().and_then(system_name) {
        return name.to_owned();
    }
    match error.raw_os_error() {
        Some(number) if cfg!(unix) => format!("E{number}"),
        _ => by_kind(error.kind()).to_owned(),
    }
}

/// Windows numbers mean something else, and timeouts of std carry no number at all.
fn by_kind(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotFound => "ENOENT",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::AlreadyExists => "EEXIST",
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset => "ECONNRESET",
        io::ErrorKind::NetworkUnreachable => "ENETUNREACH",
        io::ErrorKind::HostUnreachable => "EHOSTUNREACH",
        io::ErrorKind::AddrInUse => "EADDRINUSE",
        io::ErrorKind::AddrNotAvailable => "EADDRNOTAVAIL",
        io::ErrorKind::BrokenPipe => "EPIPE",
        io::ErrorKind::WouldBlock => "EAGAIN",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        io::ErrorKind::InvalidInput => "EINVAL",
        io::ErrorKind::StorageFull => "ENOSPC",
        io::ErrorKind::FileTooLarge => "EFBIG",
        io::ErrorKind::OutOfMemory => "ENOMEM",
        io::ErrorKind::Unsupported => "ENOSYS",
        _ => "EIO",
    }
}

#[cfg(not(unix))]
fn system_name(_number: i32) -> Option<&'static str> {
    None
}

#[cfg(unix)]
fn system_name(number: i32) -> Option<&'static str> {
    macro_rules! names {
        ($($name:ident)*) => {
            match number {
                $(libc::$name => Some(stringify!($name)),)*
                _ => None,
            }
        };
    }
    names!(
        EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
        ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG
        ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY
        ELOOP ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT
        ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN
        ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETIMEDOUT
        ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EDQUOT ECANCELED
        EOVERFLOW EPROTO
    )
    .or_else(|| linux_name(number))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn linux_name(_number: i32) -> Option<&'static str> {
    None
}

#[cfg(target_os = "linux")]
fn linux_name(number: i32) -> Option<&'static str> {
    match number {
        libc::ENOKEY => Some("ENOKEY"),
        libc::EKEYEXPIRED => Some("EKEYEXPIRED"),
        libc::EKEYREVOKED => Some("EKEYREVOKED"),
        libc::ENODATA => Some("ENODATA"),
        libc::EUSERS => Some("EUSERS"),
        libc::ENOMEDIUM => Some("ENOMEDIUM"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_name() {
        let error = std::fs::read("/nonexistent/file").unwrap_err();
        assert_eq!(name(&error), "ENOENT");
    }

    #[test]
    fn an_error_without_number_is_named_by_kind() {
        assert_eq!(name(&io::Error::from(io::ErrorKind::TimedOut)), "ETIMEDOUT");
    }
}
