//! The allowlist: a relay inside, the launcher's proxy outside, and nothing else.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Finished, PATIENCE, Run, Scratch, allowed, blocked_by, eventually, heart_beats, heart_stops,
    missing,
};

/// A server on the loopback that answers each message with a greeting, and tells what it heard.
struct Server {
    at: SocketAddr,
    heard: Receiver<Vec<u8>>,
}

impl Server {
    fn greeting() -> Server {
        Server::new(|mut stream, heard| {
            let mut words = [0; 64];
            let count = stream.read(&mut words).unwrap_or(0);
            heard(words[..count].to_vec());
            let _ = stream.write_all(b"welcome\n");
        })
    }

    fn echoing() -> Server {
        Server::new(|mut stream, heard| {
            let mut writer = stream.try_clone().unwrap();
            let _ = std::io::copy(&mut stream, &mut writer);
            let _ = stream.shutdown(Shutdown::Write);
            heard(Vec::new());
        })
    }

    /// Hears all, and says nothing.
    fn listening() -> Server {
        Server::new(|mut stream, heard| {
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all);
            heard(all);
        })
    }

    fn new(serve: fn(TcpStream, &dyn Fn(Vec<u8>))) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tell = tell.clone();
                std::thread::spawn(move || serve(stream, &|words| drop(tell.send(words))));
            }
        });
        Server { at, heard }
    }

    fn place(&self) -> String {
        self.at.to_string()
    }

    /// Whether anybody ever said anything to it.
    fn was_reached(&self) -> bool {
        self.heard.try_recv().is_ok()
    }
}

fn with(rule: &str) -> Run {
    Run::new().flag("--allow-net").flag(rule)
}

