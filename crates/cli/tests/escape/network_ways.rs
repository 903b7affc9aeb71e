//! What is carried arrives whole: both ways, half closed, from the server first, by datagram, from
//! the host to a server inside, and through the user's own proxy.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;

use crate::require;
use crate::support::{ABSENT, Finished, Run, Scratch, World, allowed, blocked, refused};

#[test]
fn streams_arrive_whole_and_end_as_they_should() {
    require!("userns");
    let world = World::new();
    let run = || Run::new().world(&world).allow_net("api.test:7");
    for count in ["0", "1", "65536", "20000000"] {
        let echoed = allowed(run().probe(&["echo", "api.test:7", count]));
        assert_eq!(echoed.detail, count);
    }
}

/// A byte that is sent as urgent is one of the stream: none behind it is lost, and none waits.
#[test]
fn urgent_bytes_arrive_in_their_place() {
    require!("userns");
    let world = World::new().with("urgent=9.9.9.9:70");
    let script = |urgent: &str, size: u32, end: &str| {
        format!(
            "import socket, sys, threading\n\
             s = socket.create_connection(('api.test', 7), timeout=20)\n\
             def send():\n\
             \x20   s.sendall(b'a' * {size}); {urgent}; s.sendall(b'b' * {size}); {end}\n\
             t = threading.Thread(target=send); t.start()\n\
             back = b''\n\
             while len(back) < {size} * 2 + {}:\n\
             \x20   piece = s.recv(1 << 20)\n\
             \x20   if not piece: break\n\
             \x20   back += piece\n\
             t.join()\n\
             print(back.replace(b'a' * {size}, b'A').replace(b'b' * {size}, b'B'))\n",
            u32::from(urgent != "pass")
        )
    };
    // Few and many bytes at a time; the end right behind, and later.
    for size in [10, 3_000_000] {
        for end in ["s.shutdown(socket.SHUT_WR)", "pass"] {
            for (urgent, expected) in
                [("pass", "b'AB'"), ("s.send(b'!', socket.MSG_OOB)", "b'A!B'")]
            {
                let run = Run::new().world(&world).allow_net("api.test:7");
                let script = script(urgent, size, end);
                let finished = run.command(&["python3", "-c", &script]).run();
                assert_eq!(finished.text().trim(), expected, "{size} {end}\n{finished}");
            }
        }
    }
    let heard =
        allowed(Run::new().world(&world).allow_net("api.test:70").probe(&["talk", "api.test:70"]));
    let expected = ["a".repeat(100_000), "b".repeat(100_000)].join("!");
    assert!(heard.detail == expected, "{} bytes", heard.detail.len());
}

#[test]
fn a_server_that_nobody_answers_for_is_an_ordinary_error() {
    require!("userns");
    let world = World::new().with("name=gone.test>9.9.9.9");
    let run = Run::new().world(&world).allow_net("gone.test:444").allow_net("nowhere.test:1");
    let finished = run.probe(&["talk", "gone.test:444"]).probe(&["talk", "nowhere.test:1"]).run();
    assert!(finished.outcomes.iter().all(|outcome| outcome.errno() == "ECONNRESET"), "{finished}");
    assert!(finished.stderr.contains("could not reach gone.test:444: Connection refused"));
    assert!(finished.stderr.contains("could not reach nowhere.test:1: no such name"));
}

#[test]
fn many_connections_at_once_and_one_after_the_other() {
    require!("userns");
    let world = World::new();
    let run = || Run::new().world(&world).allow_net("api.test:443");
    let worked = allowed(run().probe(&["talk-at-once", "api.test:443", "300"]));
    assert_eq!(worked.detail, "300");
    let mut run = run();
    for _ in 0..50 {
        run = run.probe(&["talk", "api.test:443"]);
    }
    let finished = run.run();
    assert_eq!(finished.outcomes.iter().filter(|outcome| outcome.ok).count(), 50, "{finished}");
}

fn report(run: Run) -> (Finished, serde_json::Value) {
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    let finished = run.flag("--report").arg(&path).run();
    let report = std::fs::read_to_string(&path).unwrap();
    (finished, serde_json::from_str(&report).unwrap())
}

#[test]
fn the_report_counts_what_was_carried() {
    require!("userns");
    let world = World::new();
    let run = Run::new().world(&world).allow_net("api.test:7");
    let run = run.probe(&["echo", "api.test:7", "1000"]).probe(&["talk", "leak.test:1"]);
    let (finished, report) = report(run);
    let reached = &report["network"]["reached"]["api.test:7"];
    let expected = serde_json::json!({"connections": 1, "bytes_out": 1000, "bytes_in": 1000});
    assert_eq!(*reached, expected, "{finished}");
    let refused = &report["network"]["refused"]["leak.test"];
    assert_eq!(refused["flag"], "--allow-net leak.test");
    assert_eq!(report["controls"]["network"]["status"], "enforced", "{report}");
}

