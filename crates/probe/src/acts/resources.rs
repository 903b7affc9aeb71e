//! Acts that use up memory, threads, files and processor time, in std's own words.

use std::fs::File;
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use crate::spec::{Args, Failure, Said};

const PAGE: usize = 4096;

/// Touches private memory, and holds it so that a watchdog can see it.
pub(crate) fn alloc(args: Args<'_>) -> Said {
    let bytes = args.count(0)?;
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(bytes).map_err(|_| out_of_memory())?;
    // One byte of each page is enough, and many times faster in a debug build.
    for byte in memory.spare_capacity_mut().iter_mut().step_by(PAGE) {
        byte.write(1);
    }
    std::hint::black_box(&memory);
    std::thread::sleep(args.millis_or(1, 0)?);
    Ok(bytes.to_string())
}

fn out_of_memory() -> io::Error {
    #[cfg(unix)]
    {
        io::Error::from_raw_os_error(libc::ENOMEM)
    }
    #[cfg(not(unix))]
    {
        io::ErrorKind::OutOfMemory.into()
    }
}

/// Starts threads and gives the number that were alive together.
pub(crate) fn threads(args: Args<'_>) -> Said {
    let wanted = args.count(0)?;
    let mut alive = Vec::new();
    let mut refusal = None;
    for _ in 0..wanted {
        let (release, released) = mpsc::channel::<()>();
        let body = move || {
            let _ = released.recv();
        };
        match std::thread::Builder::new().stack_size(64 * 1024).spawn(body) {
            Ok(thread) => alive.push((release, thread)),
            Err(error) => {
                refusal = Some(error);
                break;
            }
        }
    }
    std::thread::sleep(args.millis_or(1, 0)?);
    let count = alive.len().to_string();
    for (release, thread) in alive {
        drop(release);
        let _ = thread.join();
    }
    match refusal {
        Some(error) => Err(Failure::after(&error, count)),
        None => Ok(count),
    }
}

/// Opens a file many times and gives the number of descriptors that were open together.
pub(crate) fn open_files(args: Args<'_>) -> Said {
    let path = if cfg!(windows) { "NUL" } else { "/dev/null" };
    let mut files = Vec::new();
    for _ in 0..args.count(0)? {
        match File::open(path) {
            Ok(file) => files.push(file),
            Err(error) => return Err(Failure::after(&error, files.len().to_string())),
        }
    }
    Ok(files.len().to_string())
}

/// Burns processor time of this process, not time on the wall.
pub(crate) fn spin(args: Args<'_>) -> Said {
    let goal = args.seconds(0)?;
    let start = processor_time()?;
    let mut state = 1u64;
    while processor_time()?.saturating_sub(start) < goal {
        for _ in 0..100_000 {
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005));
        }
    }
    Ok("spun".into())
}

#[cfg(target_os = "linux")]
fn processor_time() -> io::Result<Duration> {
    use crate::sys::{Arg, call};
    let mut time = [0u64; 2];
    call(
        libc::SYS_clock_gettime,
        &mut [Arg::Num(libc::CLOCK_PROCESS_CPUTIME_ID as u64), Arg::Words(&mut time)],
    )?;
    let [seconds, nanoseconds] = time;
    Ok(Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds))
}

#[cfg(not(target_os = "linux"))]
fn processor_time() -> io::Result<Duration> {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)
}
