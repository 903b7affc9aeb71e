//! Resource limits, as the process sees them and as it runs into them.

use std::io;

use crate::spec::{Args, Failure, Said};
use crate::sys::{self, Arg, Change, Pages, Sharing, call};

use super::c_string;

const NAMES: [(&str, u64); 16] = [
    ("cpu", libc::RLIMIT_CPU as u64),
    ("fsize", libc::RLIMIT_FSIZE as u64),
    ("data", libc::RLIMIT_DATA as u64),
    ("stack", libc::RLIMIT_STACK as u64),
    ("core", libc::RLIMIT_CORE as u64),
    ("rss", libc::RLIMIT_RSS as u64),
    ("nproc", libc::RLIMIT_NPROC as u64),
    ("nofile", libc::RLIMIT_NOFILE as u64),
    ("memlock", libc::RLIMIT_MEMLOCK as u64),
    ("as", libc::RLIMIT_AS as u64),
    ("locks", libc::RLIMIT_LOCKS as u64),
    ("sigpending", libc::RLIMIT_SIGPENDING as u64),
    ("msgqueue", libc::RLIMIT_MSGQUEUE as u64),
    ("nice", libc::RLIMIT_NICE as u64),
    ("rtprio", libc::RLIMIT_RTPRIO as u64),
    ("rttime", libc::RLIMIT_RTTIME as u64),
];

/// `name soft hard`, one per line.
pub(crate) fn list(_: Args<'_>) -> Said {
    let mut lines = Vec::new();
    for (name, resource) in NAMES {
        let mut limit = [0u64; 2];
        call(
            libc::SYS_prlimit64,
            &mut [Arg::Num(0), Arg::Num(resource), Arg::Null, Arg::Words(&mut limit)],
        )?;
        let [soft, hard] = limit.map(|value| match value {
            u64::MAX => "unlimited".to_owned(),
            value => value.to_string(),
        });
        lines.push(format!("{name} {soft} {hard}"));
    }
    Ok(lines.join("\n"))
}

/// Has the kernel keep tables for memory that is hardly used.
pub(crate) fn page_tables(args: Args<'_>) -> Said {
    let bytes = args.count(0)?;
    let _pages = Pages::tables(bytes)?;
    std::thread::sleep(args.millis_or(1, 0)?);
    Ok(bytes.to_string())
}

pub(crate) fn alloc_shared(args: Args<'_>) -> Said {
    let bytes = args.count(0)?;
    let _pages = Pages::touch(bytes, Sharing::Shared)?;
    std::thread::sleep(args.millis_or(1, 0)?);
    Ok(bytes.to_string())
}

/// Fills an anonymous file: memory that no mapping and no RLIMIT_DATA counts.
pub(crate) fn memfd(args: Args<'_>) -> Said {
    let bytes = args.count(0)?;
    let name = c_string("mcp-probe")?;
    let fd = call(libc::SYS_memfd_create, &mut [Arg::Text(&name), Arg::Num(0)])?;
    let mut chunk = vec![1u8; 1 << 20];
    let mut written = 0;
    let mut result = Ok(());
    while written < bytes {
        let length = chunk.len().min(bytes - written) as u64;
        match call(libc::SYS_write, &mut [Arg::Num(fd), Arg::Bytes(&mut chunk), Arg::Num(length)]) {
            Ok(count) => written += count as usize,
            Err(error) => {
                result = Err(Failure::after(&error, written.to_string()));
                break;
            }
        }
    }
    std::thread::sleep(args.millis_or(1, 0)?);
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    result.map(|()| written.to_string())
}

/// Children that sleep until the last writer of a pipe is gone, and so never outlive the probe.
struct Brood {
    children: Vec<u32>,
    reader: io::PipeReader,
    writer: io::PipeWriter,
}

impl Brood {
    fn new() -> io::Result<Brood> {
        let (reader, writer) = io::pipe()?;
        Ok(Brood { children: Vec::new(), reader, writer })
    }

    fn add(&mut self, first: impl FnOnce()) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let (reader, writer) = (self.reader.as_raw_fd() as u64, self.writer.as_raw_fd() as u64);
        let child = sys::fork(move || {
            let _ = call(libc::SYS_close, &mut [Arg::Num(writer)]);
            first();
            let buffer = &mut [0u8];
            let _ = call(libc::SYS_read, &mut [Arg::Num(reader), Arg::Bytes(buffer), Arg::Num(1)]);
            0
        })?;
        self.children.push(child);
        Ok(())
    }

    /// Lets the children go and gives the number that ended by themselves.
    fn release(self) -> usize {
        drop(self.writer);
        let ended = self
            .children
            .iter()
            .filter(|child| matches!(sys::wait(**child, 0), Ok(Change::Exited(0))));
        ended.count()
    }
}

/// Makes processes and gives the number that were alive together.
pub(crate) fn fork(args: Args<'_>) -> Said {
    brood(args.count(0)?, args.millis_or(1, 0)?, || {})
}

/// Makes processes that each touch memory: a sum no per-process limit sees.
pub(crate) fn fork_alloc(args: Args<'_>) -> Said {
    let bytes = args.count(1)?;
    brood(args.count(0)?, args.millis_or(2, 0)?, || {
        // Kept until the child ends.
        std::mem::forget(Pages::touch(bytes, Sharing::Private));
    })
}

/// Makes processes that all share what one of them touched: much by each one's count, little in sum.
pub(crate) fn fork_share(args: Args<'_>) -> Said {
    let pages = Pages::touch(args.count(1)?, Sharing::Private)?;
    let said = brood(args.count(0)?, args.millis_or(2, 0)?, || {});
    drop(pages);
    said
}

fn brood(count: usize, hold: std::time::Duration, first: impl Fn()) -> Said {
    let mut brood = Brood::new()?;
    let mut refusal = None;
    for _ in 0..count {
        if let Err(error) = brood.add(&first) {
            refusal = Some(error);
            break;
        }
    }
    std::thread::sleep(hold);
    let count = brood.release().to_string();
    match refusal {
        Some(error) => Err(Failure::after(&error, count)),
        None => Ok(count),
    }
}
