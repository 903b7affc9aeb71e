//! Ctrl-C, and worse, at any moment: nothing is half-done, and the next run works.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::index::Index;
use crate::require;
use crate::support::{eventually, patience, sys};
use crate::user::{Said, User, text};

const INTERRUPT: i32 = 2;
const KILL: i32 = 9;

fn end(mut child: Child, signal: i32) {
    sys::kill(child.id(), signal);
    let status = child.wait().unwrap();
    assert!(!status.success());
    assert!(status.signal() == Some(signal) || status.code() == Some(128 + signal), "{status}");
}

/// What lies in the staging directory. Single small files on their way have no lock, and go when they
/// are a minute old.
fn staged(user: &User) -> Vec<String> {
    let staging = user.path("data/mcp/store/staging");
    let entries = fs::read_dir(staging).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

fn has_started(user: &User) -> bool {
    let staging = user.path("data/mcp/store/staging");
    let entries = fs::read_dir(staging).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().join("work/started").exists())
}

/// Whether any process still has this directory for its own.
fn is_worked_in(directory: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    })
}

#[test]
fn an_installation_ends_with_its_user_and_the_next_one_works() {
    require!("userns");
    for signal in [INTERRUPT, KILL] {
        let user = User::new();
        let Some(index) = Index::new(&user) else { return };
        let pull = index
            .command(&user, &["pull", "npm:slow"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(eventually(patience(), || has_started(&user)), "npm was never started");
        end(pull, signal);
        let staging = user.path("data/mcp/store/staging");
        assert!(eventually(patience(), || !is_worked_in(&staging)), "npm goes on");
        user.mcp(&["list", "--json"]).ok().says("[]");
        let run: Said =
            index.command(&user, &["run", "npm:quick", "--", "x"]).output().unwrap().into();
        run.ok().says("[\"x\"]");
        assert_eq!(staged(&user), [""; 0]);
        let kept = std::fs::read_dir(user.path("cache/mcp/downloads")).unwrap().flatten();
        let kept = kept.filter(|entry| entry.path().join("kept").is_file()).count();
        assert_eq!(kept, 1, "what was downloaded is kept over a kill");
    }
}

/// A registry with one package, that stops in the middle of its blob until it is told to go on.
struct Slow {
    host: String,
    is_stopped: Arc<AtomicBool>,
    goes_on: Arc<AtomicBool>,
}

impl Slow {
    fn new(manifest: Vec<u8>, blob: Vec<u8>) -> Slow {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let (is_stopped, goes_on) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (stopped, going) = (is_stopped.clone(), goes_on.clone());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (manifest, blob) = (manifest.clone(), blob.clone());
                let (stopped, going) = (stopped.clone(), going.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let (mut first, mut line) = (String::new(), String::new());
                    reader.read_line(&mut first).unwrap();
                    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                        line.clear();
                    }
                    let mut say = |status: &str, body: &[u8], length: usize| {
                        let head = format!(
                            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                        );
                        let _ = stream.write_all(&[head.as_bytes(), body].concat());
                    };
                    if first.contains(".minisig") {
                        say("404 None", b"", 0);
                    } else if first.contains("/manifests/") {
                        say("200 OK", &manifest, manifest.len());
                    } else if going.load(Ordering::SeqCst) {
                        say("200 OK", &blob, blob.len());
                    } else {
                        say("200 OK", &blob[..blob.len() / 2], blob.len());
                        stopped.store(true, Ordering::SeqCst);
                        std::thread::sleep(patience());
                    }
                });
            }
        });
        Slow { host, is_stopped, goes_on }
    }
}

#[test]
fn a_download_ends_with_its_user_and_the_next_one_works() {
    require!("userns");
    let maker = User::new();
    maker.stored("1.0.0", "");
    let index = fs::read_to_string(maker.path("data/mcp/store/index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let blob = |digest: &serde_json::Value| {
        let hex = digest.as_str().unwrap().trim_start_matches("sha256:");
        fs::read(maker.path("data/mcp/store/blobs/sha256").join(hex)).unwrap()
    };
    let manifest = blob(&index["manifests"][0]["digest"]);
    let parsed: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let slow = Slow::new(manifest.clone(), blob(&parsed["layers"][0]["digest"]));
    let user = User::new();
    let words = ["run", "acme/test@1.0.0", "--registry", &slow.host, "--", "getenv", "HOME"];
    for signal in [INTERRUPT, KILL] {
        slow.is_stopped.store(false, Ordering::SeqCst);
        let mut run = user.command(&words);
        let run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert!(eventually(patience(), || slow.is_stopped.load(Ordering::SeqCst)));
        end(run, signal);
        user.mcp(&["list", "--json"]).ok().says("[]");
    }
    slow.goes_on.store(true, Ordering::SeqCst);
    user.mcp(&words).ok().says("\"ok\":true");
    assert_eq!(staged(&user), [""; 0]);
}

/// Unpacking takes a few milliseconds, so many moments are tried; some of them are in it.
#[test]
fn unpacking_ends_with_its_user_and_the_next_run_works() {
    require!("userns");
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    for number in 0..400 {
        user.scratch.file(format!("source/many/{}/{number}", number % 20), &"x".repeat(2000));
    }
    let bundle = user.path("test.mcpb");
    user.mcp(&["pack", text(&source), "-o", text(&bundle)]).ok();
    let halfway = Mutex::new(0);
    for delay in 0..24 {
        let signal = if delay % 2 == 0 { INTERRUPT } else { KILL };
        let mut pull = user.command(&["pull", text(&bundle)]);
        let mut pull = pull.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(4 * delay));
        sys::kill(pull.id(), signal);
        let _ = pull.wait();
        *halfway.lock().unwrap() += usize::from(!staged(&user).is_empty());
        let listed = user.mcp(&["list", "--json"]).ok();
        if !listed.out.contains("[]") {
            user.mcp(&["verify"]).ok();
            user.mcp(&["remove", "acme/test@1.0.0"]).ok();
        }
    }
    println!("{} of 24 were interrupted while they worked", halfway.lock().unwrap());
    user.mcp(&["run", text(&bundle), "--", "getenv", "HOME"]).ok().says("\"ok\":true");
    assert_eq!(staged(&user), [""; 0]);
}
