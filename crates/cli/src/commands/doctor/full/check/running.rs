//! Checks that look at a run while it goes on, or at how long it takes.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{CheckOutcome, CheckScene, FullCheck, TICK, failed};

/// The time is that of a start with the entries, and without them afterwards.
pub fn tree(
    check: &FullCheck,
    place: &CheckScene<'_>,
    files: usize,
) -> std::io::Result<CheckOutcome> {
    place.prepare();
    for number in 0..files {
        let directory = place.directory.join("tree").join((number % 500).to_string());
        if number < 500 {
            fs::create_dir_all(&directory)?;
        }
        File::create(directory.join(number.to_string()))?;
    }
    let started = Instant::now();
    let inside = place.finish(place.sandboxed(check)?, None)?;
    place.inside.set(Some(started.elapsed()));
    Ok(if inside.succeeded() { CheckOutcome::Passed } else { failed(inside.shown()) })
}

/// The heartbeat of a daemon in a granted file goes on until the launcher is killed, and stops then.
pub fn dies(check: &FullCheck, place: &CheckScene<'_>) -> std::io::Result<CheckOutcome> {
    place.prepare();
    let mut launcher = place.sandboxed(check)?;
    launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut launcher = launcher.spawn()?;
    let beat = place.directory.join("grant/beat");
    let read = || fs::read(&beat).ok();
    let lives = until(|| read().is_some_and(|bytes| !bytes.is_empty()));
    launcher.kill()?;
    launcher.wait()?;
    if !lives {
        return Ok(CheckOutcome::Skipped { why: "the daemon did not start".to_owned() });
    }
    // Dead when a whole second passes without a beat.
    let mut last = read();
    let stopped = until(|| {
        std::thread::sleep(Duration::from_secs(1));
        let now = read();
        let is_same = now == last;
        last = now;
        is_same
    });
    Ok(if stopped { CheckOutcome::Passed } else { failed("the daemon lives on") })
}

pub fn serves(check: &FullCheck, place: &CheckScene<'_>) -> std::io::Result<CheckOutcome> {
    place.prepare();
    let mut server = place.sandboxed(check)?;
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = server.spawn()?;
    let reached = until(|| {
        ["127.0.0.1", "::1"].iter().any(|host| {
            let Ok(address) = host.parse::<std::net::IpAddr>() else { return false };
            let at = std::net::SocketAddr::from((address, place.free));
            let Ok(mut stream) = std::net::TcpStream::connect_timeout(&at, Duration::from_secs(1))
            else {
                return false;
            };
            let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
            let mut byte = [7];
            let _ = stream.write_all(&byte);
            stream.read(&mut byte).is_ok_and(|count| count == 1)
        })
    });
    server.kill()?;
    server.wait()?;
    Ok(if reached { CheckOutcome::Passed } else { failed("no answer on the loopback") })
}

fn until(mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(8);
    while Instant::now() < end {
        if holds() {
            return true;
        }
        std::thread::sleep(TICK);
    }
    false
}
