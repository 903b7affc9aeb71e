//! A command that wants to use up the broker is limited, is told of, and goes on running.

use std::io::Write;

use crate::require;
use crate::support::{Finished, Live, PLAIN, Run, World, allowed, mcp_path, patience};

#[test]
fn names_without_end_are_bounded() {
    require!("userns");
    let world = World::new();
    let run = Run::new().world(&world).allow_net("*.wild.test").allow_net("api.test:443");
    let run = run.probe(&["resolve-many", "3000", "wild.test"]);
    let finished = run.probe(&["talk", "api.test:443"]).limit(patience() * 3).run();
    finished.code_is(0).has_no_panic();
    assert!(finished.outcomes.iter().all(|outcome| outcome.ok), "{finished}");
}

#[test]
fn ports_and_addresses_without_end_are_bounded() {
    require!("userns");
    let world = World::new().with("name=many.test>9.9.9.9");
    let script = "import socket\n\
         made = 0\n\
         for i in range(5000):\n\
         \x20   s = socket.socket()\n\
         \x20   s.settimeout(2)\n\
         \x20   try:\n\
         \x20       s.connect(('9.9.%d.%d' % (i // 250 + 10, i % 250 + 1), 443)); made += 1\n\
         \x20   except OSError: pass\n\
         \x20   s.close()\n\
         print('made', made)\n";
    let run = Run::new().world(&world).allow_net("9.9.0.0/16:443");
    let finished = run.command(&["python3", "-c", script]).limit(patience() * 3).run();
    finished.code_is(0).has_no_panic();
    let made: u32 = finished.text().trim_start_matches("made ").trim().parse().unwrap();
    assert!((16..=4096).contains(&made), "{finished}");
    assert!(finished.stderr.contains("further ones stay closed"), "{finished}");
}

/// What the command makes up, names below a wildcard and addresses of a network, takes nothing from
/// a name that a rule spells out.
#[test]
fn names_and_addresses_without_end_leave_room_for_a_name() {
    require!("userns");
    let world = World::new().with("name=*.wild.test>9.9.9.9");
    let script = |flood: &str| {
        format!(
            "{PRELUDE}\
             before = socket.gethostbyname('api.test')\n\
             for i in range(200):\n\
             \x20   try: {flood}\n\
             \x20   except OSError: pass\n\
             say(talk(before, 443))\n\
             say(talk('api.test', 80))\n\
             say(talk('late.test', 443))\n"
        )
    };
    let floods = [
        "socket.gethostbyname('n%d.wild.test' % i)",
        "socket.create_connection(('9.9.10.%d' % i, 443), timeout=2)",
        "pass",
    ];
    let world = world.with("name=late.test>9.9.9.9");
    for flood in floods {
        let run = few_connections(&world).allow_net("9.9.0.0/16:443").allow_net("*.wild.test:*");
        let run = run.allow_net("*.wild.test").allow_net("udp://*.wild.test:99");
        let run = run.allow_net("api.test:443,tls=off").allow_net("api.test:80");
        let run = run.allow_net("api.test:7");
        let run = run.allow_net("late.test:443,tls=off");
        let finished = run.command(&["python3", "-c", &script(flood)]).run();
        finished.code_is(0).has_no_panic();
        assert_eq!(finished.text().matches("hello from 9.9.9.9").count(), 3, "{finished}");
    }
}

#[test]
fn flows_without_end_are_bounded() {
    require!("userns");
    let world = World::new();
    // Datagrams may get lost; a flow that is open answers one of some.
    let script = "import socket\n\
         def answered():\n\
         \x20   s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)\n\
         \x20   for i in range(5):\n\
         \x20       s.sendto(b'x', ('9.9.9.9', 99))\n\
         \x20       try: return s.recv(100)\n\
         \x20       except OSError: pass\n\
         count = 0\n\
         while count < 3000 and answered(): count += 1\n\
         print('flows', count)\n\
         s = socket.create_connection(('9.9.9.9', 443)); s.sendall(b'hi'); print(s.recv(100))\n";
    let run = Run::new().world(&world).allow_net("udp://9.9.9.9:99").allow_net("9.9.9.9:443");
    let finished = run.command(&["python3", "-c", script]).run();
    finished.code_is(0).has_no_panic();
    assert!(finished.text().contains("hello from 9.9.9.9:443"), "{finished}");
    assert!(!finished.text().contains("flows 3000"), "{finished}");
    assert!(finished.stderr.contains("udp flows are open"), "{finished}");
}

