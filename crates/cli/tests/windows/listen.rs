//! `--listen`: programs of this machine reach a server inside, on [::1] and the port that was named.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    PATIENCE, Run, Scratch, allowed, eventually, heart_beats, heart_stops, holds, missing,
};

/// A port that nobody has, in neither family.
fn free_port() -> u16 {
    loop {
        let found = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if TcpListener::bind(("::1", found)).is_ok() {
            return found;
        }
    }
}

fn listening(port: u16) -> Run {
    Run::new().flag("--listen").flag(port.to_string())
}

/// What is said back, once there is somebody who does.
fn said_back(port: u16, words: &[u8]) -> Vec<u8> {
    let mut heard = Vec::new();
    let ask = |heard: &mut Vec<u8>| -> std::io::Result<()> {
        let mut stream = TcpStream::connect(("::1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut writer, words) = (stream.try_clone()?, words.to_vec());
        let writing = std::thread::spawn(move || {
            let sent = writer.write_all(&words);
            sent.and_then(|()| writer.shutdown(Shutdown::Write))
        });
        heard.clear();
        let read = stream.read_to_end(heard);
        let _ = writing.join();
        read.map(drop)
    };
    let is_heard = eventually(|| ask(&mut heard).is_ok() && !heard.is_empty());
    assert!(is_heard, "nobody answers on [::1]:{port}");
    heard
}

#[test]
fn a_server_inside_is_reached() {
    let port = free_port();
    let live = listening(port).probe(&["serve", &port.to_string(), "2"]).spawn();
    assert_eq!(said_back(port, b"hello"), b"hello");
    // More than every buffer on the way holds.
    let much: Vec<u8> = (0..3_000_000u32).map(|n| (n / 251) as u8).collect();
    assert!(said_back(port, &much) == much);
    let finished = live.wait();
    assert_eq!(finished.last()["detail"], "3000005 bytes", "{finished:#?}");
    assert!(finished.stderr.contains(&format!("localhost:{port}")), "{finished:#?}");
    assert!(TcpStream::connect(("::1", port)).is_err(), "the port outlived the run");
}

#[test]
fn only_when_it_is_asked_for() {
    let port = free_port();
    let scratch = Scratch::new();
    let heart = scratch.dir("grant").join("beat");
    let mut live = Run::new()
        .write(&scratch.join("grant"))
        .probe(&["loop-heartbeat", heart.to_str().unwrap(), "20"])
        .spawn();
    heart_beats(&heart);
    assert!(TcpStream::connect(("::1", port)).is_err());
    live.child.kill().unwrap();
    live.wait_and(|| heart_stops(&heart));
}

/// Windows closes a container's ports to others: what is not named is not reached, and what is only by the launcher.
#[test]
fn a_server_is_reached_by_no_other_way() {
    let knock = |port: u16| -> std::io::Result<usize> {
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"hello")?;
        stream.shutdown(Shutdown::Write)?;
        stream.read(&mut [0; 8])
    };
    let port = free_port();
    let mut live = listening(port).probe(&["serve", &port.to_string(), "9"]).spawn();
    assert_eq!(said_back(port, b"hello"), b"hello", "the control: it serves");
    // Where nothing closes it, whoever asks is answered.
    assert_eq!(matches!(knock(port), Ok(1..)), !holds("container"));
    assert_eq!(said_back(port, b"hello"), b"hello");
    live.child.kill().unwrap();
    live.wait();
}

/// Two ports, and a way out beside them: none takes another's place.
#[test]
fn every_way_leads_where_it_should() {
    let (first, second) = (free_port(), free_port());
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = outside.local_addr().unwrap().to_string();
    let run = listening(first).flag("--listen").flag(second.to_string());
    let run = run.flag("--allow-net").flag(&place);
    let live = run
        .probe(&["serve", &second.to_string()])
        .probe(&["serve", &first.to_string()])
        .probe(&["talk-proxied", &place, "out"])
        .spawn();
    // Nobody serves on the first one yet.
    assert_eq!(said_back(second, b"two"), b"two");
    assert_eq!(said_back(first, b"one"), b"one");
    let (mut stream, _) = outside.accept().unwrap();
    let mut words = [0; 3];
    stream.read_exact(&mut words).unwrap();
    stream.write_all(b"heard").unwrap();
    drop(stream);
    let finished = live.wait();
    assert_eq!(&words, b"out");
    assert!(finished.acts().iter().all(|act| act["ok"] == true), "{finished:#?}");
}

/// What a server says right before it ends gets out.
#[test]
fn last_words_arrive() {
    let words = vec![b'x'; 60_000];
    for _ in 0..3 {
        let port = free_port();
        let live = listening(port).probe(&["serve", &port.to_string()]).spawn();
        assert_eq!(said_back(port, &words), words);
        live.wait().code_is(0);
    }
}

#[test]
fn a_port_that_cannot_be_had_is_a_clear_error() {
    for taken in ["[::1]:0", "127.0.0.1:0"] {
        let taken = TcpListener::bind(taken).unwrap();
        let at = taken.local_addr().unwrap();
        let finished = listening(at.port()).probe(&["exit", "0"]).run();
        finished.code_is(125);
        assert!(finished.stderr.contains(&format!("{at}")), "{finished:#?}");
        assert!(finished.stdout.is_empty(), "started all the same: {finished:#?}");
    }
}

#[test]
fn the_report_tells_of_it() {
    let port = free_port();
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    let run = listening(port).flag("--quiet").flag("--report").flag(&path);
    let live = run.probe(&["serve", &port.to_string()]).spawn();
    assert_eq!(said_back(port, b"hello"), b"hello");
    let finished = live.wait();
    assert!(!finished.stderr.contains("localhost"), "quiet: {finished:#?}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let reached = &report["network"]["reached"][format!("listen {port}")];
    // Those who came too early are counted as well.
    assert!(reached["connections"].as_u64() >= Some(1), "{report:#}");
    assert!(reached["bytes_out"].as_u64() >= Some(5), "{report:#}");
    assert_eq!(reached["bytes_in"], 5, "{report:#}");
    let status = &report["controls"]["network"]["status"];
    let expected = if missing("container").is_some() { "unavailable" } else { "enforced" };
    assert_eq!(status, expected, "{report:#}");
}

/// The launcher dies: nobody takes its place at the port, and the relay is gone.
#[test]
fn nothing_is_left_of_a_launcher_that_is_killed() {
    let port = free_port();
    let scratch = Scratch::new();
    let heart = scratch.dir("grant").join("beat");
    let mut live = listening(port)
        .write(&scratch.join("grant"))
        .probe(&["loop-heartbeat", heart.to_str().unwrap(), "20"])
        .spawn();
    heart_beats(&heart);
    assert!(TcpStream::connect(("::1", port)).is_ok());
    live.child.kill().unwrap();
    live.wait_and(|| heart_stops(&heart));
    assert!(eventually(|| TcpStream::connect(("::1", port)).is_err()));
    assert!(eventually(|| TcpListener::bind(("127.0.0.1", port)).is_ok()));
}

#[test]
fn one_process_is_enough_for_the_command() {
    let port = free_port();
    let live = listening(port).flag("--no-subprocess").probe(&["serve", &port.to_string()]).spawn();
    assert_eq!(said_back(port, b"hello"), b"hello");
    live.wait().code_is(0);
    // The check of the way in leaves the port to the command, at once.
    for _ in 0..3 {
        allowed(listening(port).probe(&["listen", &port.to_string()]));
    }
}