fn report(run: Run) -> (Finished, Value) {
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    let finished = run.flag("--report").flag(&path).flag("--quiet").run();
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{e}: {finished:#?}"));
    (finished, serde_json::from_str(&text).unwrap())
}

#[test]
fn what_is_allowed_is_reached() {
    let server = Server::greeting();
    let said = allowed(with(&server.place()).probe(&["talk-proxied", &server.place(), "ping"]));
    assert_eq!(said, "welcome\n");
    assert_eq!(server.heard.recv_timeout(PATIENCE).unwrap(), b"ping");
}

#[test]
fn what_is_not_allowed_is_not_and_the_flag_is_told() {
    let (server, other) = (Server::greeting(), Server::greeting());
    let run = || with(&server.place());
    allowed(run().probe(&["talk-proxied", &server.place()]));
    let finished = run().probe(&["talk-proxied", &other.place()]).run();
    assert_eq!(finished.last()["ok"], false, "{finished:#?}");
    let line = format!("blocked {}", other.place());
    assert!(finished.stderr.contains(&line), "{finished:#?}");
    let flag = format!("--allow-net {}", other.place());
    assert!(finished.stderr.contains(&flag), "{finished:#?}");
    let said = finished.last()["detail"].as_str().unwrap().to_owned();
    assert!(said.contains("403") && said.contains("blocked"), "{said}");
    let finished = run().probe(&["talk-proxied", "api.example.com:443"]).run();
    assert!(finished.stderr.contains("blocked api.example.com:443"), "{finished:#?}");
    assert!(!other.was_reached());
}

#[test]
fn names_are_looked_up_outside() {
    let server = Server::greeting();
    let place = format!("localhost:{}", server.at.port());
    allowed(with(&place).probe(&["talk-proxied", &place]));
}

#[test]
fn much_arrives_whole() {
    let server = Server::echoing();
    let run = with(&server.place()).probe(&["echo-proxied", &server.place(), "3000000"]);
    assert_eq!(allowed(run), "3000000");
}

/// The launcher's broker wants the password of this run, which is only in the command's environment; without rules
/// there is nothing there at all.
#[test]
fn strangers_have_nothing_from_it() {
    let server = Server::greeting();
    let scratch = Scratch::new();
    let heart = scratch.dir("grant").join("beat");
    let finished = Run::new().probe(&["getenv", "HTTP_PROXY"]).run();
    assert_eq!(finished.last()["ok"], false, "{finished:#?}");
    let run = with(&server.place()).write(&scratch.join("grant"));
    let out = scratch.join("grant").join("proxy");
    let words = format!("echo %HTTP_PROXY%> {}", out.display());
    let run = run.command(&[
        "cmd",
        "/c",
        &format!(
            "{words} & {} loop-heartbeat {} 20",
            crate::support::probe().display(),
            heart.display()
        ),
    ]);
    let mut live = run.spawn();
    heart_beats(&heart);
    let url = std::fs::read_to_string(&out).unwrap();
    let url = url.trim().strip_prefix("http://").unwrap().to_owned();
    let (login, place) = url.rsplit_once('@').unwrap();
    assert!(login.starts_with("mcp:") && login.len() > 30, "{login}");
    let ask = |login: Option<&str>| -> String {
        let Ok(mut stream) = TcpStream::connect(place) else { return "refused".to_owned() };
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let to = server.place();
        let login = login.map(|l| format!("Proxy-Authorization: Basic {l}\r\n"));
        let head = format!("CONNECT {to} HTTP/1.1\r\n{}\r\n", login.unwrap_or_default());
        stream.write_all(head.as_bytes()).unwrap();
        let mut line = [0; 64];
        let count = stream.read(&mut line).unwrap_or(0);
        String::from_utf8_lossy(&line[..count]).into_owned()
    };
    for stranger in [None, Some("bWNwOm1jcA==")] {
        let said = ask(stranger);
        assert!(said == "refused" || said.contains("407"), "{said}");
    }
    if missing("container").is_some() {
        assert!(ask(None).contains("407"), "the relay is there, and asks who we are");
    }
    // The launcher dies: nothing of the run is left, the relay neither.
    live.child.kill().unwrap();
    live.wait_and(|| heart_stops(&heart));
    assert!(eventually(|| TcpStream::connect(place).is_err()), "the relay outlived its launcher");
    assert!(!server.was_reached());
}

#[test]
fn a_relay_that_dies_takes_its_connections_with_it_and_no_more() {
    let server = Server::listening();
    let run = with(&server.place()).probe(&["kill-proxy", &server.place()]);
    let finished = run.probe(&["talk-proxied", &server.place()]).probe(&["exit", "7"]).run();
    let acts = finished.acts();
    assert_eq!(acts[0]["detail"], "closed", "{finished:#?}");
    assert_eq!(acts[1]["ok"], false, "{finished:#?}");
    finished.code_is(7);
}

/// What was sent before the end gets out.
#[test]
fn last_words_arrive() {
    let server = Server::listening();
    for _ in 0..5 {
        allowed(with(&server.place()).probe(&["tell-proxied", &server.place(), "30000"]));
        let heard = server.heard.recv_timeout(PATIENCE).unwrap();
        assert_eq!(heard.len(), 30_000);
    }
}

#[test]
fn one_process_is_enough_for_the_command() {
    let server = Server::greeting();
    for flag in [&["--no-subprocess"][..], &["--max-pids", "1"]] {
        let run = flag.iter().fold(with(&server.place()), |run, word| run.flag(word));
        allowed(run.probe(&["talk-proxied", &server.place()]));
    }
}

#[test]
fn the_report_tells_what_was_carried() {
    let (server, other) = (Server::greeting(), Server::greeting());
    let run = with(&server.place()).probe(&["talk-proxied", &server.place(), "ping"]);
    let (finished, report) = report(run.probe(&["talk-proxied", &other.place()]));
    let network = &report["network"];
    let reached = &network["reached"][server.place()];
    assert_eq!(reached["connections"], 1, "{report:#} {finished:#?}");
    assert_eq!(reached["bytes_in"], 8, "{report:#}");
    assert!(network.to_string().contains(&other.place()), "{network}");
    let status = &report["controls"]["network"];
    match missing("container") {
        Some(_) => assert_eq!(status["status"], "unavailable", "{report:#}"),
        None => assert_eq!(status["status"], "enforced", "{report:#}"),
    }
}

/// Programs ask the proxy; what they try by themselves is refused, allowed or not.
#[test]
fn who_knows_no_proxy_does_not_get_out() {
    let server = Server::greeting();
    blocked_by("container", with(&server.place()).probe(&["talk", &server.place()]));
    assert_eq!(server.was_reached(), missing("container").is_some());
}

#[test]
fn what_is_not_built_is_said() {
    let finished = with("udp://127.0.0.1:53").probe(&["exit", "0"]).run();
    assert!(finished.stderr.contains("udp cannot be proxied") || missing("container").is_some());
    let scratch = Scratch::new();
    let socket = scratch.file("x.sock", "");
    let finished = Run::strict().flag("--allow-unix").flag(socket).probe(&["exit", "0"]).run();
    finished.code_is(125);
    if missing("container").is_none() {
        assert!(finished.stderr.contains("--allow-net 127.0.0.1:PORT"), "{finished:#?}");
    }
}