#[test]
fn connections_wait_where_descriptors_are_few() {
    require!("userns");
    let world = World::new();
    let script = "import socket\n\
         s = [socket.create_connection(('9.9.9.9', 7)) for i in range(200)]\n\
         for c in s: c.sendall(b'x')\n\
         got = 0\n\
         for c in s:\n\
         \x20   got += len(c.recv(1)); c.close()\n\
         print('got', got)\n";
    let run = Run::new().world(&world).allow_net("9.9.9.9:7");
    let run = run.prepare(crate::support::Preparation::OpenFiles(512));
    let finished = run.command(&["python3", "-c", script]).run();
    assert!(finished.text().contains("got 200"), "{finished}");
    assert!(finished.stderr.contains("connections are open; further ones wait"), "{finished}");
}

/// The resolver's own sockets take anything and answer questions.
#[test]
fn noise_at_the_resolver_is_ignored() {
    require!("userns");
    let world = World::new();
    let script = "import socket, os\n\
         at = ('127.18.0.53', 53)\n\
         u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         for i in range(2000): u.sendto(os.urandom(i % 600), at)\n\
         u.sendto(b'', at)\n\
         t = socket.create_connection(at)\n\
         try: t.sendall(os.urandom(70000))\n\
         except OSError: pass\n\
         many = [socket.create_connection(at) for i in range(100)]\n\
         question = bytes.fromhex('001a123401000001000000000000036170690474657374000001' + '0001')\n\
         for t in many:\n\
         \x20   t.setblocking(False)\n\
         \x20   try:\n\
         \x20       for i in range(100): t.send(question * 1000)\n\
         \x20   except OSError: pass\n\
         print(socket.create_connection(('api.test', 443)) is not None)\n";
    let run = Run::new().world(&world).allow_net("api.test");
    let finished = run.command(&["python3", "-c", script]).run();
    finished.code_is(0).has_no_panic();
    assert!(finished.text().contains("True"), "{finished}");
    let line = "too many connections to the resolver; further ones are closed";
    assert!(finished.stderr.contains(line), "{finished}");
    allowed(Run::new().world(&world).allow_net("api.test").probe(&["talk", "api.test:443"]));
}

/// Words that the scripts below share. They say `ready` after some ordinary traffic, flood at a
/// word from the test, say `flooded`, and at another word try ordinary traffic again.
const PRELUDE: &str = "import socket, sys, time\n\
     def say(text): print(text, flush=True)\n\
     def pause(text): say(text); sys.stdin.readline()\n\
     def talk(name, port):\n\
     \x20   s = socket.create_connection((name, port), timeout=20)\n\
     \x20   s.sendall(b'hello\\n'); return s.recv(100).decode()\n\
     def ask(name, port):\n\
     \x20   s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)\n\
     \x20   for i in range(5):\n\
     \x20       s.sendto(b'x', (name, port))\n\
     \x20       try: return s.recv(100).decode()\n\
     \x20       except socket.timeout: pass\n\
     def push(s, data):\n\
     \x20   s.setblocking(False)\n\
     \x20   try:\n\
     \x20       while data: data = data[s.send(data):]\n\
     \x20   except BlockingIOError: pass\n\
     open_ones = []\n";

/// What the launcher may take beyond what it needs for ordinary traffic.
const MOST_MORE_KIB: u64 = 16 << 10;

/// The launcher among the descendants of a process.
fn launcher_below(pid: u32) -> Option<u32> {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    if exe.file_name() == mcp_path().file_name() {
        return Some(pid);
    }
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().find_map(|child| launcher_below(child.parse().ok()?))
}