#[test]
fn the_users_proxy_is_asked_by_name_and_the_report_says_so() {
    require!("userns");
    let world = World::new().with("proxy=127.0.0.1:3128");
    let run = || {
        let run = Run::new().world(&world).allow_net("api.test:443").allow_net("far.test:443");
        run.env("https_proxy", "http://127.0.0.1:3128").env("no_proxy", "api.test")
    };
    let (finished, report) = report(run().probe(&["talk", "far.test:443"]));
    assert_eq!(finished.last("talk").detail, "hello by proxy\n", "{finished}");
    assert!(world.saw("heard CONNECT far.test:443 HTTP/1.1"), "{}", world.log());
    assert!(!world.saw("dns "), "the proxy resolves: {}", world.log());
    assert_eq!(report["controls"]["network"]["status"], "partial", "{report}");
    let heard = allowed(run().probe(&["talk", "api.test:443"]));
    assert_eq!(heard.detail, "hello from 9.9.9.9:443\n");
    // What no rule allows is not asked of it either.
    let finished = run().probe(&["talk", "leak.test:443"]).run();
    assert!(!finished.last("talk").ok);
    assert!(!world.saw("leak.test"), "{}", world.log());
    let unusable = Run::new().allow_net("a.test").env("https_proxy", "ftp://x");
    unusable.shell("true").run().is_clear_error();
}

/// A port on which nothing listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const SERVER: &str = "import socket, sys\n\
     s = socket.create_server((sys.argv[1], int(sys.argv[2])))\n\
     print('ready', flush=True)\n\
     c, _ = s.accept()\n\
     c.sendall(b'inside: ' + c.recv(100))\n\
     c.close()\n";

#[test]
fn a_server_inside_is_reached_from_the_host_only_when_asked_for() {
    require!("userns");
    let server = |run: Run, at: &str, port: u16| {
        run.command(&["python3", "-c", SERVER, at, &port.to_string()]).spawn()
    };
    let port = free_port();
    let alone = server(Run::new().allow_net("example.com"), "0.0.0.0", port);
    alone.await_output("ready");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    drop(alone);
    for at in ["127.0.0.1", "0.0.0.0"] {
        let port = free_port();
        let listening = server(Run::new().flag("--listen").arg(port.to_string()), at, port);
        listening.await_output("ready");
        // On one address of the host, and on no other.
        assert!(TcpStream::connect(("127.0.0.2", port)).is_err());
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(b"hello").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "inside: hello");
        listening.wait().code_is(0);
    }
}

#[test]
fn a_listening_port_that_cannot_be_had_is_a_clear_error() {
    require!("userns");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    Run::new().flag("--listen").arg(&port).shell("true").run().is_clear_error();
    let clash = Run::new().flag("--listen").arg("8080").allow_net("api.test:8080");
    clash.shell("true").run().is_clear_error();
}

#[test]
fn a_unix_socket_is_there_when_it_was_allowed() {
    require!("userns");
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let words = ["unix-connect", path.to_str().unwrap()];
    let run = || Run::new().flag("--allow-unix").arg(&path);
    refused(Run::new().probe(&words), run().probe(&words), ABSENT);
    // Nothing beside it comes with it.
    let beside = scratch.join("beside");
    let _other = UnixListener::bind(&beside).unwrap();
    blocked(run().probe(&["unix-connect", beside.to_str().unwrap()]), ABSENT);
    let file = scratch.file("file", "");
    Run::new().flag("--allow-unix").arg(file).shell("true").run().is_clear_error();
}

/// A read-only mount does not stop a connection, so sockets that are there are covered.
#[test]
fn unix_sockets_in_granted_directories_are_masked() {
    require!("userns");
    let scratch = Scratch::new();
    let deep = scratch.dir("a/b").join("socket");
    let _listener = UnixListener::bind(&deep).unwrap();
    let words = ["unix-connect", deep.to_str().unwrap()];
    for flag in ["--read", "--write"] {
        let run = || Run::new().flag(flag).arg(scratch.path());
        blocked(run().probe(&words), &["ECONNREFUSED", "EACCES", "EPERM", "ENOTSOCK"]);
        allowed(run().flag("--allow-unix").arg(&deep).probe(&words));
    }
    allowed(Run::bare().probe(&words));
}

#[test]
fn the_command_keeps_its_own_limit_of_open_files() {
    require!("userns");
    let limits = |run: Run| {
        let limits = allowed(run.probe(&["rlimits"]));
        limits.field("nofile").join(" ")
    };
    let with = limits(Run::new().allow_net("a.test").flag("--max-fds").arg("none"));
    assert_eq!(with, limits(Run::new().flag("--max-fds").arg("none")));
}

/// A name with an address of a family that is broken here: the other one is tried soon, and from
/// then on first, for datagrams too, whose loss is not reported.
#[test]
fn a_broken_family_is_gone_around_and_remembered() {
    require!("userns", "ipv6");
    let world = World::new()
        .with("own=2606:4700:9::2")
        .with("dead=2606:4700:1:2::5")
        .with("name=both.test>2606:4700:1:2::5")
        .with("name=both.test>9.9.9.9");
    let run = || Run::new().world(&world).allow_net("both.test").allow_net("udp://both.test:99");
    let datagram = ["udp-talk", "both.test:99"];
    // The control: nothing is known of either family, and IPv6 comes first.
    assert!(!run().probe(&datagram).run().last("udp-talk").ok, "the address is not dead");
    let finished = run().probe(&["talk", "both.test:443"]).probe(&datagram).run();
    let details: Vec<_> = finished.outcomes.iter().map(|outcome| &outcome.detail[..]).collect();
    assert_eq!(details, ["hello from 9.9.9.9:443\n", "hello from 9.9.9.9:99"], "{finished}");
}
