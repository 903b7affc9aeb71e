//! A command that wants to use up the broker is limited, is told of, and goes on running.

use crate::require;
use crate::support::{Run, World, allowed, patience};

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
         print(socket.create_connection(('api.test', 443)) is not None)\n";
    let run = Run::new().world(&world).allow_net("api.test");
    let finished = run.command(&["python3", "-c", script]).run();
    finished.code_is(0).has_no_panic();
    assert!(finished.text().contains("True"), "{finished}");
    let line = "too many connections to the resolver; further ones are closed";
    assert!(finished.stderr.contains(line), "{finished}");
    allowed(Run::new().world(&world).allow_net("api.test").probe(&["talk", "api.test:443"]));
}