/// The most memory that the launcher ever had, in KiB.
fn peak_of_launcher(live: &Live) -> u64 {
    let launcher = launcher_below(live.pid()).expect("no launcher");
    let status = std::fs::read_to_string(format!("/proc/{launcher}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Runs a script that floods, and asserts that the launcher has not grown by much.
#[track_caller]
fn floods(run: Run, before: &str, flood: &str, after: &str) -> Finished {
    let script = format!(
        "{PRELUDE}{before}\npause('ready')\n{flood}\npause('flooded')\n{after}\nsay('over')\n"
    );
    let run = run.flag("--max-memory").arg("64M").flag("--max-fds").arg("8192");
    // Without namespaces root becomes a user who may not use root's own.
    let system = "/usr/bin/python3";
    let python = if std::path::Path::new(system).exists() { system } else { "python3" };
    let run = run.command(&[python, "-c", &script]).open_input().limit(patience() * 3);
    let mut live = run.spawn();
    let mut stdin = live.stdin();
    live.await_output("ready");
    let before = peak_of_launcher(&live);
    stdin.write_all(b"\n").unwrap();
    live.await_output("flooded");
    let more = peak_of_launcher(&live) - before;
    assert!(more < MOST_MORE_KIB, "{more} KiB more than the {before} KiB before");
    stdin.write_all(b"\n").unwrap();
    live.await_output("over");
    let finished = live.wait();
    finished.code_is(0).has_no_panic();
    eprintln!("{before} KiB, and {more} more");
    finished
}

#[test]
fn datagrams_that_wait_for_a_name_do_not_fill_the_launcher() {
    require!("userns");
    let world = World::new().with("mute=never.test");
    let run = Run::new().world(&world);
    let run = run.allow_net("udp://never.test:99").allow_net("udp://api.test:99");
    let control = "assert ask('api.test', 99) == 'hello from 9.9.9.9:99'";
    let flood = "at = (socket.gethostbyname('never.test'), 99)\n\
         for i in range(400):\n\
         \x20   s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); open_ones.append(s)\n\
         \x20   for j in range(16): s.sendto(b'x' * 60000, at); time.sleep(0.0002)";
    floods(run, control, flood, control);
}

#[test]
fn heads_that_are_half_sent_do_not_fill_the_launcher() {
    require!("userns");
    let world = World::new();
    let run = || Run::new().world(&world).allow_net("api.test:80").allow_net("api.test:443");
    let control = "assert 'hello from 9.9.9.9:80' in talk('api.test', 80)\n\
         assert 'hello from 9.9.9.9:80' in talk('api.test', 80)";
    let flood = |port: u16, head: &str| {
        format!(
            "for i in range(1500):\n\
             \x20   s = socket.create_connection(('api.test', {port}), timeout=20)\n\
             \x20   open_ones.append(s)\n\
             \x20   push(s, {head})\n\
             time.sleep(1)"
        )
    };
    let http = flood(80, "b'GET / HTTP/1.1\\r\\nX: ' + b'x' * 60000");
    floods(run(), control, &http, control);
    // A ClientHello of 60,000 bytes in records of 16,000.
    let tls = flood(
        443,
        "b''.join(b'\\x16\\x03\\x01\\x3e\\x80' + (b'\\x01\\x00\\xea\\x60' if n == 0 else b'xxxx') \
         + b'x' * 15996 for n in range(3))",
    );
    floods(run(), control, &tls, control);
}

/// Without namespaces, heads are half sent to the proxy.
#[test]
fn heads_that_are_half_sent_do_not_fill_the_proxy() {
    require!("plain", "userns");
    let world = World::new();
    let run = Run::new().on(PLAIN).world(&world).allow_net("api.test:80");
    let control = "s = socket.create_connection(('127.18.0.53', 3128), timeout=20)\n\
         s.sendall(b'CONNECT api.test:80 HTTP/1.1\\r\\n\\r\\nhello\\n')\n\
         heard = b''\n\
         while b'hello from' not in heard:\n\
         \x20   piece = s.recv(1000); assert piece; heard += piece";
    let flood = "for i in range(1500):\n\
         \x20   s = socket.create_connection(('127.18.0.53', 3128), timeout=20)\n\
         \x20   open_ones.append(s)\n\
         \x20   try: push(s, b'CONNECT api.test:80 HTTP/1.1\\r\\nX: ' + b'x' * 60000)\n\
         \x20   except OSError: pass\n\
         time.sleep(1)";
    floods(run, control, flood, control);
}

/// The connections of this test are few: 48 at a time.
fn few_connections(world: &World) -> Run {
    Run::new().world(world).prepare(crate::support::Preparation::OpenFiles(512))
}

#[test]
fn who_has_closed_takes_no_room_while_nobody_answers() {
    require!("userns");
    let world = World::new().with("ip=9.9.9.8").with("full=9.9.9.8:443");
    let script = |close: &str| {
        format!(
            "{PRELUDE}\
             for i in range(200):\n\
             \x20   s = socket.socket(); s.settimeout(20); open_ones.append(s)\n\
             \x20   s.connect(('9.9.9.8', 443))\n\
             \x20   {close}\n\
             say(talk('9.9.9.9', 443))\n"
        )
    };
    // Closed in order, with words before, and by a reset.
    let ways = [
        "s.close()",
        "s.sendall(b'words'); s.close()",
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\\1\\0\\0\\0\\0\\0\\0\\0'); s.close()",
    ];
    for way in ways {
        let run = few_connections(&world).allow_net("9.9.9.0/24:443");
        let finished = run.command(&["python3", "-c", &script(way)]).run();
        finished.code_is(0).has_no_panic();
        assert!(finished.text().contains("hello from 9.9.9.9:443"), "{finished}");
    }
    let run = few_connections(&world).allow_net("9.9.9.0/24:443");
    allowed(run.probe(&["talk", "9.9.9.9:443"]));
}

#[test]
fn connections_by_one_rule_leave_room_for_those_by_others() {
    require!("userns");
    let world = World::new().with("ip=9.9.9.8").with("full=9.9.9.8:443");
    let run = || few_connections(&world).allow_net("9.9.9.8:443").allow_net("api.test:443,tls=off");
    let script = format!(
        "{PRELUDE}\
         for i in range(200):\n\
         \x20   s = socket.socket(); s.setblocking(False); open_ones.append(s)\n\
         \x20   s.connect_ex(('9.9.9.8', 443))\n\
         for i in range(20): say(talk('api.test', 443))\n"
    );
    let finished = run().command(&["python3", "-c", &script]).run();
    finished.code_is(0).has_no_panic();
    assert_eq!(finished.text().matches("hello from 9.9.9.9:443").count(), 20, "{finished}");
    allowed(run().probe(&["talk", "api.test:443"]));
}

#[test]
fn datagrams_by_one_rule_leave_room_for_those_by_others() {
    require!("userns");
    let world = World::new();
    let run = || {
        let run = few_connections(&world).allow_net("udp://9.9.9.9:98");
        run.allow_net("udp://api.test:99")
    };
    let script = format!(
        "{PRELUDE}\
         at = ('9.9.9.9', 98)\n\
         for i in range(300):\n\
         \x20   s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); open_ones.append(s)\n\
         \x20   s.sendto(b'x', at); time.sleep(0.0005)\n\
         say(ask('api.test', 99))\n"
    );
    let finished = run().command(&["python3", "-c", &script]).run();
    finished.code_is(0).has_no_panic();
    assert!(finished.text().contains("hello from 9.9.9.9:99"), "{finished}");
    allowed(run().probe(&["udp-talk", "api.test:99"]));
}

/// More names at once than are looked up at once, none of which is ever answered.
#[test]
fn names_that_are_never_answered_do_not_keep_others_waiting() {
    require!("userns");
    let world = World::new().with("mute=never.test");
    let run =
        || Run::new().world(&world).allow_net("*.never.test:443").allow_net("api.test:443,tls=off");
    let script = format!(
        "{PRELUDE}\
         for i in range(400):\n\
         \x20   s = socket.socket(); s.setblocking(False); open_ones.append(s)\n\
         \x20   s.connect_ex((socket.gethostbyname('n%d.never.test' % i), 443))\n\
         say(talk('api.test', 443))\n"
    );
    let finished = run().command(&["python3", "-c", &script]).run();
    finished.code_is(0).has_no_panic();
    assert!(finished.text().contains("hello from 9.9.9.9:443"), "{finished}");
    allowed(run().probe(&["talk", "api.test:443"]));
}

/// More names at once than are looked up at once: all are reached in the end.
#[test]
fn names_beyond_those_that_are_looked_up_wait() {
    require!("userns");
    let world = World::new().with("name=*.many.test>9.9.9.9").with("mute=never.test");
    let run =
        Run::new().world(&world).allow_net("*.many.test:443,tls=off").allow_net("*.never.test:443");
    let script = format!(
        "{PRELUDE}\
         at = [(socket.gethostbyname('n%d.never.test' % i), 443) for i in range(300)]\n\
         at += [(socket.gethostbyname('n%d.many.test' % i), 443) for i in range(300)]\n\
         for one in at:\n\
         \x20   s = socket.socket(); s.setblocking(False); open_ones.append(s)\n\
         \x20   s.connect_ex(one)\n\
         reached = 0\n\
         for s in open_ones[300:]:\n\
         \x20   s.settimeout(30); s.sendall(b'hello\\n'); reached += s.recv(100) != b''\n\
         say('reached %d' % reached)\n"
    );
    let finished = run.flag("--max-fds").arg("4096").command(&["python3", "-c", &script]).run();
    assert!(finished.text().contains("reached 300"), "{finished}");
    assert!(!finished.stderr.contains("too many names"), "{finished}");
}
