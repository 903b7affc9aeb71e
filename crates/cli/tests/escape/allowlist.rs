//! What is not on the list cannot be reached, however it is spelled or asked for. What is, can.

use crate::require;
use crate::support::{
    Finished, Preparation, Run, UNREACHABLE, World, allowed, blocked, has_program,
};

pub fn in_world(world: &World, rule: &str) -> Run {
    Run::new().world(world).allow_net(rule)
}

#[track_caller]
pub fn says(finished: &Finished, line: &str) {
    assert!(finished.stderr.contains(line), "no line {line:?}\n{finished}");
}

/// Asserts that nothing came of talking.
#[track_caller]
pub fn silent(run: Run) -> Finished {
    let shown = run.to_string();
    let finished = run.run();
    assert!(!finished.last(&shown).ok, "should not be answered: {shown}\n{finished}");
    finished
}

#[test]
fn an_allowed_name_is_reached_and_no_other() {
    require!("userns");
    let world =
        World::new().with("ip=8.8.8.8").with("name=leak.test>8.8.8.8").with("serve=8.8.8.8:443");
    let heard = allowed(in_world(&world, "api.test:443").probe(&["talk", "api.test:443"]));
    assert_eq!(heard.detail, "hello from 9.9.9.9:443\n");
    allowed(in_world(&world, "leak.test:443").probe(&["talk", "leak.test:443"]));
    let before = world.log();
    let finished = silent(in_world(&world, "api.test:443").probe(&["talk", "leak.test:443"]));
    says(&finished, "mcp: blocked leak.test (add --allow-net leak.test)");
    assert_eq!(world.log(), before, "something got out");
}

/// Names are made of labels: neither a prefix nor a suffix of text is a name.
#[test]
fn look_alikes_do_not_leave() {
    require!("userns");
    let world = World::new();
    for name in [
        "api.test.evil.test",
        "evilapi.test",
        "evilwild.test",
        "data.api.test",
        "api.tes",
        "test",
        "API.TEST.evil.test",
        "secret-7f3a.exfil.test",
    ] {
        let run = Run::new().world(&world).allow_net("api.test").allow_net("*.wild.test");
        let finished = silent(run.probe(&["resolve", name]));
        says(&finished, "blocked ");
    }
    assert!(!world.saw("dns "), "a name was asked for outside:\n{}", world.log());
    // The control: what is allowed is asked for, as soon as a client connects.
    allowed(in_world(&world, "api.test").probe(&["talk", "API.test.:443"]));
    assert!(world.saw("dns api.test "));
}

/// The sandbox's resolver answers allowed names without asking anybody. Only a connection makes
/// the launcher ask, and only for the name of the rule.
#[test]
fn looking_up_tells_nobody() {
    require!("userns");
    let world = World::new();
    allowed(in_world(&world, "*.wild.test").probe(&["resolve", "stolen-secret.wild.test"]));
    assert!(!world.saw("stolen-secret"), "{}", world.log());
    // What a wildcard means: the owner of the zone hears the labels once it is connected to.
    silent(in_world(&world, "*.wild.test").probe(&["talk", "stolen-secret.wild.test:443"]));
    assert!(world.saw("dns stolen-secret.wild.test"), "{}", world.log());
}

#[test]
fn the_port_is_part_of_the_rule() {
    require!("userns");
    let world = World::new();
    for port in ["443", "80"] {
        let place = format!("api.test:{port}");
        allowed(in_world(&world, "api.test").probe(&["talk", &place]));
    }
    let finished = silent(in_world(&world, "api.test").probe(&["listen-to", "api.test:22"]));
    says(&finished, "mcp: blocked api.test:22 (add --allow-net api.test:22)");
    let heard = allowed(in_world(&world, "api.test:22").probe(&["listen-to", "api.test:22"]));
    assert!(heard.detail.starts_with("hello from 9.9.9.9:22"));
    silent(in_world(&world, "api.test:22").probe(&["talk", "api.test:443"]));
    let every = in_world(&world, "api.test:*");
    allowed(every.probe(&["listen-to", "api.test:22"]).probe(&["talk", "api.test:80"]));
}

