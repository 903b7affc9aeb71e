//! Open descriptors, and what can be made of them: a wider access mode, a terminal, a directory.

use std::fs;
use std::io;

use crate::spec::{Args, Failure, Said};
use crate::sys::{Arg, call};

use super::{c_string, command};

/// One line per descriptor: number, kind, access mode, link.
pub(crate) fn list(_: Args<'_>) -> Said {
    let mut numbers: Vec<u64> = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    let mut lines = Vec::new();
    for fd in numbers {
        // The descriptor of the listing itself is closed by now.
        let Ok(flags) = call(libc::SYS_fcntl, &mut [Arg::Num(fd), Arg::Num(libc::F_GETFL as u64)])
        else {
            continue;
        };
        let link = fs::read_link(format!("/proc/self/fd/{fd}"))?;
        let link = link.to_string_lossy().replace('\n', "?");
        lines.push(format!("{fd} {} {} {link}", kind(fd, &link), access(flags)));
    }
    Ok(lines.join("\n"))
}

fn access(flags: u64) -> &'static str {
    let flags = flags as i32;
    match flags & libc::O_ACCMODE {
        _ if flags & libc::O_PATH != 0 => "path",
        libc::O_RDONLY => "r",
        libc::O_WRONLY => "w",
        _ => "rw",
    }
}

fn kind(fd: u64, link: &str) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let Ok(metadata) = fs::metadata(format!("/proc/self/fd/{fd}")) else {
        return if link.starts_with("socket:") { socket_family(fd) } else { "unknown" };
    };
    let kind = metadata.file_type();
    if kind.is_fifo() {
        "pipe"
    } else if kind.is_socket() {
        socket_family(fd)
    } else if kind.is_dir() {
        "directory"
    } else if kind.is_file() {
        "file"
    } else if terminal_settings(fd).is_ok() {
        "terminal"
    } else if kind.is_char_device() {
        "device"
    } else {
        "unknown"
    }
}

/// `unix`, `inet` or another `socket`.
fn socket_family(fd: u64) -> &'static str {
    let (mut family, mut length) = ([0u8; 4], 4u32.to_ne_bytes());
    let answer = call(
        libc::SYS_getsockopt,
        &mut [
            Arg::Num(fd),
            Arg::Num(libc::SOL_SOCKET as u64),
            Arg::Num(libc::SO_DOMAIN as u64),
            Arg::Bytes(&mut family),
            Arg::Bytes(&mut length),
        ],
    );
    match (answer, i32::from_ne_bytes(family)) {
        (Ok(_), libc::AF_UNIX) => "unix",
        (Ok(_), libc::AF_INET | libc::AF_INET6) => "inet",
        _ => "socket",
    }
}

fn terminal_settings(fd: u64) -> io::Result<u64> {
    let mut settings = [0u8; 256];
    let command = command!(TCGETS);
    call(libc::SYS_ioctl, &mut [Arg::Num(fd), command, Arg::Bytes(&mut settings)])
}

fn open_again(args: Args<'_>, read: bool, write: bool) -> io::Result<fs::File> {
    let path = format!("/proc/self/fd/{}", args.text(0));
    fs::OpenOptions::new().read(read).write(write).open(path)
}

pub(crate) fn reopen(args: Args<'_>) -> Said {
    let (read, write) = match args.text(1).as_ref() {
        "r" => (true, false),
        "w" => (false, true),
        "rw" => (true, true),
        other => return Err(Failure::usage(format!("no access mode is named {other}"))),
    };
    open_again(args, read, write)?;
    Ok("opened".into())
}

pub(crate) fn reopen_write(args: Args<'_>) -> Said {
    use std::io::Write;
    open_again(args, false, true)?.write_all(args.text_or(1, "!").as_bytes())?;
    Ok("written".into())
}

/// Opens a path that starts at a directory descriptor.
pub(crate) fn openat(args: Args<'_>) -> Said {
    let path = c_string(args.path(1))?;
    let flags = Arg::Num((libc::O_RDONLY | libc::O_CLOEXEC) as u64);
    let fd = call(libc::SYS_openat, &mut [Arg::Num(args.number(0)?), Arg::Text(&path), flags])?;
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    Ok("opened".into())
}

pub(crate) fn tty(_: Args<'_>) -> Said {
    fs::OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    Ok("opened".into())
}

pub(crate) fn isatty(args: Args<'_>) -> Said {
    terminal_settings(args.number(0)?)?;
    Ok("terminal".into())
}

/// `ROWS COLUMNS` of a terminal.
pub(crate) fn window_size(args: Args<'_>) -> Said {
    let mut size = [0u8; 8];
    let command = command!(TIOCGWINSZ);
    call(libc::SYS_ioctl, &mut [Arg::Num(args.number(0)?), command, Arg::Bytes(&mut size)])?;
    let [rows, columns] = [[size[0], size[1]], [size[2], size[3]]].map(u16::from_ne_bytes);
    Ok(format!("{rows} {columns}"))
}

/// Types a character into a terminal, as if its user had.
pub(crate) fn tiocsti(args: Args<'_>) -> Said {
    let mut character = [args.text(1).bytes().next().unwrap_or(b'!')];
    let command = command!(TIOCSTI);
    call(libc::SYS_ioctl, &mut [Arg::Num(args.number(0)?), command, Arg::Bytes(&mut character)])?;
    Ok("typed".into())
}

/// An ioctl whose command is a register as typed; its argument is a buffer with one character.
pub(crate) fn ioctl(args: Args<'_>) -> Said {
    let mut buffer = [0u8; 4096];
    buffer[0] = b'!';
    let answer = call(
        libc::SYS_ioctl,
        &mut [Arg::Num(args.number(0)?), Arg::Num(args.number(1)?), Arg::Bytes(&mut buffer)],
    )?;
    Ok(answer.to_string())
}