#[test]
fn addresses_are_reached_only_when_a_rule_names_them() {
    require!("userns");
    let world = World::new().with("ip=10.1.2.3").with("serve=10.1.2.3:443");
    for (rule, address) in [
        ("api.test", "9.9.9.9:443"),
        ("9.9.9.8:443", "9.9.9.9:443"),
        ("9.9.9.9:80", "9.9.9.9:443"),
        ("9.9.8.0/24:443", "9.9.9.9:443"),
        ("9.9.9.9:443", "192.168.7.7:443"),
        ("9.9.9.9:443", "127.0.0.1:443"),
        ("9.9.9.9:443", "127.0.0.2:443"),
        ("9.9.9.9:443", "0.0.0.0:443"),
        ("9.9.9.9:443", "[::1]:443"),
        ("9.9.9.9:443", "[::]:443"),
        ("9.9.9.9:443", "[2606:4700::1]:443"),
        ("9.9.9.9:443", "169.254.169.254:80"),
        ("0.0.0.0/0:443", "127.0.0.1:443"),
        ("0.0.0.0/0:443", "192.168.7.7:443"),
        ("0.0.0.0/0:443", "10.1.2.3:443"),
        // The host's own address is only meant by its own name.
        ("192.168.0.0/16:443", "192.168.7.7:443"),
    ] {
        blocked(in_world(&world, rule).probe(&["talk", address]), UNREACHABLE);
    }
    let finished = silent(in_world(&world, "api.test").probe(&["connect", "9.9.9.9:443"]));
    says(&finished, "mcp: blocked 9.9.9.9:443 (add --allow-net 9.9.9.9:443)");
    assert!(!world.saw("heard"), "{}", world.log());
    for (rule, address) in [
        ("9.9.9.9:443", "9.9.9.9:443"),
        ("9.9.9.9", "9.9.9.9:80"),
        ("9.9.9.0/24:443", "9.9.9.9:443"),
        ("0.0.0.0/0:443", "9.9.9.9:443"),
        ("9.9.9.9:*", "9.9.9.9:443"),
        ("10.1.0.0/16:443", "10.1.2.3:443"),
        ("192.168.7.7:443", "192.168.7.7:443"),
        // The host's own loopback, by its name in the rule and on that port alone.
        ("127.0.0.1:443", "127.0.0.1:443"),
        ("localhost:443", "localhost:443"),
    ] {
        let heard = allowed(in_world(&world, rule).probe(&["talk", address]));
        assert!(heard.detail.starts_with("hello from "), "{rule} {address}: {heard:?}");
    }
}

#[test]
fn an_ipv4_address_in_ipv6_clothes_is_the_same_address() {
    require!("userns", "ipv6");
    let world = World::new();
    for rule in ["9.9.9.9:443", "9.9.9.0/24:443"] {
        allowed(in_world(&world, rule).probe(&["talk", "[::ffff:9.9.9.9]:443"]));
    }
    blocked(in_world(&world, "9.9.9.8:443").probe(&["talk", "[::ffff:9.9.9.9]:443"]), UNREACHABLE);
}

#[test]
fn datagrams_leave_only_by_a_rule() {
    require!("userns");
    let world = World::new();
    for (rule, place) in [("udp://9.9.9.9:99", "9.9.9.9:99"), ("udp://api.test:99", "api.test:99")]
    {
        let heard = allowed(in_world(&world, rule).probe(&["udp-talk", place]));
        assert_eq!(heard.detail, "hello from 9.9.9.9:99");
    }
    let before = world.log();
    for (rule, place) in [
        ("api.test:99", "api.test:99"),
        ("9.9.9.9:99", "9.9.9.9:99"),
        ("udp://9.9.9.9:98", "9.9.9.9:99"),
    ] {
        let finished = silent(in_world(&world, rule).probe(&["udp-talk", place]));
        if rule != "api.test:99" && rule != "9.9.9.9:99" {
            says(&finished, "mcp: blocked udp://9.9.9.9:99 (add --allow-net udp://9.9.9.9:99)");
        }
    }
    assert_eq!(world.log(), before);
    Run::new().allow_net("udp://10.0.0.0/8:53").shell("true").run().is_clear_error();
}

/// Names come and go; what has the address of one that went leads to the one that came.
#[test]
fn datagrams_follow_the_name_and_not_its_old_address() {
    require!("userns");
    let world = World::new()
        .with("name=*.wild.test>9.9.9.9")
        .with("ip=9.9.9.7")
        .with("name=other.test>9.9.9.7")
        .with("udp=9.9.9.7:99");
    // A dozen names have addresses at one time. Those asked for first lose theirs.
    let script = "import socket\n\
         def ask(at):\n\
         \x20   s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)\n\
         \x20   for i in range(5):\n\
         \x20       try: s.sendto(b'x', (at, 99)); return s.recv(100).decode()\n\
         \x20       except ConnectionRefusedError: return 'refused'\n\
         \x20       except socket.timeout: pass\n\
         def find(name): return socket.gethostbyname(name)\n\
         old = find('first.wild.test')\n\
         print(ask(old))\n\
         for i in range(30): last = find('n%d.wild.test' % i)\n\
         print(ask(old))\n\
         print(ask(last))\n\
         print(ask(find('other.test')))\n";
    let run = Run::new().world(&world).prepare(Preparation::OpenFiles(512));
    let run = run.allow_net("udp://*.wild.test:99").allow_net("udp://other.test:99");
    let finished = run.command(&["python3", "-c", script]).run();
    let heard = finished.text();
    let heard: Vec<_> = heard.lines().collect();
    let [known, other] = ["hello from 9.9.9.9:99", "hello from 9.9.9.7:99"];
    // The first name was used, and so it may still have its address.
    let [first, old, last, different] = heard[..] else { panic!("{finished}") };
    assert!(old == known || old == "refused", "{finished}");
    assert_eq!((first, last, different), (known, known, other), "{finished}");
}

/// Programs that fetch what they are told to ask first whether the name leads to a public address.
#[test]
fn names_have_addresses_that_pass_for_public() {
    require!("userns");
    let world = World::new();
    let script = "import ipaddress, socket\n\
         found = {info[4][0] for info in socket.getaddrinfo('api.test', 443)}\n\
         assert any('.' in ip for ip in found)\n\
         for ip in map(ipaddress.ip_address, found):\n\
         \x20   assert ip.is_global and not ip.is_private and not ip.is_reserved, ip\n\
         \x20   assert not ip.is_loopback and not ip.is_link_local and not ip.is_multicast, ip\n\
         \x20   s = socket.create_connection((str(ip), 443), timeout=20)\n\
         \x20   s.sendall(b'hello\\n'); assert b'9.9.9.9' in s.recv(100)\n\
         assert not ipaddress.ip_address('198.18.1.1').is_global\n\
         print('global')\n";
    let finished =
        in_world(&world, "api.test:443,tls=off").command(&["python3", "-c", script]).run();
    assert_eq!(finished.text().trim(), "global", "{finished}");
}

/// What a name leads to is for who waits for that name, and not for who came in the place of one
/// that has left.
#[test]
fn an_answer_is_for_who_waits_for_it() {
    require!("userns");
    let world = World::new().with("slow=late.test>9.9.9.9").with("mute=never.test");
    let script = "import socket, struct, time\n\
         def connect(name):\n\
         \x20   s = socket.create_connection((name, 443), timeout=20)\n\
         \x20   s.sendall(b'hello\\n'); return s\n\
         def hear(s):\n\
         \x20   try: return s.recv(100)\n\
         \x20   except ConnectionResetError: return b'reset'\n\
         leaving = [connect('late.test') for i in range(20)]\n\
         for s in leaving:\n\
         \x20   s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n\
         \x20   s.close()\n\
         time.sleep(0.2)\n\
         waiting = [connect('never.test') for i in range(10)]\n\
         print({hear(s) for s in waiting})\n\
         print(hear(connect('late.test')))\n";
    let run = Run::new().world(&world).allow_net("late.test:443,tls=off");
    let run = run.allow_net("never.test:443,tls=off");
    let finished = run.command(&["python3", "-c", script]).run();
    let heard = finished.text();
    let expected = ["{b'reset'}", r"b'hello from 9.9.9.9:443\n'"];
    assert_eq!(heard.lines().collect::<Vec<_>>(), expected, "{finished}");
}

/// A rule for a wide network covers the addresses that names are given. Names have some all the same.
#[test]
fn a_wide_rule_leaves_addresses_for_names() {
    require!("userns");
    let world = World::new().with("ip=8.8.8.8").with("serve=8.8.8.8:443");
    for wide in ["0.0.0.0/0:443", "128.0.0.0/1:443", "192.0.0.0/6:443", "0.0.0.0/0:*", "[::/0]:443"]
    {
        let run = || in_world(&world, "api.test:443").allow_net(wide);
        let heard = allowed(run().probe(&["talk", "api.test:443"]));
        assert_eq!(heard.detail, "hello from 9.9.9.9:443\n", "{wide}");
        // The name's own port is all that it has.
        silent(run().probe(&["talk", "api.test:80"]));
    }
    allowed(in_world(&world, "0.0.0.0/0:443").probe(&["talk", "8.8.8.8:443"]));
}

/// Neither the host's file of names nor one of the command's own opens more than the rules do.
#[test]
fn files_of_names_open_nothing() {
    require!("userns");
    let world = World::new().with("hosts=mine.test>127.0.0.1").with("hosts=pub.test>9.9.9.9");
    let finished = silent(in_world(&world, "mine.test:443").probe(&["talk", "mine.test:443"]));
    says(&finished, "mcp: blocked mine.test:443, for its address 127.0.0.1");
    silent(in_world(&world, "api.test:443").probe(&["talk", "pub.test:443"]));
    assert!(!world.saw("connected"), "{}", world.log());
    allowed(in_world(&world, "pub.test:443").probe(&["talk", "pub.test:443"]));
    let both = in_world(&world, "mine.test:443").allow_net("127.0.0.1:443");
    allowed(both.probe(&["talk", "mine.test:443"]));
    // Addresses that a name could have been given, and has not.
    let world = world.with("ip=25.18.5.5").with("serve=25.18.5.5:443");
    for address in
        ["25.18.5.5:443", "25.19.255.254:443", "198.18.5.5:443", "[2e6d:6370:1918::505]:443"]
    {
        for rule in ["api.test", "0.0.0.0/0:443"] {
            blocked(in_world(&world, rule).probe(&["talk", address]), UNREACHABLE);
        }
    }
    assert!(!world.saw("25.18.5.5"), "{}", world.log());
    // A rule for that very place means it, and so does one for a network within.
    for rule in ["25.18.5.5:443", "25.18.5.0/24:443"] {
        allowed(in_world(&world, rule).probe(&["talk", "25.18.5.5:443"]));
    }
    // With all of them meant, names have others.
    let all = in_world(&world, "25.18.0.0/15:443").allow_net("api.test:443");
    allowed(all.probe(&["talk", "api.test:443"]));
    if !has_program("getent") {
        return;
    }
    // An alias is a question for the name that it stands for.
    let alias = |name: &str| {
        let script = format!("echo 'api {name}' >/tmp/a; HOSTALIASES=/tmp/a getent hosts api");
        in_world(&world, "api.test").shell(&script).run()
    };
    alias("api.test").code_is(0);
    let finished = alias("leak.test");
    finished.code_is(2);
    says(&finished, "mcp: blocked leak.test");
}

/// With an allowlist the kernel has the same few doors as without.
#[test]
fn other_sockets_stay_closed_with_an_allowlist() {
    require!("userns");
    let world = World::new();
    let run = || in_world(&world, "0.0.0.0/0:*");
    for (words, errnos) in [
        (&["socket", "2", "3", "1"][..], &["EPERM", "EACCES"][..]),
        (&["socket", "2", "2", "1"], &["EPERM", "EACCES"]),
        (&["socket", "17", "3", "768"], &["EAFNOSUPPORT"]),
        (&["socket", "40", "1", "0"], &["EAFNOSUPPORT"]),
        (&["socket", "38", "5", "0"], &["EAFNOSUPPORT"]),
        (&["socket", "16", "3", "12"], &["EPROTONOSUPPORT"]),
        (&["socket", "2", "1", "262"], &["EPROTONOSUPPORT"]),
        (&["fastopen", "9.9.9.9:443"], &["EPERM"]),
        (&["io-uring"], &["EPERM"]),
    ] {
        blocked(run().probe(words), errnos);
    }
    allowed(run().probe(&["socket", "2", "1", "6"]));
    assert!(!world.saw("heard"), "{}", world.log());
}

#[test]
fn a_quiet_run_says_nothing() {
    require!("userns");
    let world = World::new();
    let run = in_world(&world, "api.test").flag("--quiet");
    let finished = silent(run.probe(&["talk", "leak.test:443"]));
    assert_eq!(finished.stderr, "", "{finished}");
}

#[test]
fn each_refusal_is_told_once_with_its_flag() {
    require!("userns");
    let finished =
        Run::new().shell("for i in 1 2 3; do getent hosts api.github.com; done; true").run();
    finished.code_is(0);
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert_eq!(lines, ["mcp: blocked api.github.com (add --allow-net api.github.com)"]);
}

/// The C library's own tool, by both of its interfaces.
#[test]
fn getent_finds_what_is_allowed_and_nothing_else() {
    require!("userns");
    if !has_program("getent") {
        return;
    }
    let world = World::new();
    for database in ["hosts", "ahosts", "ahostsv4", "ahostsv6"] {
        let look_up =
            |name: &str| in_world(&world, "api.test").command(&["getent", database, name]).run();
        let found = look_up("api.test");
        found.code_is(0);
        assert!(found.text().contains("api.test"), "{found}");
        let missed = look_up("leak.test");
        missed.code_is(2);
        says(&missed, "mcp: blocked leak.test (add --allow-net leak.test)");
    }
    let finished = in_world(&world, "api.test").command(&["getent", "hosts", "localhost"]).run();
    finished.code_is(0);
    assert!(!world.saw("dns "), "{}", world.log());
}
